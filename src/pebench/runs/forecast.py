"""Forecasts: how long the runs of a plan will take, and how much room, by earlier ones. Torch-free."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from pebench.config import RunConfig
from pebench.runs.records import FILE_NAME, Record, read_record

SAMPLE = 3
"""Number of earlier runs of a task and encoding that an estimate reads."""


@dataclass(frozen=True)
class Forecast:
    """Estimate of the time and space that runs will take, by earlier ones.

    Args:
        seconds: Time of all runs together, one after the other.
        unknown: Number of runs that nothing earlier resembles; they add nothing to `seconds`.
        bytes_per_run: Size of a run's files on the disk; None if there is no earlier run.
        sampled: Number of earlier runs that were read.
    """

    seconds: float
    unknown: int
    bytes_per_run: float | None
    sampled: int


def forecast(plan: Sequence[RunConfig], out: Path) -> Forecast:
    """Estimate the time and space that the runs of a plan will take, by a few records under an output folder.

    A run takes as long as earlier ones of its kind, whatever their seed. If there are none, it takes as long to start
    and to test, and as long a step, as runs of its task with the same model and data; the width of the model's
    feed-forward layers does not count, as rows are matched by it.
    """
    durations: dict[tuple[Any, ...], list[float]] = {}
    paces: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    sizes = []
    for folder, record in _sample(plan, out):
        config, seconds = record.config, record.duration_s or 0.0
        sizes.append(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
        durations.setdefault(_same(config), []).append(seconds)
        paces.setdefault(_alike(config), []).append(_pace(record, seconds))

    estimates: dict[str, float | None] = {}  # by kind of run, as a plan may have very many seeds
    total, unknown = 0.0, 0
    for config in plan:
        if config.kind_key not in estimates:
            estimates[config.kind_key] = _estimate(config, durations, paces)
        seconds_each = estimates[config.kind_key]
        if seconds_each is None:
            unknown += 1
        else:
            total += seconds_each
    return Forecast(total, unknown, fmean(sizes) if sizes else None, len(sizes))


def _estimate(
    config: RunConfig,
    durations: Mapping[tuple[Any, ...], list[float]],
    paces: Mapping[tuple[Any, ...], list[tuple[float, float]]],
) -> float | None:
    """Return the seconds that a run will take; None if nothing earlier resembles it."""
    if exact := durations.get(_same(config)):
        return fmean(exact)
    if similar := paces.get(_alike(config)):
        return fmean(fixed + step * config.train.max_steps for fixed, step in similar)
    return None


def _sample(plan: Sequence[RunConfig], out: Path) -> Iterable[tuple[Path, Record]]:
    """Yield a few finished runs of each encoding that the plan's tasks were run with, with their folders."""
    folders = {out / config.directory.partition("/")[0] for config in plan}  # one for each task
    parents = [parent for folder in folders for parent in folder.glob("*")]
    for parent in sorted(parents):
        # A few, as a folder may hold thousands, and runs of one kind take much the same time.
        for path in itertools.islice(parent.glob(f"*/{FILE_NAME}"), SAMPLE):
            if (record := read_record(path.parent)) and record.ok:
                yield path.parent, record


def _pace(record: Record, seconds: float) -> tuple[float, float]:
    """Return the seconds that a run took to start and to test, whatever its length, and those of each step."""
    train = record.config.train
    step = seconds / train.max_steps
    if record.throughput:
        # Throughput leaves out start, validation and test, which do not grow with the steps.
        step = min(step, train.batch_size / record.throughput)
    return seconds - step * train.max_steps, step


def _same(config: RunConfig) -> tuple[Any, ...]:
    """Return what runs have in common that take equally long."""
    return _alike(config), config.encoding, config.train.max_steps


def _alike(config: RunConfig) -> tuple[Any, ...]:
    """Return what runs have in common whose steps take about equally long."""
    return config.task, replace(config.model, d_ff=None), config.data, config.train.batch_size
