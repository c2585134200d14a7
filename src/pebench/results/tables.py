"""What is compared: records that differ by encoding and seed alone, their estimates and where they come from."""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from pebench.config import REFERENCE_ENCODING, REGIMES, TIERS, RunConfig, dotted_settings, sort_key
from pebench.errors import UserError
from pebench.formatting import natural
from pebench.results.stats import (
    ALPHA,
    Difference,
    Estimate,
    estimate,
    holm,
    p_values_without_each,
    paired_difference,
    verdict,
)
from pebench.runs.costs import TOLERANCE
from pebench.runs.records import Record
from pebench.runs.selection import Trial, best
from pebench.tasks import Budget, Task, find_task

REGIME_TEXT = {
    "width": "width (the same trunk and steps in every row)",
    "parameters": "parameters (the same total within 1 %, by the width of the feed-forward layers)",
    "FLOPs": "FLOPs (the same in a training step within 1 %, texts at full length, by the feed-forward layers' width)",
}
"""What the rows of a table have in common, in words."""


MOST_PAIRED = 24
"""Of tables with more rows pairs are not compared."""

ENOUGH = 5
"""Seeds from which on it is told which differences hang on single ones; with fewer almost all do."""


@dataclass(frozen=True)
class Row:
    """One encoding's runs.

    Args:
        label: The encoding with its options: ``concat (d_p=16)``.
        records: By seed, failed ones too.
        values: Seed to the headline metric of the runs that finished.
        failed: Seed to reason of the runs that did not.
        estimate: Over `values`.
        difference: To the reference row, where both have values.
        p_adjusted: The difference's p-value after Holm's correction over the table.
        verdict: In words.
    """

    label: str
    records: tuple[Record, ...]
    values: dict[int, float]
    failed: dict[int, str]
    estimate: Estimate | None
    difference: Difference | None = None
    p_adjusted: float | None = None
    verdict: str | None = None

    @property
    def config(self) -> RunConfig:
        """The configuration, but for the seed."""
        return self.records[0].config

    @property
    def own(self) -> dict[str, Any]:
        """The settings that may differ between rows: what was selected, and what matches the regime."""
        return self.config.values_of(_free(self.config))

    @cached_property
    def finished(self) -> list[Record]:
        """The records of `values`."""
        return [record for record in self.records if record.config.seed in self.values]

    def known(self, get: Callable[[Record], Any]) -> list[Any]:
        """A quantity of every run that finished and has it."""
        return [x for x in map(get, self.finished) if x is not None]

    def mean(self, get: Callable[[Record], float | None]) -> float | None:
        """The mean of `known`, if there is any."""
        known = self.known(get)
        return fmean(known) if known else None

    def largest(self, get: Callable[[Record], Any]) -> Any:
        """The largest of `known`, if there is any."""
        return max(self.known(get), default=None)

    @property
    def perplexity(self) -> float | None:
        """Mean test perplexity, of language models."""
        return self.mean(lambda r: r.metrics.get("test/perplexity"))

    def beyond(self, metric: str) -> dict[str, dict[int, float]]:
        """A test metric at other sizes than the trained one: ``2x`` and the like to seed to value."""
        prefix = f"test/{metric}@"
        return {name.removeprefix(prefix): seeds for name, seeds in self._at_sizes.items() if name.startswith(prefix)}

    @cached_property
    def _at_sizes(self) -> dict[str, dict[int, float]]:
        """Every metric at another size than the trained one, as it is called in records, to seed to value."""
        found: dict[str, dict[int, float]] = {}
        for record in self.finished:
            for name, value in record.metrics.items():
                if "@" in name and math.isfinite(value):
                    found.setdefault(name, {})[record.config.seed] = value
        return found

    @cached_property
    def position_shares(self) -> dict[str, dict[int, Sequence[float | None]]]:
        """``untrained`` and ``trained`` to seed to the share in what enters each block, and last the output layer."""
        stages = ("untrained", "trained")
        return {
            stage: {r.config.seed: r.position_shares[stage] for r in self.finished if stage in r.position_shares}
            for stage in stages
        }

    @cached_property
    def costs(self) -> dict[str, Any]:
        """What the encoding costs: parameters, operations, throughput, memory."""
        return {
            "parameters_encoding": self.largest(lambda r: r.parameters.get("encoding")),
            "parameters_total": self.largest(lambda r: r.parameters.get("total")),
            "flops_per_sample": self.largest(lambda r: r.flops_per_sample),
            "throughput": self.mean(lambda r: r.throughput),
            "peak_memory_gib": self.largest(lambda r: r.peak_memory_gib),
        }


