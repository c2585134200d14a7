"""Grids of one table: its results, costs, declared contrasts, pairs of rows, and the settings that were tried."""

from typing import Any

from pebench.formatting import natural
from pebench.results.cells import (
    NOTHING,
    Cell,
    Column,
    Grid,
    Style,
    count_cell,
    decimal_cell,
    mean_cell,
    numbers,
    p_cell,
    rate_cell,
    setting_cell,
    si_cell,
    words,
)
from pebench.results.contrasts import Equivalence
from pebench.results.page import Page
from pebench.results.stats import Difference
from pebench.results.tables import Row, Table
from pebench.results.titles import headline, margin_text, runs_note
from pebench.results.verdicts import Outcome, Verdict, verdict
from pebench.runs.selection import Trial
from pebench.tasks import Task

MOST_SHOWN = 12
"""Rows of the largest table whose pairs are shown; those of larger ones stand in the JSON alone."""

STYLES: dict[Outcome, Style] = {
    Outcome.BETTER: "better", Outcome.WORSE: "worse", Outcome.NOT_SEPARABLE: "open", Outcome.NOT_TESTED: "open",
}  # fmt: skip


def style_of(found: Verdict | None, equivalent: Equivalence | None) -> Style:
    """Return the style of a verdict: better or worse, else equivalent, else open."""
    if found is None:
        return ""
    if not found.significant and equivalent and equivalent.holds:
        return "equivalent"
    return STYLES.get(found.outcome, "")


def results(table: Table, page: Page) -> Grid:
    """Return the means, differences and verdicts of a table."""
    task, rows = table.task, table.rows
    equivalent = page.equivalences(table)
    grid = {
        "Encoding": words(row.label for row in rows),
        headline(task): numbers((mean_cell(row.estimate, task) for row in rows), task.higher_is_better),
        "n": numbers(_n_cell(row) for row in rows),
        f"Δ to {table.reference}{' (points)' * task.percent}": numbers(
            mean_cell(row.difference, task, "+").styled(style_of(row.verdict, equivalent.get(row.label)))
            for row in rows
        ),
        "Verdict": Column(tuple(_row_verdict(row, table, equivalent.get(row.label)) for row in rows), words=True),
        "p": numbers(p_cell(row.p_adjusted) for row in rows),
    }
    # Of language models alone. It repeats bits per byte in the unit that papers report, and has no test of its own.
    if any("test/perplexity" in record.metrics for record in table.records):
        grid["perplexity ↓"] = numbers(decimal_cell(row.perplexity, 2) for row in rows)
    # All rows have the same names here, as the regime and what is selected are the table's.
    for name in rows[0].own:
        grid[name.partition(".")[2]] = numbers(setting_cell(_own_setting(row, name)) for row in rows)
    return grid


def _n_cell(row: Row) -> Cell:
    return count_cell(len(row.values), f" ({len(row.failed)} failed)" if row.failed else "")


def _own_setting(row: Row, name: str) -> Any:
    """Return a setting of a row's own; where the width is not set, the model's usual one."""
    usual = {"model.d_ff": 4 * row.config.model.d_model}.get(name)
    return usual if row.own[name] is None else row.own[name]


def _row_verdict(row: Row, table: Table, equivalent: Equivalence | None) -> Cell:
    if row.label == table.reference:
        return Cell("reference")
    return _verdict_cell(row.verdict, equivalent, table.task) if row.verdict else Cell(NOTHING)


def _verdict_cell(found: Verdict, equivalent: Equivalence | None, task: Task) -> Cell:
    """Return a cell with a verdict, and the margin that the difference is equivalent within, if it is."""
    within = f"; equivalent within {margin_text(equivalent.margin, task)}" if equivalent and equivalent.holds else ""
    return Cell(found.text + within, style=style_of(found, equivalent))


def costs(table: Table) -> Grid:
    """Return the parameters, operations, throughput and memory of a table's encodings."""
    found = [row.costs for row in table.rows]
    return {
        "Encoding params": numbers(count_cell(cost["parameters_encoding"]) for cost in found),
        "Total params": numbers(count_cell(cost["parameters_total"]) for cost in found),
        "FLOPs/sample": numbers(si_cell(cost["flops_per_sample"]) for cost in found),
        f"{table.task.unit}/s": numbers(rate_cell(cost["throughput"]) for cost in found),
        "Memory (GiB)": numbers(decimal_cell(cost["peak_memory_gib"], 2) for cost in found),
    }


def contrasts(table: Table, page: Page) -> Grid:
    """Return the contrasts that the suite declared; empty where it declared none of these rows."""
    task, found = table.task, page.contrasts(table)
    if not found:
        return {}
    return {
        "Contrast": words(f"{contrast.first} - {contrast.second}" for contrast in found),
        f"Δ{' (points)' * task.percent}": numbers(
            mean_cell(contrast.difference, task, "+").styled(style_of(contrast.verdict, contrast.equivalent))
            for contrast in found
        ),
        "n": numbers(count_cell(contrast.difference.n) for contrast in found),
        "Verdict": Column(
            tuple(_verdict_cell(contrast.verdict, contrast.equivalent, task) for contrast in found), words=True
        ),
        "p": numbers(p_cell(contrast.p_adjusted) for contrast in found),
    }


def pairs(table: Table) -> Grid:
    """Return the differences of every two rows: the one at the left minus the one above.

    Empty where `Table.pairs` is, and for more than `MOST_SHOWN` rows.
    """
    labels = [row.label for row in table.rows]
    if not table.pairs or len(labels) > MOST_SHOWN:
        return {}
    most = max(difference.n for difference, _ in table.pairs.values())
    grid = {"Encoding": words(labels[1:])}
    for place, above in enumerate(labels[:-1]):
        cells = []
        for left_place, left in enumerate(labels[1:], start=1):
            if left_place <= place:
                cells.append(Cell(""))  # the other half of the square
            elif (left, above) not in table.pairs:
                cells.append(Cell(NOTHING))
            else:
                cells.append(_pair_cell(*table.pairs[left, above], most, table.task))
        grid[f"- {above}"] = numbers(cells)
    return grid


def _pair_cell(difference: Difference, p_adjusted: float | None, most: int, task: Task) -> Cell:
    found = verdict(difference, p_adjusted, task.higher_is_better)
    word = f" {found.text}" if found.significant else ""
    cell = mean_cell(difference, task, "+", word + runs_note(difference.n, most))
    return cell.styled(style_of(found, None))


def sweep(table: Table) -> Grid:
    """Return the validation scores of the settings that were tried: encodings down, values across."""
    if not table.trials:
        return {}
    chosen = {row.label: row.config.selected_values for row in table.rows}
    columns: dict[str, dict[str, Cell]] = {}
    for trial in sorted(table.trials, key=lambda trial: trial.order):
        cell = _trial_cell(trial, chosen.get(trial.label) == trial.values)
        columns.setdefault(trial.text, {})[trial.label] = cell
    labels = sorted({trial.label for trial in table.trials}, key=natural)
    grid = {"Encoding": words(labels)}
    for name, cells in columns.items():
        grid[name] = numbers(cells.get(label, Cell(NOTHING)) for label in labels)
    return grid


def _trial_cell(trial: Trial, chosen: bool) -> Cell:
    style: Style = "chosen" if chosen else ""
    if trial.score is not None:
        return Cell(f"{trial.score:.4f}", round(trial.score, 4), style)
    # Without a score and without a failure, runs are still missing.
    return Cell("incomplete" if all(record.ok for record in trial.records) else "failed", None, style)
