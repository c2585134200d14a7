"""Grids of further measurements: length or resolution extrapolation, and position variance shares."""

import re
from collections.abc import Mapping

from pebench.results.cells import NOTHING, Cell, Grid, interval_cell, mean_cell, numbers, words
from pebench.results.stats import estimate
from pebench.results.tables import Row, Table
from pebench.results.titles import headline, runs_note
from pebench.tasks import Task

SIZE = re.compile(r"[0-9.]+x")
"""Label of a test split at another size than in training: ``2x``."""


def size_factor(label: str) -> float | None:
    """Return how many times as large as in training a test split with this label is; None for a control.

    Example:
        >>> size_factor("1.5x"), size_factor("sliding")
        (1.5, None)
    """
    return float(label[:-1]) if SIZE.fullmatch(label) else None


def extrapolation(table: Table) -> Grid:
    """Return the headline metric at other sizes than in training, and its controls; empty where none was measured."""
    task, found = table.task, [row.extrapolation(table.task.metric) for row in table.rows]
    labels = {label for sizes in found for label in sizes}
    if not labels:
        return {}
    grid = {"Encoding": words(row.label for row in table.rows)}
    grid[f"{headline(task)} at 1x"] = numbers(mean_cell(row.estimate, task) for row in table.rows)
    # Controls, which have no size, come before the sizes.
    for label in sorted(labels, key=lambda label: (size_factor(label) or 0.0, label)):
        cells = [_at_size(row, sizes.get(label, {}), task) for row, sizes in zip(table.rows, found, strict=True)]
        grid[label if size_factor(label) is None else f"at {label}"] = numbers(cells)
    return grid


def _at_size(row: Row, seeds: Mapping[int, float], task: Task) -> Cell:
    """Return the mean over the seeds that have a value, with a note where not all seeds of the row do."""
    if not seeds:
        return Cell(NOTHING)
    return mean_cell(estimate(seeds.values()), task, note=runs_note(len(seeds), len(row.values)))


def position_shares(table: Table) -> Grid:
    """Return the position variance share of what enters each block, in percent; empty where it was not measured."""
    depth = max((len(shares) for row in table.rows for shares in row.position_shares["trained"].values()), default=0)
    if not depth:
        return {}
    grid = {
        "Encoding": words(row.label for row in table.rows),
        "input, untrained": numbers(_share(row, "untrained", 0) for row in table.rows),
        "input": numbers(_share(row, "trained", 0) for row in table.rows),
    }
    for layer in range(1, depth):
        name = f"into block {layer + 1}" if layer + 1 < depth else "into the output"
        grid[name] = numbers(_share(row, "trained", layer) for row in table.rows)
    return grid


def _share(row: Row, stage: str, layer: int) -> Cell:
    """Return the mean share over seeds in percent, with a note where not all seeds have it."""
    found = [shares[layer] for shares in row.position_shares[stage].values() if layer < len(shares)]
    known = [share for share in found if share is not None]
    if not known:
        return Cell(NOTHING)
    return interval_cell(estimate(known), 100, 1, note=runs_note(len(known), len(row.values)))