def unlike(config: RunConfig, budgets: Mapping[str, Budget]) -> dict[str, Any]:
    """Settings of a run that are not those of its tier's budget, but for what may differ between rows."""
    budget = budgets.get(config.tier)
    usual, free = dotted_settings(budget) if budget else {}, _free(config)
    settings = {name: value for name, value in config.settings().items() if name not in free}
    return {name: value for name, value in settings.items() if value != usual.get(name)}


@dataclass(frozen=True)
class Table:
    """Runs of one task under one protocol with equal model, data and training settings.

    Args:
        task: Of the runs.
        rows: The encodings.
        trials: What settings were selected from, if any were.
        superseded: Tested runs with values that were chosen once, when fewer had been tried, and are no longer.
        reference: Label of the row that the others are compared to.
        shared_machine: Whether its suite says that other work ran beside the runs.
        declared: How many rows it has or is to have by its suite, which corrections count; 0 without one.
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
        """The same, corrected for so many rows, of which some may have no runs yet."""
        rows = _compare(self.rows, self.task.higher_is_better, self.reference, declared - 1)
        return replace(self, rows=rows, declared=declared)

    @cached_property
    def records(self) -> list[Record]:
        """Every record of a tested run, by row and seed."""
        return [record for row in self.rows for record in row.records]

    @cached_property
    def selecting(self) -> list[Record]:
        """Every record of a run that selected settings."""
        return [record for trial in self.trials for record in trial.records]

    @cached_property
    def origins(self) -> list[Record]:
        """One of all records for each stage, protocol, data and environment, which very many runs share."""
        every = itertools.chain(self.records, self.selecting)
        return list({(r.config.stage, r.protocol, id(r.dataset), id(r.environment)): r for r in every}.values())

    @cached_property
    def one_machine(self) -> bool:
        """Whether all tested runs had one kind of device and as many threads."""
        every = [record.environment for record in self.origins if record.config.stage == "test"]
        found = [environment for environment in every if environment]  # a run that failed early has none
        return len({(environment.get("device"), environment.get("threads")) for environment in found}) < 2

    @cached_property
    def outdated(self) -> dict[str, dict[str, Any]]:
        """Of rows tested with other values than their selecting runs choose by now, those values."""
        found = {}
        for row in self.rows:
            trials = self.trials_of(row.label)
            liked = best(trials) if all(trial.settled for trial in trials) else None
            if liked and liked.values != row.config.selected_values:
                found[row.label] = dict(liked.values)
        return found

    @property
    def timings_compare(self) -> bool:
        """Whether throughput and memory tell of the rows, not of what ran where."""
        return self.one_machine and not self.shared_machine

    @cached_property
    def fragile(self) -> dict[str, int]:
        """Of rows called different, how many seeds there are without any one of which they would not be."""
        values = next((row.values for row in self.rows if row.label == self.reference), {})
        called = {row.label for row in self.rows if row.p_adjusted is not None and row.p_adjusted < ALPHA}
        found = {row.label: row.difference for row in self.rows if row.difference}
        counts = dict.fromkeys((label for label in called & found.keys() if found[label].n >= ENOUGH), 0)
        if not counts:
            return {}
        without = {  # of two seeds none can be left out
            row.label: p_values_without_each(row.values, values) if found[row.label].n > 2 else {}
            for row in self.rows
            if row.label in found
        }
        for seed in {seed for p_values in without.values() for seed in p_values}:
            p_values = [without[label].get(seed, found[label].p_value) for label in found]
            for label, p in zip(found, holm(p_values, self.declared - 1), strict=True):
                if label in counts and seed in without[label] and p is not None and p >= ALPHA:
                    counts[label] += 1
        return {label: count for label, count in counts.items() if count}

    @cached_property
    def pairs(self) -> dict[tuple[str, str], tuple[Difference, float | None]]:
        """Two labels to the later row minus the earlier one, with p after Holm's correction over all pairs.

        Empty for two rows, which are compared anyway, and for more than `MOST_PAIRED`.
        """
        if not 2 < len(self.rows) <= MOST_PAIRED:
            return {}
        found = {
            (later.label, earlier.label): difference
            for earlier, later in itertools.combinations(self.rows, 2)
            if (difference := paired_difference(later.values, earlier.values))
        }
        p_values = holm([difference.p_value for difference in found.values()], math.comb(self.declared, 2))
        return {pair: (found[pair], p) for pair, p in zip(found, p_values, strict=True)}

    def row(self, label: str) -> Row | None:
        """An encoding by its label, which is its name with its default options; ``None`` if it is not here."""
        return next((row for row in self.rows if row.label == label), None)

    def trials_of(self, label: str) -> list[Trial]:
        """What an encoding's settings were selected from, by its label."""
        return [trial for trial in self.trials if trial.label == label]

    @property
    def every(self) -> list[Record]:
        """All runs: those tested, those that select, and those with values that are no longer chosen."""
        return [*self.records, *self.selecting, *self.superseded]

    @property
    def wall_time_s(self) -> float:
        """What all runs took together, in seconds."""
        return math.fsum(record.duration_s or 0.0 for record in self.every)

    @property
    def config(self) -> RunConfig:
        """Of the first row: encoding, seed, and what is selected or matched may differ in others."""
        return self.rows[0].config

    @property
    def protocol(self) -> str:
        """Version of the rules that the records follow."""
        return self.rows[0].records[0].protocol

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that are not those of the task's budget at this tier, under this protocol."""
        return unlike(self.config, self.task.budgets_before.get(self.protocol, self.task.budgets))

    @property
    def told(self) -> dict[str, Any]:
        """Settings to name it by: those that are not the task's own, and those that tell it from tables beside it."""
        named = {*self.settings, *self.differing}
        return {name: value for name, value in self.config.settings().items() if name in named}

    @property
    def settings_today(self) -> dict[str, Any]:
        """Settings that are not those of the task's budget as it is now: what a command has to say."""
        return unlike(self.config, self.task.budgets)

    @property
    def grid(self) -> dict[str, list[Any]]:
        """The values that each selected setting was selected from, as far as their runs are known."""
        names = self.config.selected if self.trials else ()
        return {name: sorted({trial.values[name] for trial in self.trials}, key=sort_key) for name in names}

    @property
    def unmatched(self) -> list[str]:
        """The rows that do not have in common what the regime says, in words."""
        regime = self.config.regime
        if regime == "width":
            return []
        if regime == "parameters":
            found = {row.label: row.costs["parameters_total"] for row in self.rows}
        else:
            found = {row.label: row.largest(lambda r: r.matched_flops or r.flops_per_sample) for row in self.rows}
        costs = {label: value for label, value in found.items() if value}
        target = costs.get(self.reference) or next(iter(costs.values()), 0)
        return [
            f"{name} has {value:,} {regime}, not {target:,} within {TOLERANCE:.0%}"
            for name, value in costs.items()
            if abs(value - target) > TOLERANCE * target
        ]

    def has_settings_of(self, config: RunConfig) -> bool:
        """Whether a run's task, tier and settings are those that the rows have in common."""
        free = _free(self.config)
        ours, other = ({n: v for n, v in c.settings().items() if n not in free} for c in (self.config, config))
        return (self.config.task, self.config.tier, ours) == (config.task, config.tier, other)


