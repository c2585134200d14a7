"""What a page shows of each table: cells with what they sort by, pictures, facts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from pebench import figures, report
from pebench.across import Interval, Standing, Summary
from pebench.origin import commands, warnings
from pebench.web.inline import inline
from pebench.tables import REGIME_TEXT, Table, comparable

MISSING = report.NOTHING
SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
NUMBER = re.compile(r"([+-]?(?:[\d,]*\.)?[\d,]*\d(?:e[+-]?\d+)?)(?: ([kMGT]))?(?:$| )")


@dataclass(frozen=True)
class Grid:
    """A table that can be sorted.

    Args:
        title: What a reader of the screen is told.
        headers: Of the columns, the encoding first.
        rows: Cells of each row, as text and what it sorts by: a number, an empty string if there is none, or None,
            which sorts by the text.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[tuple[str, float | str | None], ...], ...]


def grid(title: str, columns: Mapping[str, list[str]]) -> Grid:
    """A grid of columns of text.

    Args:
        title: Of the grid.
        columns: Header to cells, the encodings first.

    Example:
        >>> grid("", {"Encoding": ["add", "rope"], "n": ["3 (1 failed)", "–"]}).rows
        ((('add', None), ('3 (1 failed)', 3.0)), (('rope', None), ('–', '')))
    """
    first, *rest = columns.values()
    keyed = [[(text, None) for text in first], *(_keyed(cells) for cells in rest)]
    return Grid(title, tuple(columns), tuple(zip(*keyed, strict=True)))


def _keyed(cells: list[str]) -> list[tuple[str, float | str | None]]:
    numbers = [number(cell) for cell in cells]
    if not any(value is not None for value in numbers):
        return [(cell, None) for cell in cells]
    return [(cell, "" if value is None else value) for cell, value in zip(cells, numbers, strict=True)]


def number(text: str) -> float | None:
    """The number that a cell begins with, as our tables write it; None if it does not.

    Example:
        >>> number("-0.0538 ± 0.0033"), number("1,148,802"), number("6.05 M"), number("3e-05"), number("better")
        (-0.0538, 1148802.0, 6050000.0, 3e-05, None)
    """
    found = NUMBER.match(text)
    return float(found[1].replace(",", "")) * SI[found[2] or ""] if found else None


def grids(tables: list[Table]) -> list[Grid]:
    """An overview of each group of tables that compare: encodings down, tasks across."""
    found = []
    for group in comparable(tables):
        labels = sorted({row.label for table in group for row in table.rows})
        columns = {"Encoding": labels}
        for table in group:
            cells = {row.label: report._interval(row.estimate, table.task) for row in table.rows}
            columns[f"{table.task.name}: {table.task.headline}"] = [cells.get(label, MISSING) for label in labels]
        found.append(grid(f"tier {group[0].config.tier}, protocol {group[0].protocol}", columns))
    return found


def section(table: Table, stem: str, drawn: bool) -> dict[str, Any]:
    """What is said of one table, for the template.

    Args:
        table: What is shown.
        stem: Its identifier, and what the names of its pictures begin with.
        drawn: Whether it has pictures.
    """
    pictures = figures.of_table(table, stem) if drawn else ()
    return {
        "id": stem,
        "title": report._title(table),
        "summary": f"{table.task.summary}.",
        "grid": grid(table.task.name, report._columns(table)),
        "pictures": [_shown(picture) for picture in pictures],
        "selection": _selection(table),
        "warnings": warnings(table),
        "absent": report._absent(table),
        "commands": commands(table),
        "facts": [
            f"Matched by: {REGIME_TEXT[table.config.regime]}",
            f"Weights chosen by: {report._BEST[table.task.select[1]]} {table.task.select[0]}",
            f"Splits: {table.task.splits}",
            *report._origin(table),
        ],
    }


def _shown(picture: figures.Picture) -> dict[str, Any]:
    return {"title": picture.title, "caption": picture.caption, "svg": inline(picture)}


def _selection(table: Table) -> dict[str, Any] | None:
    """The sweep that settings were selected by; None if none were."""
    if not table.trials:
        return None
    labels = sorted({trial.label for trial in table.trials})
    cells: dict[str, dict[str, str]] = {}
    for trial in table.trials:
        unfinished = "incomplete" if all(record.ok for record in trial.records) else "failed"
        text = unfinished if trial.score is None else f"{trial.score:.4f}"
        cells.setdefault(", ".join(map(str, trial.values.values())), {})[trial.label] = text
    columns = {value: [found.get(label, MISSING) for label in labels] for value, found in cells.items()}
    names, metric = ", ".join(table.config.selected), table.task.select[0]
    said = f"Selected on validation data, by seeds that are not tested: {names}. Cells: {metric} of each value."
    return {"said": said, "grid": grid(f"{table.task.name}: selection", {"Encoding": labels, **columns})}


def summary_grid(summary: Summary, number: int) -> dict[str, Any]:
    """What is said of encodings across tasks, for the template.

    Args:
        summary: Of tables that compare.
        number: From 1, of this one among them.
    """
    columns = {
        "Encoding": [row.label for row in summary.rows],
        "Average rank ↓": [_interval(row.rank) for row in summary.rows],
        "Interquartile mean of scores ↑": [_interval(row.iqm) for row in summary.rows],
        "P(better than reference) ↑": [_interval(row.improvement) for row in summary.rows],
        "Failed runs": [_failed(row) for row in summary.rows],
    }
    told = [f"{task} ({n} seeds)" for task, n in summary.tasks.items()]
    lines = [f"Left out: {name} has no runs of {', '.join(tasks)}" for name, tasks in summary.lacking.items()]
    if summary.friedman_p is None:
        lines.append("Too few tasks or encodings to test ranks.")
    else:
        lines.append(f"Friedman's test: p = {summary.friedman_p:.2g}")
    picture = figures.of_summary(summary, number)
    return {
        "grid": grid("across tasks", columns),
        "tasks": ", ".join(told),
        "lines": lines,
        "pictures": [_shown(picture)] if picture else [],
    }


def _failed(row: Standing) -> str:
    if not row.failed:
        return "0"
    without = MISSING if row.iqm_finished is None else f"{row.iqm_finished:.2f}"
    return f"{row.failed} (score 0; without them {without})"


def _interval(value: Interval | None) -> str:
    return MISSING if value is None else f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"


def notes() -> list[Markup]:
    """The notes below every page, a paragraph each."""
    body = report.NOTES.partition("\n\n")[2]
    items = [" ".join(item.split()) for item in body.removeprefix("- ").split("\n- ")]
    return [Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(item)))) for item in items]
