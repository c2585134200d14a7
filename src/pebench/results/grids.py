"""What stands in the cells: tables as columns of text, for every way of writing them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pebench.config import assignments
from pebench.formatting import natural, si_text
from pebench.results.across import Interval, Standing, Summary
from pebench.results.page import Equivalence, Page, Series
from pebench.results.stats import ALPHA, BETTER_OR_WORSE, Estimate, estimate, verdict
from pebench.results.tables import Row, Table
from pebench.tasks import Task

NOTHING = "–"
WORDS = ("Encoding", "Contrast", "Verdict")
"""Columns of words, which stand to the left; numbers stand to the right."""

SIZE = re.compile(r"[0-9.]+x")
"""Of a test split that is not of the trained size: ``2x``."""

MOST_SHOWN = 12
"""Of tables with more rows pairs stand in the JSON alone: in text they would be a page of their own."""

Grid = dict[str, list[str]]
"""Header to cells."""


def title(table: Table) -> str:
    """What a table's runs have in common, in a line."""
    return f"{table.task.name} ({group_title([table])}, protocol {table.protocol})"


def group_title(tables: Sequence[Table]) -> str:
    """What comparable tables have in common, in a line."""
    config, told = tables[0].config, [table.told.items() for table in tables]
    words = [f"tier {config.tier}", *assignments(dict(item for item in told[0] if all(item in one for one in told)))]
    words += [f"matched by {config.regime}"] * (config.regime != "width")
    words += [f"{', '.join(config.selected)} selected"] * bool(config.selected)
    return ", ".join(words)


def results(table: Table, page: Page) -> Grid:
    """What a table finds."""
    task, rows = table.task, table.rows
    grid = {
        "Encoding": [row.label for row in rows],
        headline(task): [_interval(row.estimate, task) for row in rows],
        "n": [f"{len(row.values)} ({len(row.failed)} failed)" if row.failed else str(len(row.values)) for row in rows],
        f"Δ to {table.reference}{' (points)' * task.percent}": [
            _interval(row.difference, task, sign="+") for row in rows
        ],
        "Verdict": _verdicts(table, page),
        "p": [p_text(row.p_adjusted) for row in rows],
    }
    if any("test/perplexity" in record.metrics for record in table.records):
        grid["perplexity ↓"] = [_cell(row.perplexity, "{:.2f}") for row in rows]
    for name in rows[0].own:
        grid[name.partition(".")[2]] = [_cell(_own(row, name)) for row in rows]
    return grid


def _own(row: Row, name: str) -> Any:
    """A setting of a row's own; where it is not given, what that stands for."""
    usual = {"model.d_ff": 4 * row.config.model.d_model}.get(name)
    return usual if row.own[name] is None else row.own[name]


def factor(label: str) -> float | None:
    """How many times as large as in training a test split is that is labelled so; None for a control.

    Example:
        >>> factor("1.5x"), factor("sliding")
        (1.5, None)
    """
    return float(label[:-1]) if SIZE.fullmatch(label) else None


def beyond(table: Table) -> Grid:
    """The headline metric at other sizes than the trained one, and its controls; empty where none was measured."""
    task, found = table.task, [row.beyond(table.task.metric) for row in table.rows]
    labels = sorted({label for sizes in found for label in sizes}, key=lambda label: (factor(label) or 0.0, label))
    if not labels:
        return {}
    grid = {"Encoding": [row.label for row in table.rows]}
    grid[f"{headline(task)} at 1x"] = [_interval(row.estimate, task) for row in table.rows]
    for label in labels:
        cells = [_at_size(row, sizes.get(label, {}), task) for row, sizes in zip(table.rows, found, strict=True)]
        grid[label if factor(label) is None else f"at {label}"] = cells
    return grid


def _at_size(row: Row, seeds: Mapping[int, float], task: Task) -> str:
    """The interval over the seeds that have a value; and how many, where not all of a row do."""
    return f"{_interval(estimate(seeds.values()), task)}{fewer(len(seeds), len(row.values))}" if seeds else NOTHING


