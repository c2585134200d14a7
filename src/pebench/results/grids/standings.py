"""The grid of figures across tasks."""

from pebench.results.across import Interval, Standing, Summary
from pebench.results.cells import NOTHING, Cell, Grid, count_cell, decimal_cell, numbers, words


def standings(summary: Summary) -> Grid:
    """Return the interquartile mean, average rank and probability of improvement of each encoding."""
    rows = summary.rows
    grid = {
        "Encoding": words(row.label for row in rows),
        "Interquartile mean ↑": numbers((_limits_cell(row.iqm, 3) for row in rows), largest_first=True),
        "Average rank ↓": numbers(_limits_cell(row.rank, 2) for row in rows),
        f"P(better than {summary.reference})": numbers(_improvement_cell(row, summary.reference) for row in rows),
    }
    if any(row.failed for row in rows):
        grid["Failed runs"] = numbers(count_cell(row.failed, " †" * bool(row.failed)) for row in rows)
        grid["Interquartile mean, excluding failed ↑"] = numbers(decimal_cell(row.iqm_finished, 3) for row in rows)
    return grid


def _improvement_cell(row: Standing, reference: str) -> Cell:
    if row.label == reference:
        return Cell("reference")
    return Cell(NOTHING) if row.improvement is None else _limits_cell(row.improvement, 2)


def _limits_cell(value: Interval, digits: int) -> Cell:
    """Return a cell such as ``0.81 [0.74, 0.90]``; without limits, the mean alone."""
    limits = "" if value.low is None else f" [{value.low:.{digits}f}, {value.high:.{digits}f}]"
    return decimal_cell(value.mean, digits, limits)
