"""What the rows of a page are: each encoding in a sentence, with the options that rows set."""

from pebench.registry import encoding_cards, parts_of
from pebench.results.page import Page
from pebench.words import natural

LEGEND = (
    "What each encoding is, and each option that a row sets. D, or `d_model`, is the model's width, K the width of a "
    "head, N the number of layers, P that of axes (one on text, two on images), x the content and p what tells its "
    "position."
)


def legend(page: Page) -> list[str]:
    """A line of Markdown for each of our encodings that has a row, or is to have one, or is a part of one that has.

    Those of others are left out: a page must not depend on which packages its reader has.
    """
    tested = [row.config for table in page.tables for row in table.rows]
    lacking = [kind for table in page.tables for kind in page.lacking(table)]
    cards, used = encoding_cards(), dict[str, set[str]]()
    for config in (*tested, *lacking, *page.untested):
        if config.encoding in cards:
            for name, options in parts_of(config.encoding, config.encoding_args):
                used.setdefault(name, set()).update(options)
    ours = [(cards[name], used[name]) for name in sorted(used, key=natural) if name in cards]
    return [
        f"**{card.name}**: {card.summary}. {card.told(options)}".rstrip().replace("``", "`") for card, options in ours
    ]
