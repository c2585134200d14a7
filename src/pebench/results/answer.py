"""The answer that a page begins with: what differs from the reference, and by how much, in a few plain statements."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pebench.formatting import counted, shortened
from pebench.results.cells import plus_minus
from pebench.results.contrasts import Change, Series
from pebench.results.finding import finding
from pebench.results.missing import absence_counts
from pebench.results.stats import Estimate
from pebench.results.tables import Row, Table
from pebench.results.titles import difference_unit, margin_text
from pebench.results.verdicts import BETTER_OR_WORSE, Outcome

if TYPE_CHECKING:
    from pebench.results.page import Page

MOST_ROWS = 4
"""Rows of a table that are named with their figures; further ones are counted."""

MOST_TABLES = 4
"""Tables whose rows are named with figures; where more have such rows, each is named with the number of tables."""


@dataclass(frozen=True)
class Statement:
    """One thing that a page finds.

    Args:
        text: A sentence; with items, the words before them.
        items: The cases that it is true of, where they are several; else the sentence names them.
    """

    text: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """Rows of one table with one verdict.

    Args:
        table: The table.
        name: Its name in a sentence.
        rows: The rows, that with the largest difference first.
    """

    table: Table
    name: str
    rows: Sequence[Row]


def answer(page: "Page") -> list[Statement]:
    """Return what a page finds: the answer first, then how many comparisons tell nothing."""
    total = sum(row.verdict is not None for table in page.tables for row in table.rows)
    if not total:
        return [Statement(finding(page))]
    found = [*_changes(page), *_contrasts(page)]
    for outcome, words in ((Outcome.BETTER, "Better"), (Outcome.WORSE, "Worse")):
        if named := _of_outcome(page, outcome):
            found.append(_differing(f"{words} than {_code(page.reference)}", named, len(page.tables)))
    return [*found, *_fragile(page), *map(Statement, _others(page, total)), *_equivalent(page), *_absent(page)]


def _absent(page: "Page") -> Iterator[Statement]:
    """Yield how many runs failed or are missing, and of which rows, that with the most first."""
    if lost := absence_counts(page.absent):
        counts = Counter(_code(absence.label) for absence in page.absent)
        rows = shortened([label for label, _ in counts.most_common()], MOST_ROWS, "more")
        yield Statement(f"Not all runs are here: {'; '.join(lost)}. They are of {_joined(rows)}.")


def _code(label: str) -> str:
    """Return a label marked as code, where it can be: its own backticks would end the mark."""
    return label if "`" in label else f"`{label}`"


def _statement(head: str, items: Sequence[str]) -> Statement:
    """Return a statement on items: a single one ends its sentence, several are a list."""
    return Statement(f"{head}:", tuple(items)) if len(items) > 1 else Statement(f"{': '.join([head, *items])}.")


def _of_outcome(page: "Page", outcome: Outcome) -> list[Named]:
    """Return the rows with one verdict, by table."""
    found = []
    for table in page.tables:
        rows = [row for row in table.rows if row.verdict and row.verdict.outcome is outcome and row.difference]
        if rows:
            found.append(Named(table, page.coverage.table_name(table), sorted(rows, key=_size, reverse=True)))
    return found


def _size(row: Row) -> float:
    return abs(row.difference.mean) if row.difference else 0.0


def _differing(head: str, found: Sequence[Named], tables: int) -> Statement:
    """Return a statement on the rows with one verdict: those of a single table one by one, else table by table.

    Args:
        head: The verdict, such as "Better than add".
        found: The rows, by table.
        tables: Number of tables of the page.
    """
    if len(found) == 1 and len(found[0].rows) > 2:
        return _statement(f"{head} on {found[0].name}", _rows(found[0]))
    if len(found) <= MOST_TABLES:
        return _statement(head, [f"{_joined(_rows(one))} on {one.name}" for one in found])
    counts = Counter(row.label for one in found for row in one.rows)
    items = shortened(
        [f"{_code(label)} on {count}" for label, count in counts.most_common()], MOST_ROWS, "more on some"
    )
    return Statement(f"{head}: {_joined(items)} of {tables} tables.")


def _rows(one: Named) -> list[str]:
    """Return the rows of a table, that with the largest difference first, with their figures."""
    items = []
    for place, row in enumerate(one.rows):
        unit = "" if place else f" {difference_unit(one.table.task)}"
        if row.difference:
            items.append(f"{_code(row.label)} (by {_figure(row.difference, one.table)}{unit})")
    return shortened(items, MOST_ROWS, "more")


def _figure(value: Estimate, table: Table) -> str:
    """Return the size of a difference, whichever way it points, with half its interval."""
    size = Estimate(abs(value.mean), value.half_width, value.n)
    return plus_minus(size, table.task.scale, table.task.digits)


def _joined(items: Sequence[str]) -> str:
    """Return items as a list in a sentence.

    Example:
        >>> _joined(["a"]), _joined(["a", "b"]), _joined(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _fragile(page: "Page") -> Iterator[Statement]:
    """Yield the differences that are not separable without one of the seeds."""
    names = [f"{_code(label)} on {page.coverage.table_name(table)}" for table in page.tables for label in table.fragile]
    if names:
        yield _statement("Verdicts that depend on a single seed", shortened(names, MOST_ROWS, "more"))


def _others(page: "Page", total: int) -> Iterator[str]:
    """Yield how many comparisons tell nothing, and how many have no test."""
    verdicts = [row.verdict for table in page.tables for row in table.rows if row.verdict]
    open_ones = [found for found in verdicts if found.outcome is Outcome.NOT_SEPARABLE]
    untested = sum(found.outcome is Outcome.NOT_TESTED for found in verdicts)
    different = sum(found.outcome in BETTER_OR_WORSE for found in verdicts)
    if open_ones:
        seeds = sorted({found.n for found in open_ones})
        at = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
        rest = "The other " if different and not untested else ""
        count = f"{len(open_ones)} of {counted(total, 'comparison')} with {_code(page.reference)}"
        yield (
            f"{rest}{count} {'is' if len(open_ones) == 1 else 'are'} not separable: {at} seeds cannot tell, which "
            "does not mean equal."
        )
    if untested:
        yield _too_few(untested, f"{untested} of {counted(total, 'comparison')}")


def _equivalent(page: "Page") -> Iterator[Statement]:
    """Yield the rows that are equivalent to the reference within the declared margin."""
    parts = []
    for table in page.tables:
        margin = page.margin_of(table)
        if margin is not None and (labels := page.equivalent(table)):
            within = margin_text(margin, table.task)
            names = _joined(shortened([*map(_code, labels)], MOST_ROWS, "more"))
            parts.append(f"{names} on {page.coverage.table_name(table)} (within {within})")
    if parts:
        yield _statement(
            f"Equivalent to {_code(page.reference)}", shortened(parts, MOST_TABLES, "more on other tables")
        )


def _contrasts(page: "Page") -> Iterator[Statement]:
    """Yield what the declared contrasts found, and how many have no test; one of several tables is named once."""
    tested, untested, found = 0, 0, dict[str, list[str]]()
    for table in page.tables:
        for one in page.contrasts(table):
            if one.verdict.outcome is Outcome.NOT_TESTED:
                untested += 1
                continue
            tested += 1
            if one.verdict.outcome in BETTER_OR_WORSE:
                figure = f"{_figure(one.difference, table)} {difference_unit(table.task)}"
                words = f"{_code(one.first)} is {one.verdict.outcome.value} than {_code(one.second)}"
                found.setdefault(words, []).append(f"by {figure} on {page.coverage.table_name(table)}")
    if tested:
        parts = [f"{words} {places[0] if len(places) == 1 else _on(places)}" for words, places in found.items()]
        yield _statement(_separable(sum(map(len, found.values())), tested), shortened(parts, MOST_ROWS, "more"))
    if untested:
        yield Statement(_too_few(untested, counted(untested, "declared contrast")))


def _too_few(count: int, words: str) -> str:
    return f"{words} {'has' if count == 1 else 'have'} too few seeds to test."


def _separable(count: int, tested: int) -> str:
    if tested == 1:
        return f"The declared contrast is {'separable' if count else 'not separable'}"
    return f"{count or 'None'} of {tested} declared contrasts {'is' if count <= 1 else 'are'} separable"


def _on(places: Sequence[str]) -> str:
    return f"on {len(places)} tables ({places[0]})" if len(places) > 2 else " and ".join(places)


def _changes(page: "Page") -> Iterator[Statement]:
    """Yield how differences change along a setting, where they do."""
    for series in page.series:
        found = page.changes(series)
        clear = [change for change in found if change.verdict.significant]
        if not found:
            continue
        first, *_, last = series.tables
        setting = series.setting.partition(".")[2]
        head = f"From {setting} {first} to {last} on {series.first.task.name}"
        if clear:
            parts = [_change(change, series) for change in clear]
            yield _statement(head, shortened(parts, MOST_ROWS, "more change"))
        else:
            yield Statement(f"{head} no difference changes that these seeds can tell.")


def _change(change: Change, series: Series) -> str:
    """Return one change: the gap of none to add is narrower (from 0.1 to 0.05 bits per byte)."""
    table = series.first
    ends = [Estimate(end.mean, None, end.n) for end in change.ends]
    before, after = (plus_minus(end, table.task.scale, table.task.digits, "+") for end in ends)
    pair = f"the gap of {_code(change.first)} to {_code(change.second)}"
    outcome = change.verdict.outcome
    words = {Outcome.TURNED: "changes its sign", Outcome.CHANGED: "changes"}.get(outcome, f"is {outcome.value}")
    return f"{pair} {words} ({before}, then {after} {difference_unit(table.task)})"
