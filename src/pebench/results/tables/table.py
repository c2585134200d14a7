"""A table: the rows of one task under one protocol with equal settings, and where its records come from."""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from pebench.config import REFERENCE_ENCODING, RunConfig, sort_key
from pebench.results.stats import Difference
from pebench.results.tables.comparing import compare_pairs, compare_to_reference, fragile_rows
from pebench.results.tables.row import Row
from pebench.results.tables.settings import changed_settings, row_settings, shared_settings
from pebench.runs.costs import TOLERANCE
from pebench.runs.records import Record
from pebench.runs.selection import Trial, best
from pebench.tasks import Task

REGIME_TEXT = {
    "width": "width (the same trunk and steps in every row)",
    "parameters": "parameters (the same total within 1 %, by the width of the feed-forward layers)",
    "FLOPs": "FLOPs (the same in a training step within 1 %, texts at full length, by the feed-forward layers' width)",
}
"""The costs that each regime keeps equal between the rows of a table, in words."""

MOST_PAIRED = 24
"""Rows of the largest table whose pairs are compared."""


@dataclass(frozen=True, eq=False)
class Table:
    """Runs of one task under one protocol with equal model, data and training settings.

    Args:
        task: The task.
        rows: The encodings.
        trials: Settings that were tried on validation data, if any were selected.
        superseded: Tested runs whose values were chosen when fewer had been tried, and are no longer.
        reference: Label of the row that the others are compared to.
        shared_machine: True if the suite declares that other work ran beside the runs.
        declared: Number of rows that the suite asks for, which corrections count; 0 without a suite.
        differing: Settings in which it differs from tables of its task and tier beside it.
    """

    task: Task
    rows: tuple[Row, ...]
    trials: tuple[Trial, ...] = ()
    superseded: tuple[Record, ...] = ()
    reference: str = REFERENCE_ENCODING
    shared_machine: bool = False
    declared: int = 0
    differing: tuple[str, ...] = ()

    def counting(self, declared: int) -> "Table":
        """Return the same table, corrected for this number of rows, of which some may have no runs yet."""
        rows = compare_to_reference(self.rows, self.task.higher_is_better, self.reference, declared - 1)
        return replace(self, rows=rows, declared=declared)

    @cached_property
    def records(self) -> list[Record]:
        """Every record of a tested run, by row and seed."""
        return [record for row in self.rows for record in row.records]

    @cached_property
    def selecting(self) -> list[Record]:
        """Every record of a run that selected settings."""
        return [record for trial in self.trials for record in trial.records]

    @property
    def every(self) -> list[Record]:
        """All runs: those tested, those that select, and those with values that are no longer chosen."""
        return [*self.records, *self.selecting, *self.superseded]

    @cached_property
    def origins(self) -> list[Record]:
        """One record for each stage, protocol, data and environment that occurs, which very many runs share."""
        found: dict[tuple[str, str, bytes], Record] = {}
        # Not the superseded ones: no result on the page is made of them.
        for record in itertools.chain(self.records, self.selecting):
            # As bytes, since mappings are no keys; orjson, as there may be a hundred thousand records.
            circumstances = orjson.dumps((record.dataset, record.environment), option=orjson.OPT_SORT_KEYS)
            found[record.config.stage, record.protocol, circumstances] = record
        return list(found.values())

    @cached_property
    def one_machine(self) -> bool:
        """True if all tested runs had one kind of device and the same number of threads."""
        machines = set()
        for record in self.origins:
            if record.config.stage == "test" and record.environment:  # a run that failed early has none
                machines.add((record.environment.get("device"), record.environment.get("threads")))
        return len(machines) < 2

    @property
    def timings_compare(self) -> bool:
        """True if throughput and memory depend on the rows, not on the machine that ran them."""
        return self.one_machine and not self.shared_machine

    @cached_property
    def outdated(self) -> dict[str, dict[str, Any]]:
        """Rows tested with other values than their selecting runs choose by now, each with those values."""
        found = {}
        for row in self.rows:
            trials = self.trials_of(row.label)
            # While a trial may still change nothing is outdated: the tested value may turn out to be the best.
            chosen = best(trials) if all(trial.settled for trial in trials) else None
            if chosen and chosen.values != row.config.selected_values:
                found[row.label] = dict(chosen.values)
        return found

    @cached_property
    def fragile(self) -> dict[str, int]:
        """Rows called different, each with the number of seeds without any one of which it would not be."""
        return fragile_rows(self.rows, self.reference, self.declared - 1)

    @cached_property
    def pairs(self) -> dict[tuple[str, str], tuple[Difference, float | None]]:
        """Two labels to the later row minus the earlier one, with p after Holm's correction over all pairs.

        Empty for two rows, which are compared anyway, and for more than `MOST_PAIRED`.
        """
        if not 2 < len(self.rows) <= MOST_PAIRED:
            return {}
        return compare_pairs(
            {row.label: row.values for row in self.rows}, math.comb(self.declared, 2)
        )  # pairs of rows that are still to run count, too

    def row(self, label: str) -> Row | None:
        """Return an encoding's row by its label; ``None`` if it is not here."""
        return next((row for row in self.rows if row.label == label), None)

    def trials_of(self, label: str) -> list[Trial]:
        """Return the trials that an encoding's settings were selected from."""
        return [trial for trial in self.trials if trial.label == label]

    @property
    def wall_time_s(self) -> float:
        """Total duration of all runs, in seconds."""
        # Exact, so that a page does not depend on the order of its records.
        return math.fsum(record.duration_s or 0.0 for record in self.every)

    @property
    def config(self) -> RunConfig:
        """Configuration of the first row; encoding, seed, and selected or matched settings may differ in others."""
        return self.rows[0].config

    @property
    def protocol(self) -> str:
        """Version of the rules that the records follow."""
        return self.rows[0].records[0].protocol

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that are not those of the task's budget at this tier, under this protocol."""
        return changed_settings(self.config, self.task.budgets_before.get(self.protocol, self.task.budgets))

    @property
    def settings_today(self) -> dict[str, Any]:
        """Settings that are not those of the task's budget as it is now, which a command has to set."""
        return changed_settings(self.config, self.task.budgets)

    @property
    def naming_settings(self) -> dict[str, Any]:
        """Settings to name it by: those that are not the task's own, and those that tables beside it have otherwise."""
        named = {*self.settings, *self.differing}
        return {name: value for name, value in self.config.settings().items() if name in named}

    @property
    def grid(self) -> dict[str, list[Any]]:
        """The values that each selected setting was selected from, as far as their runs are known."""
        names = self.config.selected if self.trials else ()
        return {name: sorted({trial.values[name] for trial in self.trials}, key=sort_key) for name in names}

    @property
    def unmatched(self) -> list[str]:
        """A sentence for each row that does not have in common what the regime keeps equal."""
        regime = self.config.regime
        if regime == "width":
            return []
        if regime == "parameters":
            found = {row.label: row.costs["parameters_total"] for row in self.rows}
        else:
            # Records made before that figure existed have the operations on one sample alone, which leave out what a
            # batch shares.
            found = {row.label: row.largest(lambda r: r.matched_flops or r.flops_per_sample) for row in self.rows}
        costs = {label: value for label, value in found.items() if value}
        # Where the reference has no finished run, the first row stands in: the rows must match each other anyway.
        target = costs.get(self.reference) or next(iter(costs.values()), 0)
        return [
            f"{name} has {value:,} {regime}, not {target:,} within {TOLERANCE:.0%}"
            for name, value in costs.items()
            if abs(value - target) > TOLERANCE * target
        ]

    def has_settings_of(self, config: RunConfig) -> bool:
        """Return True if a run's task, tier and settings are those that the rows have in common."""
        if (self.config.task, self.config.tier) != (config.task, config.tier):
            return False
        free = row_settings(self.config)
        return shared_settings(self.config, free) == shared_settings(config, free)
