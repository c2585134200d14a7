"""Tables as CSV with raw numbers. The same records give the same bytes."""

import csv
import io
from typing import Any

import orjson  # json would take as long as all the rest of it

from pebench.results.page import Page
from pebench.results.provenance import warnings
from pebench.results.raw import raw_rows, table_head, untested_row

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a text that spreadsheets would calculate."""


def to_csv(page: Page) -> str:
    """Return one line per encoding and table, with raw numbers; nested values are JSON."""
    rows = []
    for table in page.tables:
        head = table_head(table) | {"warnings": warnings(table)}
        rows += [head | values for values in raw_rows(page, table)]
    rows += [dict.fromkeys(rows[0]) | untested_row(page, kind) for kind in page.coverage.untested]
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)  # an analysis is in the rows that have one
    writer = csv.DictWriter(text, fieldnames=list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return what stands in a cell: nested values as JSON, and text that spreadsheets take for text."""
    if isinstance(value, dict | list | bool):
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()  # seeds are keys too
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
