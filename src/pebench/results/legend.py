"""What the rows of a page are: each encoding in a sentence, with the options that rows set."""

from pebench.encodings.origins import origin_text
from pebench.encodings.registry import encoding_cards, our_parts
from pebench.formatting import natural
from pebench.results.page import Page
from pebench.results.provenance import plugins_of

LEGEND = (
    "What each encoding is, and each option that a row sets. D, or `d_model`, is the model's width, K the width of a "
    "head, N the number of layers, P that of axes (one on text, two on images), x the content and p what tells its "
    "position."
)


def legend(page: Page) -> list[str]:
    """A line of Markdown for each encoding that has a row, or is to have one, or is a part of one that has.

    Of others' encodings, which not every reader has, it tells what their runs' records do.
    """
    tested = [row.config for table in page.tables for row in table.rows]
    lacking = [kind for table in page.tables for kind in page.lacking(table)]
    cards, used = encoding_cards(), our_parts((*tested, *lacking, *page.untested))
    lines = {name: f"**{name}**: {cards[name].summary}. {cards[name].describe_options(used[name])}" for name in used}
    for name, facts in plugins_of(record for table in page.tables for record in table.records):
        said = f"{facts['summary']}. " if facts.get("summary") else ""
        lines[name] = f"**{name}**: {said}({origin_text(facts)})"
    return [lines[name].rstrip().replace("``", "`") for name in sorted(lines, key=natural)]