def _free(config: RunConfig) -> tuple[str, ...]:
    """Names of the settings that may differ between the rows of a table."""
    return (*(() if config.regime == "width" else ("model.d_ff",)), *config.selected)


def build_tables(
    records: Iterable[Record], allow_unmatched: bool = False, reference: str = REFERENCE_ENCODING
) -> list[Table]:
    """Sort records into tables; the order they come in does not matter.

    Args:
        records: Of any runs.
        allow_unmatched: Make tables whose rows break their regime too.
        reference: Label of the row that the others are compared to.

    Raises:
        UserError: For an unknown task, two different records of one run, or rows that break their regime.
    """
    tested: dict[tuple[Any, ...], dict[str, dict[str, Record]]] = {}
    selecting: dict[tuple[Any, ...], dict[str, Record]] = {}
    kinds: dict[tuple[str, str], tuple[tuple[Any, ...], str]] = {}  # the same for all seeds
    for record in sorted(records, key=lambda r: (r.config.seed, r.config.key)):
        config = record.config
        kind = record.protocol, config.kind_key
        if kind not in kinds:
            kinds[kind] = _group(record), config.label
        group, name = kinds[kind]
        if config.stage == "select":
            where, found = config.directory, selecting.setdefault(group, {})
        else:
            where = f"{name} seed {config.seed} on {config.task}"
            found = tested.setdefault(group, {}).setdefault(name, {})
        if found.setdefault(config.key, record) != record:
            raise UserError(f"two different records of {where}: delete one of them.")
    tables = [_table(tested[key], _trials(selecting.get(key, {}).values()), reference) for key in sorted(tested)]
    for table in tables:
        if table.unmatched and not allow_unmatched:
            raise UserError(
                f"rows on {table.task.name} break their regime: {'; '.join(table.unmatched)}. They do not compare; "
                "--allow-unmatched shows them all the same, with a mark."
            )
    alike: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        alike.setdefault((table.task.name, table.config.tier), []).append(table)
    differing = {kind: _differing(beside) for kind, beside in alike.items()}
    return [replace(table, differing=differing[table.task.name, table.config.tier]) for table in tables]


