"""Plans: which runs a suite needs, which of them are done, and what the rest will take. No torch here."""

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from pebench.atomic import replacing
from pebench.config import RunConfig
from pebench.runs.leases import holder_of
from pebench.runs.records import FAILURE, FILE_NAME, Record, find_record, read_record
from pebench.runs.selection import Trial, best
from pebench.runs.suite import Suite

PLANS = "plans"
"""Folder, under an output folder, of what was planned there."""

SAMPLE = 3
"""How many earlier runs of a task and encoding are looked at for estimates."""


@dataclass(frozen=True)
class Plan:
    """The runs of a suite.

    Args:
        suite: What was asked for.
        kinds: One run of each task and encoding.
    """

    suite: Suite
    kinds: Sequence[RunConfig]

    def selecting(self) -> list[RunConfig]:
        """The runs that choose settings by validation; they come first."""
        runs = (
            (seed, config)
            for kind in self.kinds
            for config in self.candidates(kind)
            for seed in self.suite.selecting_seeds(kind.task)
        )
        return _unique(config.with_seed(seed) for seed, config in sorted(runs, key=itemgetter(0)))

    def candidates(self, kind: RunConfig) -> list[RunConfig]:
        """A kind of run with each combination of the values to select from."""
        names = tuple(sorted(self.suite.select))
        return [replace(config, selected=names, stage="select") for config in self.suite.candidates(kind)]

    def chosen(self, kind: RunConfig, records: Mapping[str, Record]) -> RunConfig | None:
        """A kind of run with the values that validation likes best, of equal ones the lowest; None if none is told.

        Nothing is told while a run is missing that might make another choice; see `Trial.settled`.

        Args:
            kind: Of run.
            records: Of the selecting runs, by key.
        """
        if not self.suite.select:
            return kind
        tried = self._tried(kind, records)
        liked = best(trial for _, trial in tried) if all(trial.settled for _, trial in tried) else None
        return next((replace(config, stage="test") for config, trial in tried if trial is liked), None)

    def _tried(self, kind: RunConfig, records: Mapping[str, Record]) -> list[tuple[RunConfig, Trial]]:
        """A kind of run with each combination of values, and what is known of that; the lowest first."""
        seeds, tried = self.suite.selecting_seeds(kind.task), []
        for config in self.candidates(kind):
            known = [record for seed in seeds if (record := records.get(config.with_seed(seed).key))]
            tried.append((config, Trial(config.label, config.selected_values, tuple(known), len(seeds))))
        return sorted(tried, key=lambda pair: pair[1].order)

    def testing(self, records: Mapping[str, Record]) -> list[RunConfig]:
        """The runs that are tested, seed by seed, so that an interrupted suite has complete rows.

        Args:
            records: Of the selecting runs, by key. A kind for which they choose nothing yet is left out.
        """
        kinds = [chosen for kind in self.kinds if (chosen := self.chosen(kind, records))]
        return _unique(config.with_seed(seed) for seed in self.suite.tested_seeds for config in kinds)

    def later(self, records: Mapping[str, Record]) -> int:
        """Number of runs that will be tested with values for which no choice is told yet.

        Args:
            records: Of the selecting runs, by key. A kind whose every value failed to train is never tested.
        """
        if not self.suite.select:
            return 0
        tried = [self._tried(kind, records) for kind in self.kinds]
        return len(self.suite.tested_seeds) * sum(not all(trial.settled for _, trial in trials) for trials in tried)


def _unique(configs: Iterable[RunConfig]) -> list[RunConfig]:
    return list({config.key: config for config in configs}.values())


def states(plan: Sequence[RunConfig], out: Path) -> list[str]:
    """Of each run: ``done``, ``failed``, ``running`` (by a process that lives) or ``to do``. Reads no record."""
    folders: dict[str, set[str]] = {}
    found = []
    for config in plan:
        parent, _, name = config.directory.rpartition("/")
        if parent not in folders:
            folders[parent] = set(os.listdir(out / parent)) if (out / parent).is_dir() else set()
        found.append(folder_state(out / config.directory) if name in folders[parent] else "to do")
    return found


