"""Grids of further measurements: length or resolution extrapolation, loss by position, position variance shares."""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from pebench.results.cells import NOTHING, Cell, Grid, interval_cell, mean_cell, numbers, words
from pebench.results.stats import estimate
from pebench.results.tables import Row, Table
from pebench.results.titles import headline, runs_note
from pebench.runs.records import PARTS
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
    policies = [{*row.known(lambda record: record.beyond.get("policy"))} for row in table.rows]
    if any(policies):  # older records have none, and their pages stay as they are
        grid["policy"] = words(", ".join(sorted(found)) or NOTHING for found in policies)
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


def beside_control(row: Row, task: Task) -> list[dict[float, float]]:
    """Return how much more a row loses in long windows than on the same tokens in sliding ones, by position.

    Args:
        row: The row.
        task: Its task.

    Returns:
        For each run, the middle of each part of its longest windows, in trained lengths, to the difference of the
        headline metric; only the size that is the longest that all of these runs have. Empty where none has any.
    """
    prefix = f"{task.metric}@"
    found = [curves for record in row.finished if (curves := record.beyond.get("by_position"))]
    common = {name for name in set.intersection(*map(set, found)) if name.startswith(prefix)} if found else set()
    if not common:
        return []
    longest = max(common, key=lambda name: size_factor(name.removeprefix(prefix)) or 0.0)
    return [_differences(curves[longest], size_factor(longest.removeprefix(prefix)) or 1.0) for curves in found]


def _differences(curve: Mapping[str, Sequence[float | None]], factor: float) -> dict[float, float]:
    """Return the difference of both curves by position."""
    parts = len(curve["longer"])
    pairs = enumerate(zip(curve["longer"], curve["sliding"], strict=True))
    ends = [min(part / PARTS, factor) for part in range(parts + 1)]
    return {
        (ends[part] + ends[part + 1]) / 2: longer - sliding
        for part, (longer, sliding) in pairs
        if longer is not None and sliding is not None
    }


def by_position(table: Table) -> Grid:
    """Return what rows lose beside the control within the trained length, and from each length to its double."""
    found = [beside_control(row, table.task) for row in table.rows]
    most = max((place for curves in found for curve in curves for place in curve), default=0.0)
    if not most:
        return {}
    grid, low, high = {"Encoding": words(row.label for row in table.rows)}, 0, 1
    while low < most:
        cells = [_within(curves, low, high, row, table.task) for row, curves in zip(table.rows, found, strict=True)]
        grid[f"{low}x to {high}x" if low else f"up to {high}x"] = numbers(cells)
        low, high = high, 2 * high
    return grid


def _within(curves: Sequence[Mapping[float, float]], low: float, high: float, row: Row, task: Task) -> Cell:
    """Return the mean difference over the positions between two, of runs that have them."""
    places = [[value for place, value in curve.items() if low < place < high] for curve in curves]
    means = [fmean(values) for values in places if values]
    if not means:
        return Cell(NOTHING)
    return mean_cell(estimate(means), task, "+", runs_note(len(means), len(row.values)))


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
