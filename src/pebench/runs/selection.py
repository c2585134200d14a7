"""The choice among tried values by validation: one rule for what runs next and for what pages report."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from pebench.config import RunConfig, sort_key
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from pebench.tasks import recorded_task


@dataclass(frozen=True)
class Trial:
    """One encoding with one combination of the values that settings are selected from.

    Args:
        label: The encoding with its options.
        values: Values by the setting's dotted name.
        records: Records of its selecting runs, as far as they are known.
        seeds: Number of such runs that it is to have.
    """

    label: str
    values: Mapping[str, Any]
    records: tuple[Record, ...]
    seeds: int

    @property
    def text(self) -> str:
        """The values in words."""
        return ", ".join(map(str, self.values.values()))

    @property
    def order(self) -> list[Any]:
        """The key that sorts trials by their values, the lowest first; of equally good ones the first is chosen."""
        return [sort_key(value) for value in self.values.values()]

    @cached_property
    def score(self) -> float | None:
        """Mean over seeds of the validation metric that selects; None if a run is missing, failed or has none."""
        if len(self.records) < self.seeds or not all(record.ok for record in self.records):
            return None
        config = self.records[0].config
        metric, _ = recorded_task(config.task).monitored(config.train.monitor)
        # A run without the metric makes the mean NaN, and so leaves the value without a score.
        mean = fmean(record.metrics.get(metric, math.nan) for record in self.records)
        return mean if math.isfinite(mean) else None

    @property
    def settled(self) -> bool:
        """True if no further run can change its score.

        A value with which a run diverged is no choice. A run that is missing, or failed for a reason that is not the
        value's (it was killed, say), might still make it the best.
        """
        # One diverged seed is enough: the mean of the others would favour a value that works by luck.
        complete = len(self.records) == self.seeds and all(record.ok for record in self.records)
        return complete or any(record.diverged for record in self.records)


def best(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial with the best score, of equal ones the first; None if none has a score."""
    known = [(trial, trial.score) for trial in trials if trial.score is not None]
    if not known:
        return None
    config = known[0][0].records[0].config
    scores = [score for _, score in known]
    return known[recorded_task(config.task).best(scores, config.train.monitor)][0]


def trials_of(
    suite: Suite, kind: RunConfig, find: Callable[[RunConfig], tuple[Record, ...]]
) -> list[tuple[RunConfig, Trial]]:
    """Return the runs that a kind's settings are selected from, each with its trial, the lowest values first.

    While the best value is at an end of the grid, the grid goes on there, as far as the suite says (`select_beyond`).

    Args:
        suite: The suite.
        kind: Kind of run, before any value is chosen.
        find: Returns the known records of the seeds that select, of a run with one value.
    """
    seeds = len(suite.selecting_seeds(kind.task))

    def tried(config: RunConfig) -> tuple[RunConfig, Trial]:
        return config, Trial(config.label, config.selected_values, find(config), seeds)

    found = sorted(map(tried, suite.candidates(kind)), key=lambda pair: pair[1].order)
    below, above = suite.beyond(kind.task)
    while (below or above) and all(trial.settled for _, trial in found):
        winner = best(trial for _, trial in found)
        if below and winner is found[0][1]:
            found.insert(0, tried(suite.candidate(kind, below.pop(0))))
        elif above and winner is found[-1][1]:
            found.append(tried(suite.candidate(kind, above.pop(0))))
        else:
            break
    return found
