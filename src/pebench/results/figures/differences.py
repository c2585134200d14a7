"""Paired differences of one table to the reference encoding, with their intervals."""

import math
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pebench.results.contrasts import Equivalence
from pebench.results.figures.overview import point
from pebench.results.figures.style import INK, by_row
from pebench.results.grids.table import style_of
from pebench.results.tables import Row, Table
from pebench.results.titles import difference_unit, runs_note

CAPTION = (
    "Difference to the reference at equal seeds: mean and 95 % t-interval. ▲ better, ▼ worse (after Holm's "
    "correction), ◆ equivalent within the declared margin, ○ not separable. The intervals are not corrected."
)


def draw(table: Table, equivalent: Mapping[str, Equivalence] | None = None) -> Figure | None:
    """Draw a line for each row, the best on top; return None if there is nothing to compare.

    Args:
        table: A table with a row of the reference.
        equivalent: Tests of equivalence to the reference, by label.
    """
    if not any(row.difference for row in table.rows):
        return None
    tests = equivalent or {}
    better = -1 if table.task.higher_is_better else 1
    rows = sorted(table.rows, key=lambda row: better * row.difference.mean if row.difference else _nothing(row, table))
    figure, axes, places = by_row([_name(row, table) for row in rows])
    axes.axvline(0, color=INK, linewidth=0.8)
    for row, place in zip(rows, places, strict=True):
        if row.difference is None:
            continue
        point(axes, row, table, place, style_of(row.verdict, tests.get(row.label)))
    direction = "better →" if table.task.higher_is_better else "← better"
    axes.set_xlabel(f"Δ {difference_unit(table.task)} to {table.reference}   ({direction})")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    return figure


def _nothing(row: Row, table: Table) -> float:
    """Return where a row without a difference sorts: the reference at zero, others last."""
    return 0.0 if row.label == table.reference else math.inf


def _name(row: Row, table: Table) -> str:
    """Return the label, and why its line has no difference, or one of fewer seeds than others."""
    if row.difference is not None:
        return row.label + runs_note(row.difference.n, max(r.difference.n for r in table.rows if r.difference))
    if row.label == table.reference:
        return f"{row.label} (reference)"
    return f"{row.label}: {'no pair' if row.values else 'no run finished'}"