def folder_state(folder: Path) -> str:
    """The state of one run, by its folder; see `states`."""
    if (folder / FILE_NAME).exists():
        return "done"
    if holder_of(folder):
        return "running"
    return "failed" if (folder / FAILURE).exists() else "to do"


@dataclass(frozen=True)
class Forecast:
    """What runs will take, going by earlier ones.

    Args:
        seconds: Of all runs together, one after the other.
        unknown: Runs that nothing earlier resembles.
        bytes_per_run: On the disk.
        sampled: Earlier runs that were looked at.
    """

    seconds: float
    unknown: int
    bytes_per_run: float | None
    sampled: int


def forecast(plan: Sequence[RunConfig], out: Path) -> Forecast:
    """What the runs of a plan will take, going by a few records under `out`.

    A run takes as long as earlier ones of its kind, whatever their seed; else as long to start and to test, and as
    long a step, as those of its task with the same model and data. Of the model the width of feed-forward layers does
    not count: rows are matched by it.
    """
    durations: dict[tuple[Any, ...], list[float]] = {}
    paces: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    sizes = []
    for folder, record in _sample(plan, out):
        config, seconds = record.config, record.duration_s or 0.0
        sizes.append(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
        durations.setdefault(_same(config), []).append(seconds)
        paces.setdefault(_like(config), []).append(_pace(record, seconds))
    total, unknown, known = 0.0, 0, dict[str, float | None]()
    for config in plan:
        if config.kind_key not in known:
            exact, like = durations.get(_same(config)), paces.get(_like(config))
            other = fmean(fixed + step * config.train.max_steps for fixed, step in like) if like else None
            known[config.kind_key] = fmean(exact) if exact else other
        seconds_each = known[config.kind_key]
        total, unknown = total + (seconds_each or 0.0), unknown + (seconds_each is None)
    return Forecast(total, unknown, fmean(sizes) if sizes else None, len(sizes))


def _sample(plan: Sequence[RunConfig], out: Path) -> Iterable[tuple[Path, Record]]:
    """A few finished runs of each encoding that the plan's tasks were run with, with their folders."""
    folders = {out / config.directory.partition("/")[0] for config in plan}
    for parent in sorted(parent for folder in folders for parent in folder.glob("*")):
        finished = (path.parent for path in parent.glob(f"*/{FILE_NAME}"))
        for folder in itertools.islice(finished, SAMPLE):
            if (record := read_record(folder)) and record.ok:
                yield folder, record


def _pace(record: Record, seconds: float) -> tuple[float, float]:
    """Seconds that a run took whatever its length, to start and to test, and those of each step."""
    train = record.config.train
    step = seconds / train.max_steps
    if record.throughput:
        step = min(step, train.batch_size / record.throughput)
    return seconds - step * train.max_steps, step


def _same(config: RunConfig) -> tuple[Any, ...]:
    return _like(config), config.encoding, config.train.max_steps


def _like(config: RunConfig) -> tuple[Any, ...]:
    return config.task, replace(config.model, d_ff=None), config.data, config.train.batch_size


def note_plan(plan: Sequence[RunConfig], out: Path) -> None:
    """Leave word of what is planned, for `pebench status`.

    Args:
        plan: The runs.
        out: Output folder.
    """
    folder = out / PLANS
    runs = [config.directory for config in plan]
    name = hashlib.sha256("\n".join(runs).encode()).hexdigest()[:12]
    with replacing(folder / f"{name}.json") as file:
        file.write(f"{json.dumps({'runs': runs})}\n".encode())


def planned(out: Path) -> list[str]:
    """Every run that was ever planned for an output folder, as its directory there."""
    found: dict[str, None] = {}
    for path in sorted((out / PLANS).glob("*.json"), key=lambda path: path.stat().st_mtime):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
            found |= dict.fromkeys(run for run in runs if isinstance(runs, list) and isinstance(run, str))
    return list(found)


def load(plan: Sequence[RunConfig], out: Path) -> dict[str, Record]:
    """The records of a plan's runs, by key."""
    return {config.key: record for config in plan if (record := find_record(config, out))}
