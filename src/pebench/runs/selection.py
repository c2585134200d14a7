"""Which of the values that were tried validation likes best: one rule for what is run next, and for what pages say."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from pebench.config import sort_key
from pebench.runs.records import Record
from pebench.tasks import find_task


@dataclass(frozen=True)
class Trial:
    """One encoding with one combination of the values that settings are selected from.

    Args:
        label: The encoding with its options.
        values: Setting to value.
        records: Of its selecting runs, as far as they are known.
        seeds: How many such runs it is to have.
    """

    label: str
    values: Mapping[str, Any]
    records: tuple[Record, ...]
    seeds: int

    @property
    def order(self) -> list[Any]:
        """What sorts trials by their values: of equally good ones the first is taken."""
        return [*map(sort_key, self.values.values())]

    @cached_property
    def score(self) -> float | None:
        """Mean over seeds of the validation metric that selects; ``None`` if a run is missing, failed or has none."""
        if len(self.records) < self.seeds or not all(record.ok for record in self.records):
            return None
        config = self.records[0].config
        metric, _ = find_task(config.task).monitored(config.train.monitor)
        scores = [record.metrics.get(metric, math.nan) for record in self.records]
        return mean if math.isfinite(mean := fmean(scores)) else None

    @property
    def settled(self) -> bool:
        """Whether no run can change what it scores.

        With one that diverged it is no choice. One that is missing, or failed for a reason that says nothing of the
        values (it was killed, say), might make it the best.
        """
        every = len(self.records) == self.seeds and all(record.ok for record in self.records)
        return every or any(record.diverged for record in self.records)


def best(trials: Iterable[Trial]) -> Trial | None:
    """The trial that validation likes best, of equal ones the first; ``None`` if none has a score."""
    known = [(trial, trial.score) for trial in trials if trial.score is not None]
    if not known:
        return None
    config = known[0][0].records[0].config
    return known[find_task(config.task).best([score for _, score in known], config.train.monitor)][0]
