"""What is compared: records that differ by encoding and seed alone, their estimates and where they come from."""

import json
import math
import shlex
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from pebench.config import CORE_ENCODINGS, REFERENCE_ENCODING, TIERS, RunConfig
from pebench.errors import UserError
from pebench.records import Record
from pebench.stats import Difference, Estimate, estimate, holm, paired_difference, verdict
from pebench.tasks import Task, find_task

MATCHED_BY = "width"
"""The regime: every row has the same trunk and the same number of steps."""


@dataclass(frozen=True)
class Row:
    """One encoding's runs.

    Args:
        label: The encoding with its options: ``concat (d_p=16)``.
        records: By seed, failed ones too.
        values: Seed to the headline metric of the runs that finished.
        failed: Seed to reason of the runs that did not.
        missing: Seeds that other rows have.
        estimate: Over `values`.
        difference: To the reference row, where both have values.
        p_adjusted: The difference's p-value after Holm's correction over the table.
        verdict: In words.
    """

    label: str
    records: tuple[Record, ...]
    values: dict[int, float]
    failed: dict[int, str]
    missing: tuple[int, ...]
    estimate: Estimate | None
    difference: Difference | None = None
    p_adjusted: float | None = None
    verdict: str | None = None

    @property
    def config(self) -> RunConfig:
        """The configuration, but for the seed."""
        return self.records[0].config

    def known(self, get: Callable[[Record], Any]) -> list[Any]:
        """A quantity of every run that finished and has it."""
        return [x for r in self.records if r.config.seed in self.values and (x := get(r)) is not None]

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

    def costs(self) -> dict[str, Any]:
        """What the encoding costs: parameters, operations, throughput, memory."""
        return {
            "parameters_encoding": self.largest(lambda r: r.parameters.get("encoding")),
            "parameters_total": self.largest(lambda r: r.parameters.get("total")),
            "flops_per_sample": self.largest(lambda r: r.flops_per_sample),
            "throughput": self.mean(lambda r: r.throughput),
            "peak_memory_gib": self.largest(lambda r: r.peak_memory_gib),
        }


@dataclass(frozen=True)
class Table:
    """Runs of one task under one protocol with equal model, data and training settings."""

    task: Task
    rows: tuple[Row, ...]

    @property
    def records(self) -> list[Record]:
        """Every record, by row and seed."""
        return [record for row in self.rows for record in row.records]

    @property
    def config(self) -> RunConfig:
        """The configuration, but for encoding and seed."""
        return self.rows[0].config

    @property
    def protocol(self) -> str:
        """Version of the rules that the records follow."""
        return self.rows[0].records[0].protocol

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that are not those of the task's budget at this tier."""
        budget = self.task.budgets.get(self.config.tier)
        usual = _settings(budget) if budget else {}
        return {name: value for name, value in _settings(self.config).items() if value != usual.get(name)}


def _settings(source: Any) -> dict[str, Any]:
    """Dotted name to value of the model, data and training settings."""
    parts = ("model", "data", "train")
    return {f"{part}.{name}": value for part in parts for name, value in asdict(getattr(source, part)).items()}


def build_tables(records: Iterable[Record]) -> list[Table]:
    """Sort records into tables; the order they come in does not matter.

    Raises:
        UserError: For an unknown task, or two different records of one run.
    """
    groups: dict[tuple[Any, ...], dict[tuple[str, int], Record]] = {}
    for record in records:
        config = record.config
        tier = TIERS.index(config.tier) if config.tier in TIERS else len(TIERS)
        settings = json.dumps(_settings(config), sort_keys=True)
        runs = groups.setdefault((record.protocol, config.task, tier, config.tier, settings), {})
        run = (label(config), config.seed)
        if runs.setdefault(run, record) != record:
            raise UserError(f"two different records of {run[0]} seed {run[1]} on {config.task}: delete one of them.")
    return [_table(groups[key]) for key in sorted(groups)]


def label(config: RunConfig) -> str:
    """The name of an encoding in a table: ``concat``, or ``concat (d_p=16)``."""
    options = ", ".join(f"{name}={value}" for name, value in sorted(config.encoding_args.items()))
    return f"{config.encoding} ({options})" if options else config.encoding


