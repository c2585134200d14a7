"""Titles, units and notes of tables in words, the same in every writer and picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pebench.config import assignments
from pebench.tasks import Task

if TYPE_CHECKING:
    from pebench.results.contrasts import Series
    from pebench.results.tables import Table


def title(table: "Table") -> str:
    """Return the task of a table with what its runs have in common."""
    return f"{table.task.name} ({group_title([table])}, protocol {table.protocol})"


def heading(table: "Table", tables: Sequence["Table"]) -> str:
    """Return the task of a table, with what tells it from the other tables of that task on a page.

    Args:
        table: A table.
        tables: All tables of the page.
    """
    others = [other for other in tables if other.task.name == table.task.name]
    parts = [f"{table.task.name}"]
    if len({other.config.tier for other in others}) > 1:
        parts.append(f"tier {table.config.tier}")
    parts += assignments(table.config.values_of(table.differing))
    if len({(other.config.regime, other.config.selected) for other in others}) > 1:
        selected = ", ".join(table.config.selected)
        parts += [f"matched by {table.config.regime}", f"{selected} selected" if selected else "nothing selected"]
    if len({other.protocol for other in others}) > 1:
        parts.append(f"protocol {table.protocol}")
    return ", ".join(parts)


def own_part(table: "Table", tables: Sequence["Table"]) -> str:
    """Return what tells a table from the others of its task on a page; empty where there is no other.

    Args:
        table: A table.
        tables: All tables of the page.
    """
    return heading(table, tables).removeprefix(table.task.name).removeprefix(", ")


def group_title(tables: Sequence["Table"]) -> str:
    """Return the tier, settings and regime that comparable tables have in common."""
    config, named = tables[0].config, [table.naming_settings.items() for table in tables]
    common = dict(item for item in named[0] if all(item in settings for settings in named))
    parts = [f"tier {config.tier}", *assignments(common)]
    if config.regime != "width":
        parts.append(f"matched by {config.regime}")
    if config.selected:
        parts.append(f"{', '.join(config.selected)} selected")
    return ", ".join(parts)


def series_title(series: "Series") -> str:
    """Return the task and the setting that a series varies."""
    return f"{series.first.task.name} by {series.setting} (protocol {series.first.protocol})"


def series_heading(series: "Series", every: Sequence["Series"]) -> str:
    """Return the task and the setting that a series varies, with the protocol where several of them have the task.

    Args:
        series: A series.
        every: All series of the page.
    """
    several = sum(other.first.task.name == series.first.task.name for other in every) > 1
    return series_title(series) if several else f"{series.first.task.name} by {series.setting}"


def series_gap(series: "Series") -> str:
    """Return the values of the setting that nothing is tested with, in a sentence; empty if there are none."""
    values = ", ".join(map(str, series.untested))
    return f"Nothing tested yet with {series.setting} {values}." if values else ""


def column_title(table: "Table", along: str) -> str:
    """Return the name of a table beside others: its task, or its value of the setting that they differ in."""
    return f"{along.partition('.')[2]} {table.config.values_of([along])[along]}" if along else table.task.name


def headline(task: Task) -> str:
    """Return the headline metric with its unit and direction."""
    return f"{task.metric.replace('_', ' ')}{' %' * task.percent} {arrow(task)}"


def arrow(task: Task) -> str:
    """Return an arrow that points to the better values."""
    return "↑" if task.higher_is_better else "↓"


def difference_unit(task: Task) -> str:
    """Return the unit that differences of the headline metric are shown in."""
    return "points" if task.percent else task.metric.replace("_", " ")


def margin_text(margin: float, task: Task) -> str:
    """Return a margin in the unit that a table shows.

    Example:
        >>> from pebench.tasks import find_task
        >>> margin_text(0.005, find_task("vit-digits")), margin_text(0.005, find_task("lm-grammar"))
        ('0.5 points', '0.005 bits per byte')
    """
    return f"{task.scale * margin:g} {difference_unit(task)}"


def runs_note(count: int, usual: int, failed: int = 0) -> str:
    """Return a note that a figure is of fewer runs than those beside it, or that runs of it failed; else nothing.

    Example:
        >>> runs_note(8, 8), runs_note(4, 8, failed=1)
        ('', ' (n=4, 1 failed)')
    """
    notes = [f"n={count}"] if count < usual else []
    notes += [f"{failed} failed"] if failed else []
    return f" ({', '.join(notes)})" if notes else ""