def _differing(tables: Sequence[Table]) -> tuple[str, ...]:
    """The settings in which tables differ, sorted."""
    names = sorted({name for table in tables for name in table.settings})
    found = [table.config.values_of(names) for table in tables]
    return tuple(name for name in names if any(values[name] != found[0][name] for values in found))


def _group(record: Record) -> tuple[Any, ...]:
    """What records in one table have in common, so that it sorts."""
    config = record.config
    tier = TIERS.index(config.tier) if config.tier in TIERS else len(TIERS)
    free = _free(config)
    settings = tuple((name, sort_key(value)) for name, value in sorted(config.settings().items()) if name not in free)
    rules = REGIMES.index(config.regime), config.selected
    return record.protocol, config.task, tier, config.tier, rules, settings


def _trials(records: Iterable[Record]) -> tuple[Trial, ...]:
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        values = record.config.selected_values
        found.setdefault((record.config.label, json.dumps(values)), []).append(record)
    seeds: dict[str, set[int]] = {}
    for (name, _), runs in found.items():
        seeds.setdefault(name, set()).update(record.config.seed for record in runs)
    trials = [Trial(name, json.loads(text), tuple(runs), len(seeds[name])) for (name, text), runs in found.items()]
    return tuple(sorted(trials, key=lambda trial: (natural(trial.label), trial.order)))


def _table(tested: Mapping[str, Mapping[str, Record]], trials: tuple[Trial, ...], reference: str) -> Table:
    rows, superseded = [], list[Record]()
    for name in sorted(tested, key=natural):
        records, others = _chosen(list(tested[name].values()), [trial for trial in trials if trial.label == name])
        task = find_task(records[0].config.task)
        superseded += others
        failed = {r.config.seed: reason for r in records if (reason := _failure(r, task))}
        values = {s: r.metrics[f"test/{task.metric}"] for r in records if (s := r.config.seed) not in failed}
        rows.append(Row(name, records, values, failed, estimate(values.values()) if values else None))
    return Table(task, _compare(rows, task.higher_is_better, reference), trials, tuple(superseded), reference)


def _chosen(records: list[Record], trials: list[Trial]) -> tuple[tuple[Record, ...], list[Record]]:
    """The records of a row by seed, and those with values that are no longer chosen.

    Raises:
        UserError: If a row has several values, and nothing here tells which was chosen.
    """
    config = records[0].config
    if len({record.config.kind_key for record in records}) == 1:
        return tuple(records), []
    by_value: dict[str, list[Record]] = {}
    for record in records:
        by_value.setdefault(json.dumps(record.config.selected_values), []).append(record)
    values = next(iter(by_value))
    if len(by_value) > 1:
        trial = best(trial for trial in trials if json.dumps(trial.values) in by_value)
        if trial is None:
            raise UserError(
                f"{config.label} on {config.task} was tested with several values of {', '.join(config.selected)}, and "
                "the selecting runs here do not tell which of them was chosen. Add those that are missing, or delete "
                "the records of all values but one."
            )
        values = json.dumps(trial.values)
    chosen = by_value.pop(values)
    for one, other in itertools.pairwise(chosen):  # by seed
        if one.config.seed == other.config.seed:
            where = f"{config.label} seed {one.config.seed} on {config.task}"
            raise UserError(f"two different records of {where}: delete one of them.")
    return tuple(chosen), list(itertools.chain(*by_value.values()))


def _failure(record: Record, task: Task) -> str | None:
    """Why a run has no value, in one line; ``None`` if it has one."""
    if not record.ok:
        return record.reason
    value = record.metrics.get(f"test/{task.metric}")
    if value is None:
        return f"no test/{task.metric} recorded"
    return None if math.isfinite(value) else f"test/{task.metric} is {value}"


def _compare(rows: Sequence[Row], higher_is_better: bool, reference: str, declared: int = 0) -> tuple[Row, ...]:
    """The rows with differences to the reference, corrected for their number, or for that of those declared."""
    values = next((row.values for row in rows if row.label == reference), {})
    differences = [None if row.label == reference else paired_difference(row.values, values) for row in rows]
    adjusted = holm([d.p_value if d else None for d in differences], declared)
    return tuple(
        replace(row, difference=d, p_adjusted=p, verdict=verdict(d, p, higher_is_better) if d else None)
        for row, d, p in zip(rows, differences, adjusted, strict=True)
    )
