"""Tables as CSV with raw numbers. The same records give the same bytes."""

import csv
import io

import orjson  # json would take as long as all the rest of it

from pebench.results.page import Page
from pebench.results.provenance import warnings
from pebench.results.raw import raw_rows, table_head, untested_row


def to_csv(page: Page) -> str:
    """Return one line per encoding and table, with raw numbers; nested values are JSON."""
    rows = []
    for table in page.tables:
        head = table_head(table) | {"warnings": warnings(table)}
        rows += [head | values for values in raw_rows(page, table)]
    rows += [dict.fromkeys(rows[0]) | untested_row(page, kind) for kind in page.coverage.untested]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        nested = {  # seeds are keys too
            name: orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
            for name, value in row.items()
            if isinstance(value, dict | list | bool)
        }
        writer.writerow(row | nested)
    return text.getvalue()
