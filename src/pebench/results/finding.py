"""The finding of a page: its verdicts counted, and the rows that differ named, in one sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pebench.formatting import counted
from pebench.results.missing import absence_counts
from pebench.results.page import Page
from pebench.results.tables import Table
from pebench.results.verdicts import BETTER_OR_WORSE, Outcome

MOST_NAMED = 8
"""Encodings named in a list; further ones are counted."""

COUNTED = {
    Outcome.BETTER: "better", Outcome.WORSE: "worse", Outcome.NOT_SEPARABLE: "not separable",
    Outcome.NOT_TESTED: "not tested",
}  # fmt: skip
"""Outcomes in the order and the words in which a finding counts them."""

Rows = Mapping[str, Sequence[str]]
"""Name of a table to labels of its rows."""


def finding(page: Page) -> str:
    """Return the verdicts of a page's tables in one sentence."""
    found: dict[Outcome, dict[str, list[str]]] = {}
    equivalent: dict[str, list[str]] = {}
    for table in page.tables:
        name = page.coverage.table_name(table)
        for row in table.rows:
            if row.verdict is None:  # the reference, and rows without a seed in common with it
                continue
            found.setdefault(row.verdict.outcome, {}).setdefault(name, []).append(row.label)
        if labels := page.equivalent(table):
            equivalent.setdefault(name, []).extend(labels)
    total = sum(map(_count, found.values()))
    if not total:
        return f"Nothing is compared: no other encoding shares a finished seed with {page.reference}."
    parts = []
    for outcome, words in COUNTED.items():
        if outcome in found:
            parts.append(_counted(words, found[outcome], outcome in BETTER_OR_WORSE))
    if equivalent:
        parts.append(_counted("of all equivalent within the margin", equivalent, True))
    parts += absence_counts(page.absent)
    return f"{counted(total, 'comparison')} with {page.reference}: {'; '.join(parts)}."


def tally(table: "Table", page: "Page") -> str:
    """Return the verdicts of one table, counted: ``2 better, 1 worse, 1 not separable from add``."""
    counts = Counter(row.verdict.outcome for row in table.rows if row.verdict)
    parts = [f"{counts[outcome]} {words}" for outcome, words in COUNTED.items() if outcome in counts]
    if equivalent := page.equivalent(table):
        parts.append(f"{len(equivalent)} of all equivalent")
    return f"Compared with {table.reference}: {', '.join(parts)}." if parts else "Nothing is compared."


def _count(rows: Rows) -> int:
    return sum(map(len, rows.values()))


def _counted(words: str, rows: Rows, named: bool) -> str:
    """Return a count such as ``2 better (lm-wikitext2: concat, rope)``."""
    names = "; ".join(f"{table}: {shortened(labels)}" for table, labels in rows.items())
    return f"{_count(rows)} {words} ({names})" if named else f"{_count(rows)} {words}"


def shortened(names: Sequence[str]) -> str:
    """Return names in a row, with the number of those that are left out.

    Example:
        >>> shortened(["a", "b"]), shortened([*"abcdefghij"])
        ('a, b', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
