"""Grids over several tables: values and differences side by side, and how differences change along a setting."""

from collections.abc import Mapping, Sequence

from pebench.formatting import natural
from pebench.results.cells import NOTHING, Cell, Grid, count_cell, decimal_cell, mean_cell, numbers, p_cell, words
from pebench.results.contrasts import Equivalence, Series
from pebench.results.grids.table import style_of
from pebench.results.page import Page
from pebench.results.tables import Row, Table
from pebench.results.titles import arrow, column_title, difference_unit, headline, runs_note
from pebench.results.verdicts import BETTER_OR_WORSE
from pebench.tasks import Task


def side_by_side(tables: Sequence[Table], page: Page, along: str = "") -> Grid:
    """Return the means of comparable tables side by side: rows encodings, columns tasks.

    Args:
        tables: The tables to compare.
        page: The page that they are on.
        along: The setting that their columns are named by, if it is not the task.
    """
    labels = _labels(tables)
    grid = {"Encoding": words(labels)}
    for table in tables:
        task, most = table.task, max(len(row.values) for row in table.rows)
        cells = {}
        for row in table.rows:
            if row.estimate:
                cells[row.label] = mean_cell(row.estimate, task, note=runs_note(len(row.values), most, len(row.failed)))
        head = f"{column_title(table, along)}\n{headline(task)}, n={most}"
        grid[head] = numbers(_filled(cells, labels, table, page), task.higher_is_better)
    return grid


def front_page(tables: Sequence[Table], page: Page) -> Grid:
    """Return the means of comparable tables with their verdicts, as short as a front page needs them.

    Args:
        tables: The tables to compare.
        page: The page that they are on.
    """
    labels = _labels(tables)
    grid = {"Encoding": words(f"`{label}`" for label in labels)}
    for table in tables:
        task, cells = table.task, {}
        for row in table.rows:
            if row.estimate:
                differs = row.verdict and row.verdict.outcome in BETTER_OR_WORSE
                note = f" {row.verdict.text}" if row.verdict and differs else ""
                # One digit less than on a page: about as exact as the interval.
                cells[row.label] = decimal_cell(task.scale * row.estimate.mean, task.digits - 1, note)
        grid[f"{column_title(table, '')}\n{headline(task)}"] = numbers(_filled(cells, labels, table, page))
    return grid


def differences(tables: Sequence[Table], page: Page, along: str = "") -> Grid:
    """Return the differences to the reference of comparable tables side by side; empty if there are none.

    Args:
        tables: The tables to compare.
        page: The page that they are on.
        along: The setting that their columns are named by, if it is not the task.
    """
    if not any(row.difference for table in tables for row in table.rows):
        return {}
    labels = [label for label in _labels(tables) if label != page.reference]
    grid = {"Encoding": words(labels)}
    for table in tables:
        task, equivalent = table.task, page.equivalences(table)
        # The most that any row has: cells of fewer seeds say so, as they stand next to each other.
        most = max((row.difference.n for row in table.rows if row.difference), default=0)
        cells = {}
        for row in table.rows:
            if row.difference:
                cells[row.label] = _difference_cell(row, task, equivalent.get(row.label), most)
        head = f"{column_title(table, along)}\n{difference_unit(task)} {arrow(task)}"
        grid[head] = numbers(_filled(cells, labels, table, page), task.higher_is_better)
    return grid


def _difference_cell(row: Row, task: Task, equivalent: Equivalence | None, most: int) -> Cell:
    """Return the difference to the reference with its verdict, if it is better, worse or equivalent."""
    notes = [row.verdict.text] if row.verdict and row.verdict.outcome in BETTER_OR_WORSE else []
    notes += ["equivalent"] if equivalent and equivalent.holds else []
    note = f" {', '.join(notes)}" if notes else ""
    n = row.difference.n if row.difference else 0
    return mean_cell(row.difference, task, "+", note + runs_note(n, most)).styled(style_of(row.verdict, equivalent))


def _labels(tables: Sequence[Table]) -> list[str]:
    """Return the labels of tables' rows."""
    return sorted({row.label for table in tables for row in table.rows}, key=natural)


def _filled(cells: Mapping[str, Cell], labels: Sequence[str], table: Table, page: Page) -> list[Cell]:
    """Return a table's cells by label; where there is none, why: runs failed, are missing, or have no pair."""
    asked = page.coverage.labels(table)
    return [cells.get(label) or _absent_cell(table.row(label), label in asked) for label in labels]


def _absent_cell(row: Row | None, asked: bool) -> Cell:
    if row is None:
        return Cell("missing" if asked else NOTHING)
    if row.values:
        return Cell("no pair")  # it has values, at no seed that the reference has
    return Cell("failed" if row.failed else NOTHING)


def changes(series: Series, page: Page) -> Grid:
    """Return how differences change from the first value of a setting to the last; empty if none is known at both."""
    task, found = series.first.task, page.changes(series)
    if not found:
        return {}
    grid = {"Contrast": words(f"{change.first} - {change.second}" for change in found)}
    for place, table in enumerate((series.ordered[0], series.ordered[-1])):
        head = f"{column_title(table, series.setting)}\n{difference_unit(task)} {arrow(task)}"
        grid[head] = numbers((mean_cell(change.ends[place], task, "+") for change in found), task.higher_is_better)
    return grid | {
        "change": numbers(mean_cell(change.difference, task, "+") for change in found),
        "n": numbers(count_cell(change.difference.n) for change in found),
        "Verdict": words(change.verdict.text for change in found),
        "p": numbers(p_cell(change.p_adjusted) for change in found),
    }