def _table(runs: dict[tuple[str, int], Record]) -> Table:
    seeds = sorted({seed for _, seed in runs})
    task = find_task(next(iter(runs.values())).config.task)
    rows = []
    for name in sorted({name for name, _ in runs}):
        records = tuple(runs[name, seed] for seed in seeds if (name, seed) in runs)
        failed = {r.config.seed: reason for r in records if (reason := _failure(r, task))}
        values = {s: r.metrics[f"test/{task.metric}"] for r in records if (s := r.config.seed) not in failed}
        missing = tuple(seed for seed in seeds if (name, seed) not in runs)
        rows.append(Row(name, records, values, failed, missing, estimate(values.values()) if values else None))
    return Table(task, _compare(rows, task.higher_is_better))


def _failure(record: Record, task: Task) -> str | None:
    """Why a run has no value, in one line; ``None`` if it has one."""
    if not record.ok:
        return " ".join((record.error or {}).get("reason", "no reason recorded").split())
    value = record.metrics.get(f"test/{task.metric}")
    if value is None:
        return f"no test/{task.metric} recorded"
    return None if math.isfinite(value) else f"test/{task.metric} is {value}"


def _compare(rows: list[Row], higher_is_better: bool) -> tuple[Row, ...]:
    """The rows with differences to the reference, corrected for their number."""
    reference = next((row.values for row in rows if row.label == REFERENCE_ENCODING), {})
    differences = [
        None if row.label == REFERENCE_ENCODING else paired_difference(row.values, reference) for row in rows
    ]
    adjusted = holm([d.p_value if d else None for d in differences])
    return tuple(
        replace(row, difference=d, p_adjusted=p, verdict=verdict(d, p, higher_is_better) if d else None)
        for row, d, p in zip(rows, differences, adjusted, strict=True)
    )


def commands(table: Table) -> list[str]:
    """The command lines that make a table's records, one for each set of encoding options."""
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        groups.setdefault(json.dumps(dict(row.config.encoding_args), sort_keys=True), []).append(row)
    return [_command(table, rows) for _, rows in sorted(groups.items(), key=lambda item: (item[0] != "{}", item[0]))]


def _command(table: Table, rows: list[Row]) -> str:
    names = tuple(row.config.encoding for row in rows)
    options = {f"encoding.{name}": value for name, value in sorted(rows[0].config.encoding_args.items())}
    seeds = sorted({record.config.seed for row in rows for record in row.records})
    words = ["pebench", "run", "--task", table.task.name, "--tier", table.config.tier]
    if names != CORE_ENCODINGS or options:
        words += [word for name in names for word in ("--pe", name)]
    if seeds == [*range(len(seeds))]:
        words += ["--seeds", str(len(seeds))]
    else:
        words += [word for seed in seeds for word in ("--seed", str(seed))]
    words += [word for item in assignments(table.settings | options) for word in ("--set", item)]
    return shlex.join(words)


def assignments(settings: dict[str, Any]) -> list[str]:
    """Settings as ``--set`` takes them: ``train.max_steps=10``."""
    return [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()]


def provenance(table: Table) -> dict[str, list[str]]:
    """Where the records come from: every value that occurs, and ``unknown`` where none does."""
    records = table.records
    found: dict[str, set[Any]] = {"protocol": {record.protocol for record in records}}
    for name in ("pebench", "torch", "lightning"):
        found[name] = {record.environment.get("versions", {}).get(name) for record in records}
    for name in ("commit", "device", "threads", "precision", "attention"):
        found[name] = {record.environment.get(name) for record in records}
    found["data"] = {record.dataset.get("fingerprint") for record in records}
    found["sizes"] = {_sizes(record) for record in records}
    return {name: sorted(str(v) for v in values if v is not None) or ["unknown"] for name, values in found.items()}


def _sizes(record: Record) -> str | None:
    sizes = record.dataset.get("sizes", {})
    return ", ".join(f"{split} {sizes[split]:,}" for split in ("train", "val", "test") if split in sizes) or None


def warnings(table: Table) -> list[str]:
    """What a reader must know before comparing the rows."""
    origin, found = provenance(table), []
    if len(origin["data"]) > 1:
        found.append("Rows were not measured on the same data.")
    if any(len(origin[name]) > 1 for name in ("pebench", "torch", "commit")):
        found.append("Rows were not measured with the same code.")
    if any(len(origin[name]) > 1 for name in ("device", "threads")):
        found.append("Rows were not measured on the same device: throughput and memory do not compare.")
    for row in table.rows:
        if len({(p.get("encoding"), p.get("total")) for p in row.known(lambda r: r.parameters or None)}) > 1:
            found.append(f"Runs of {row.label} have different numbers of parameters; the largest is shown.")
    if not any(row.label == REFERENCE_ENCODING and row.values for row in table.rows):
        found.append(f"No run of {REFERENCE_ENCODING} finished: there are no differences to it.")
    return found