def position_shares(table: Table) -> Grid:
    """How much of what is in the residual stream is position, in percent; empty where it was not measured."""
    depth = max((len(shares) for row in table.rows for shares in row.position_shares["trained"].values()), default=0)
    if not depth:
        return {}

    def cells(stage: str, layer: int) -> list[str]:
        return [_share(row, stage, layer) for row in table.rows]

    grid = {"Encoding": [row.label for row in table.rows]}
    grid |= {"input, untrained": cells("untrained", 0), "input": cells("trained", 0)}
    into = {layer: f"into block {layer + 1}" if layer + 1 < depth else "into the output" for layer in range(1, depth)}
    return grid | {name: cells("trained", layer) for layer, name in into.items()}


def _share(row: Row, stage: str, layer: int) -> str:
    """The mean over seeds of a share of position, in percent; and how many, where not all have it."""
    found = [shares[layer] for shares in row.position_shares[stage].values() if layer < len(shares)]
    known = [share for share in found if share is not None]
    if not known:
        return NOTHING
    return plus_minus(estimate(known), 100, 1) + fewer(len(known), len(row.values))


def series_title(series: Series) -> str:
    """What is compared along a setting, in a line."""
    return f"{series.first.task.name} by {series.setting} (protocol {series.first.protocol})"


def series_gap(series: Series) -> str:
    """The values of the setting that nothing is tested with, in words; empty if there are none."""
    values = ", ".join(map(str, series.untested))
    return f"Nothing tested yet with {series.setting} {values}." if values else ""


def changes(series: Series, page: Page) -> Grid:
    """How differences change from the first value of the setting to the last; empty where none is known at both."""
    task, found = series.first.task, page.changes(series)
    if not found:
        return {}
    ends, unit = (series.ordered[0], series.ordered[-1]), f"{difference_unit(task)} {_arrow(task)}"
    grid = {"Contrast": [f"{change.first} - {change.second}" for change in found]}
    for place, table in enumerate(ends):
        head = f"{_column(table, series.setting)}\n{unit}"
        grid[head] = [_interval(change.ends[place], task, sign="+") for change in found]
    return grid | {
        "change": [_interval(change.difference, task, sign="+") for change in found],
        "n": [str(change.difference.n) for change in found],
        "Verdict": [change.verdict for change in found],
        "p": [p_text(change.p_adjusted) for change in found],
    }


def costs(table: Table) -> Grid:
    """What the encodings of a table cost."""
    found = [row.costs for row in table.rows]
    return {
        "Encoding params": [_cell(cost["parameters_encoding"], "{:,}") for cost in found],
        "Total params": [_cell(cost["parameters_total"], "{:,}") for cost in found],
        "FLOPs/sample": [_cell(si_text(cost["flops_per_sample"])) for cost in found],
        f"{table.task.unit}/s": [_cell(_rate(cost["throughput"])) for cost in found],
        "Memory (GiB)": [_cell(cost["peak_memory_gib"], "{:.2f}") for cost in found],
    }


def _verdicts(table: Table, page: Page) -> list[str]:
    equivalent = page.equivalences(table)

    def words(row: Row) -> str:
        if row.label == table.reference:
            return "reference"
        return f"{row.verdict}{_within(equivalent.get(row.label), table.task)}" if row.verdict else NOTHING

    return [words(row) for row in table.rows]


def _within(found: Equivalence | None, task: Task) -> str:
    return f"; equivalent within {margin_text(found.margin, task)}" if found and found.holds else ""


def contrasts(table: Table, page: Page) -> Grid:
    """What the suite declared to be compared beside the reference; empty where it declared nothing of these rows."""
    task, found = table.task, page.contrasts(table)
    if not found:
        return {}
    return {
        "Contrast": [f"{contrast.first} - {contrast.second}" for contrast in found],
        f"Δ{' (points)' * task.percent}": [_interval(contrast.difference, task, sign="+") for contrast in found],
        "n": [str(contrast.difference.n) for contrast in found],
        "Verdict": [f"{contrast.verdict}{_within(contrast.equivalent, task)}" for contrast in found],
        "p": [p_text(contrast.p_adjusted) for contrast in found],
    }


