"""The grid of what the models of a task reach, beside published ones."""

from collections.abc import Sequence
from dataclasses import replace

from pebench.results.cells import (
    NOTHING,
    Cell,
    Grid,
    decimal_cell,
    interval_cell,
    mean_cell,
    numbers,
    rate_cell,
    si_cell,
    words,
)
from pebench.results.citations import link
from pebench.results.quality import Seen, best_and_median, seen, word_perplexity
from pebench.results.tables import Row, Table
from pebench.results.titles import headline, own_part
from pebench.tasks import Task
from pebench.tasks.published import Published

WORDS = "word perplexity ↓"


def quality(tables: Sequence[Table], every: Sequence[Table]) -> Grid:
    """Return the best and the median row of each table of a task, then published models; empty without any of these.

    Args:
        tables: All tables of one task, at least one.
        every: All tables of the page.
    """
    task = tables[0].task
    if not task.published:
        return {}
    ours = [(table, kind, row) for table in tables for kind, row in best_and_median(table)]
    names = [
        ", ".join(filter(None, ("ours", own_part(table, every), f"{kind}: {row.label}"))) for table, kind, row in ours
    ]
    grid = {
        "Model": words([*names, *(f"{one.model} ({link(one.cite).text})" for one in task.published)]),
        "Params": numbers(
            [si_cell(row.costs["parameters_total"]) for _, _, row in ours]
            + [si_cell(one.parameters) for one in task.published]
        ),
        headline(task): numbers(
            [_plain(mean_cell(row.estimate, task)) for _, _, row in ours]
            + [_value(one, task) for one in task.published],
            task.higher_is_better,
        ),
    }
    if task.test_text:
        found = [word_perplexity(row, table) for table, _, row in ours]
        grid[WORDS] = numbers(
            [_plain(interval_cell(one, 1, 1)) if one else Cell(NOTHING) for one in found]
            + [decimal_cell(one.word_perplexity, 1) for one in task.published]
        )
    grid["Training and remarks"] = words(
        [_training(seen(table), row) for table, _, row in ours] + [_published_training(one) for one in task.published]
    )
    return grid


def _plain(cell: Cell) -> Cell:
    """Return a cell without its interval drawn: published results have none to compare with."""
    return replace(cell, bar=None)


def _value(one: Published, task: Task) -> Cell:
    return decimal_cell(None if one.value is None else task.scale * one.value, task.digits)


def _training(found: Seen, row: Row) -> str:
    """Return the epochs, and the tokens of a running text for each parameter, as far as they are known."""
    parts = [] if found.epochs is None else [epochs_text(found.epochs)]
    ratio = found.per_parameter(row)
    if ratio is not None:
        parts.append(f"{rate_cell(ratio).text} tokens a parameter")
    return ", ".join(parts) or NOTHING


def epochs_text(epochs: float) -> str:
    """Return a number of epochs in words.

    Example:
        >>> epochs_text(0.8731), epochs_text(200)
        ('0.873 epochs', '200 epochs')
    """
    return f"{rate_cell(epochs).text} epochs"


def _published_training(one: Published) -> str:
    parts = [] if one.epochs is None else [epochs_text(one.epochs)]
    return ", ".join([*parts, *filter(None, [one.remark])]) or NOTHING
