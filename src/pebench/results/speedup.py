"""Effective speedup: how much sooner the better of two rows came to the result of the other one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pebench.results.stats import estimate
from pebench.results.tables import Row, Table
from pebench.runs.records import Record

MIN_POINTS = 3
"""Fewest evaluations of a run by which it is measured."""

LOSS = "val/loss"
Curve = list[tuple[float, float]]
"""Step and validation loss of each evaluation, in order."""


@dataclass(frozen=True)
class Speedup:
    """The factor by which a row is faster than the reference, as a geometric mean over seeds.

    Args:
        factor: Above 1 where the row is the faster one.
        low: Lower end of its 95 % interval; ``None`` for one seed.
        high: Upper end.
        n: Number of seeds.
        bound: True if at some seed the faster one was there by its first evaluation, so that it is faster still.
    """

    factor: float
    low: float | None
    high: float | None
    n: int
    bound: bool


def speedups(table: Table) -> dict[str, Speedup]:
    """Return the speedup of each row over the reference by label, as far as learning curves tell it.

    At each seed, the run with the lower loss, or of equal ones the sooner, is the faster one: by the ratio of the
    step at which the other had its lowest loss to that at which it passed this loss itself, on straight lines between
    evaluations. Where the reference is the faster one, the ratio counts inversely. It is 1 where the better run came
    to that loss no sooner.

    The learning rate still has to fall when a loss is passed on the way, so that a run that ends there would most
    likely do better: speedups are nearer to 1 than those of runs with fewer steps of their own.

    Args:
        table: A table whose weights the validation loss chooses; others have none.
    """
    reference = table.row(table.reference)
    if reference is None or table.task.monitored(table.config.train.monitor)[0] != LOSS:
        return {}
    others = {record.config.seed: _curve(record) for record in reference.finished}
    found = {row.label: _speedup(row, others) for row in table.rows if row is not reference}
    return {label: speedup for label, speedup in found.items() if speedup is not None}


def _speedup(row: Row, others: dict[int, Curve]) -> Speedup | None:
    """Return a row's speedup over runs at the same seeds; ``None`` where none has enough evaluations."""
    logs, bound = list[float](), False
    for record in row.finished:
        mine, other = _curve(record), others.get(record.config.seed, [])
        if min(len(mine), len(other)) < MIN_POINTS:
            continue
        ahead = _lowest(mine)[::-1] <= _lowest(other)[::-1]
        faster, slower, sign = (mine, other, 1) if ahead else (other, mine, -1)
        step, loss = _lowest(slower)
        # The slower one may have had its lowest loss early, as where it never learns: then none was sooner.
        logs.append(sign * max(0.0, math.log(step / _passes(faster, loss))))
        bound = bound or faster[0][1] <= loss
    if not logs:
        return None
    mean = estimate(logs)
    low, high = None, None
    if mean.half_width is not None:
        low, high = math.exp(mean.mean - mean.half_width), math.exp(mean.mean + mean.half_width)
    return Speedup(math.exp(mean.mean), low, high, len(logs), bound)


def _curve(record: Record) -> Curve:
    return [(point["step"], point[LOSS]) for point in record.curve if LOSS in point and point["step"] > 0]


def _lowest(curve: Curve) -> tuple[float, float]:
    """Return the step and the loss of the first evaluation with the lowest loss."""
    return min(curve, key=lambda point: point[1])


def _passes(curve: Sequence[tuple[float, float]], loss: float) -> float:
    """Return the step at which a curve first comes to a loss that it goes below; at its first evaluation at best."""
    before = curve[0]
    for point in curve:
        if point[1] <= loss:
            fall = before[1] - point[1]
            part = (before[1] - loss) / fall if fall > 0 else 1.0
            return before[0] + part * (point[0] - before[0])
        before = point
    raise ValueError(f"expected a curve that comes to {loss}, got {curve}")
