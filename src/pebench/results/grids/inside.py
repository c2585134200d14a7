"""Grids of analyses: where trained models keep content and position, beside the same models untrained."""

from statistics import fmean

from pebench.results.cells import NOTHING, Cell, Grid, interval_cell, numbers, words
from pebench.results.inside import FIGURES, Figure
from pebench.results.stats import estimate
from pebench.results.tables import Row, Table
from pebench.results.titles import runs_note

NOT_ANALYZED = "not analyzed"


def inside(table: Table, group: str) -> Grid:
    """Return the figures of one group: rows encodings, columns figures; empty where no run was analyzed.

    Args:
        table: The table of the runs.
        group: Group of `pebench.results.inside.FIGURES`.
    """
    grid: Grid = {}
    for figure in FIGURES:
        cells = [_cell(row, figure) for row in table.rows]
        if figure.group == group and any(cell.value is not None for cell in cells):
            grid[figure.title] = numbers(cells)
    return {"Encoding": words(row.label for row in table.rows)} | grid if grid else {}


def _cell(row: Row, figure: Figure) -> Cell:
    """Return the mean over seeds, after it that of the untrained models, if it is measured there."""
    trained, before = (figure.of_runs(row.finished, stage) for stage in ("trained", "untrained"))
    if not trained:
        return Cell(NOTHING if any(record.analysis for record in row.finished) else NOT_ANALYZED)
    note = f" ({figure.scale * fmean(before):z.{figure.digits}f})" if before else ""
    return interval_cell(
        estimate(trained), figure.scale, figure.digits, note=note + runs_note(len(trained), len(row.values))
    )