def pairs(table: Table) -> Grid:
    """Every two rows: the one at the left minus the one above, with what may be said of it.

    Empty as `Table.pairs`, and for more than `MOST_SHOWN` rows.
    """
    task, labels = table.task, [row.label for row in table.rows]
    if not table.pairs or len(labels) > MOST_SHOWN:
        return {}
    most = max(difference.n for difference, _ in table.pairs.values())

    def cell(left: str, above: str) -> str:
        if labels.index(left) <= labels.index(above):
            return ""
        if (left, above) not in table.pairs:
            return NOTHING
        difference, p = table.pairs[left, above]
        word = verdict(difference, p, task.higher_is_better)
        text = f"{_interval(difference, task, sign='+')}{f' {word}' * (word in BETTER_OR_WORSE)}"
        return text + fewer(difference.n, most)

    found = {f"- {above}": [cell(left, above) for left in labels[1:]] for above in labels[:-1]}
    return {"Encoding": labels[1:]} | found


def side_by_side(tables: Sequence[Table], page: Page, along: str = "") -> Grid:
    """Comparable tables side by side: rows encodings, columns tasks. Cells of fewer runs than others say so.

    Args:
        tables: To compare.
        page: That they are of.
        along: The setting that tells the columns apart, if it is not the task.
    """
    grid = {"Encoding": _labels(tables, page)}
    for table in tables:
        most = max(len(row.values) for row in table.rows)
        cells = {
            row.label: f"{_interval(row.estimate, table.task)}{fewer(len(row.values), most, len(row.failed))}"
            for row in table.rows
            if row.estimate
        }
        head = f"{_column(table, along)}\n{headline(table.task)}, n={most}"
        grid[head] = _filled(cells, grid["Encoding"], table, page)
    return grid


def _labels(tables: Sequence[Table], page: Page) -> list[str]:
    """The rows of tables, and those that they lack."""
    return sorted({label for table in tables for label in page.labels(table)}, key=natural)


def _column(table: Table, along: str) -> str:
    """What tells a table apart from those beside it."""
    return f"{along.partition('.')[2]} {table.config.values_of([along])[along]}" if along else table.task.name


def fewer(count: int, most: int, failed: int = 0) -> str:
    """That something is of fewer runs than what stands beside it, or that runs of it failed; empty if neither.

    Example:
        >>> fewer(8, 8), fewer(4, 8, failed=1)
        ('', ' (n=4, 1 failed)')
    """
    told = [f"n={count}"] * (count < most) + [f"{failed} failed"] * bool(failed)
    return f" ({', '.join(told)})" if told else ""


def _filled(cells: dict[str, str], labels: list[str], table: Table, page: Page) -> list[str]:
    """A table's cells by label; where there is none, why: its runs failed, are missing, have no pair, or none asked."""
    asked = page.labels(table)

    def nothing(label: str) -> str:
        row = table.row(label)
        if row is None:
            return "missing" if label in asked else NOTHING
        return "no pair" if row.values else "failed" if row.failed else NOTHING

    return [cells.get(label) or nothing(label) for label in labels]


def differences(tables: Sequence[Table], page: Page, along: str = "") -> Grid:
    """Comparable tables' differences to the reference side by side, with what may be said of them; may be empty.

    Args:
        tables: To compare.
        page: That they are of.
        along: The setting that tells the columns apart, if it is not the task.
    """
    if not any(row.difference for table in tables for row in table.rows):
        return {}
    grid = {"Encoding": [label for label in _labels(tables, page) if label != page.reference]}
    for table in tables:
        equivalent = page.equivalences(table)
        most = max((row.difference.n for row in table.rows if row.difference), default=0)
        cells = {
            row.label: f"{_difference(row, table.task, equivalent.get(row.label))}{fewer(row.difference.n, most)}"
            for row in table.rows
            if row.difference
        }
        head = f"{_column(table, along)}\n{difference_unit(table.task)} {_arrow(table.task)}"
        grid[head] = _filled(cells, grid["Encoding"], table, page)
    return grid


def _difference(row: Row, task: Task, equivalent: Equivalence | None) -> str:
    """The difference to the reference, with what may be said of it."""
    words = [row.verdict] if row.verdict in BETTER_OR_WORSE else []
    words += ["equivalent"] if equivalent and equivalent.holds else []
    return f"{_interval(row.difference, task, sign='+')} {', '.join(words)}".rstrip()


