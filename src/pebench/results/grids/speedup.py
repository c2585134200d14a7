"""The grid of effective speedups."""

from pebench.results.cells import NOTHING, Cell, Grid, count_cell, mean_cell, numbers, words
from pebench.results.speedup import Speedup, speedups
from pebench.results.tables import Table

NOT_MEASURED = Cell("not measured")


def speedup(table: Table) -> Grid:
    """Return the speedup of each row beside its difference to the reference; empty where none is known."""
    found, rows = speedups(table), [row for row in table.rows if row.label != table.reference]
    if not found:
        return {}
    return {
        "Encoding": words(row.label for row in rows),
        f"Δ to {table.reference}{' (points)' * table.task.percent}": numbers(
            mean_cell(row.difference, table.task, "+") for row in rows
        ),
        "Effective speedup": numbers(
            (_cell(found[row.label]) if row.label in found else NOT_MEASURED for row in rows), largest_first=True
        ),
        "n": numbers(count_cell(found[row.label].n) if row.label in found else Cell(NOTHING) for row in rows),
    }


def _cell(found: Speedup) -> Cell:
    """Return a cell such as ``1.69 [1.66, 1.72]``; a star marks that it is larger, or for less than 1 smaller."""
    interval = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return Cell(f"{found.factor:.2f}{interval}{' *' * found.bound}", round(found.factor, 2))
