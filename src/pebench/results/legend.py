"""The legend of a page: each encoding in a sentence, with the options that rows set."""

from pebench.encodings.origins import origin_text
from pebench.encodings.registry import encoding_cards, our_parts
from pebench.formatting import natural
from pebench.results.page import Page
from pebench.results.prose import Prose, prose
from pebench.results.provenance import plugins_of


def legend(page: Page) -> list[Prose]:
    """Return a sentence for each encoding that has a row, or is to have one, or is a part of one that has.

    Encodings of others, which not every reader has, are described by their runs' records.
    """
    tested = [row.config for table in page.tables for row in table.rows]
    lacking = [kind for table in page.tables for kind in page.coverage.lacking(table)]
    cards, used = encoding_cards(), our_parts((*tested, *lacking, *page.coverage.untested))
    lines = {name: f"**{name}**: {cards[name].summary}. {cards[name].describe_options(used[name])}" for name in used}
    for name, facts in plugins_of(record for table in page.tables for record in table.records):
        summary = f"{facts['summary']}. " if facts.get("summary") else ""
        lines[name] = f"**{name}**: {summary}({origin_text(facts)})"
    return [prose(lines[name].rstrip().replace("``", "`")) for name in sorted(lines, key=natural)]