def sweep(table: Table) -> Grid:
    """What settings were selected from: encodings down, values across, the chosen ones between ``**``."""
    chosen = {row.label: row.config.selected_values for row in table.rows}
    columns: dict[str, dict[str, str]] = {}
    for trial in sorted(table.trials, key=lambda trial: trial.order):
        unfinished = "incomplete" if all(record.ok for record in trial.records) else "failed"
        text = unfinished if trial.score is None else f"{trial.score:.4f}"
        mark = "**" if chosen.get(trial.label) == trial.values else ""
        columns.setdefault(", ".join(map(str, trial.values.values())), {})[trial.label] = f"{mark}{text}{mark}"
    labels = sorted({trial.label for trial in table.trials}, key=natural)
    grid = {"Encoding": labels}
    return grid | {name: [cells.get(label, NOTHING) for label in labels] for name, cells in columns.items()}


def standings(summary: Summary) -> Grid:
    """Encodings across tasks."""
    rows = summary.rows
    grid = {
        "Encoding": [row.label for row in rows],
        "Interquartile mean ↑": [_limits(row.iqm, 3) for row in rows],
        "Average rank ↓": [_limits(row.rank, 2) for row in rows],
        f"P(better than {summary.reference})": [_improvement(row, summary.reference) for row in rows],
    }
    if any(row.failed for row in rows):
        grid["Failed runs"] = [f"{row.failed} †" if row.failed else "0" for row in rows]
        grid["Interquartile mean, excluding failed ↑"] = [_cell(row.iqm_finished, "{:.3f}") for row in rows]
    return grid


def _improvement(row: Standing, reference: str) -> str:
    if row.label == reference:
        return "reference"
    return NOTHING if row.improvement is None else _limits(row.improvement, 2)


def _limits(value: Interval, digits: int) -> str:
    """``0.81 [0.74, 0.90]``."""
    if value.low is None:
        return f"{value.mean:.{digits}f}"
    return f"{value.mean:.{digits}f} [{value.low:.{digits}f}, {value.high:.{digits}f}]"


def headline(task: Task) -> str:
    """The headline metric with its direction."""
    return f"{task.metric.replace('_', ' ')}{' %' * task.percent} {_arrow(task)}"


def _arrow(task: Task) -> str:
    """Where better is."""
    return "↑" if task.higher_is_better else "↓"


def difference_unit(task: Task) -> str:
    """What differences of the headline metric are shown in."""
    return "points" if task.percent else task.metric.replace("_", " ")


def margin_text(margin: float, task: Task) -> str:
    """A margin in the unit that a table shows.

    Example:
        >>> from pebench.tasks import find_task
        >>> margin_text(0.005, find_task("vit-digits")), margin_text(0.005, find_task("lm-grammar"))
        ('0.5 points', '0.005 bits per byte')
    """
    return f"{task.scale * margin:g} {difference_unit(task)}"


def _interval(value: Estimate | None, task: Task, sign: str = "") -> str:
    """``61.23 ± 0.45``; an accuracy in percent with two digits, anything else as it is with four."""
    if value is None:
        return NOTHING
    return plus_minus(value, task.scale, task.digits, sign)


def plus_minus(value: Estimate, scale: int, digits: int, sign: str = "") -> str:
    """The mean, and half its interval if it has one, times `scale`."""
    mean = f"{scale * value.mean:{sign}z.{digits}f}"
    return mean if value.half_width is None else f"{mean} ± {scale * value.half_width:.{digits}f}"


def p_text(p: float | None) -> str:
    """A p-value with three digits, or four if it would be that of the verdict; smaller ones are told alike.

    Example:
        >>> p_text(0.0321), p_text(0.0496), p_text(0.0004), p_text(None)
        ('0.032', '0.0496', '<0.001', '–')
    """
    if p is None:
        return NOTHING
    return "<0.001" if p < 0.001 else f"{p:.4f}" if f"{p:.3f}" == f"{ALPHA:.3f}" else f"{p:.3f}"


def _cell(value: Any, pattern: str = "{}") -> str:
    return NOTHING if value is None else pattern.format(value)


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
