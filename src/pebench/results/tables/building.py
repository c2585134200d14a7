"""Records sorted into tables, and the checks that they may share one."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pebench.config import REFERENCE_ENCODING, REGIMES, TIERS, sort_key
from pebench.errors import UserError
from pebench.formatting import natural
from pebench.results.stats import estimate
from pebench.results.tables.comparing import compare_to_reference
from pebench.results.tables.row import Row
from pebench.results.tables.settings import row_settings, shared_settings
from pebench.results.tables.table import Table
from pebench.runs.records import Record
from pebench.runs.selection import Trial, best
from pebench.tasks import Task, recorded_task

Group = tuple[Any, ...]
"""Protocol, task, tier, regime and settings that the records of one table have in common."""


def build_tables(
    records: Iterable[Record], allow_unmatched: bool = False, reference: str = REFERENCE_ENCODING
) -> list[Table]:
    """Sort records into tables; the order they come in does not matter.

    Args:
        records: Records of any runs.
        allow_unmatched: Make tables whose rows break their regime too.
        reference: Label of the row that the others are compared to.

    Raises:
        UserError: For an unknown task, two different records of one run, or rows that break their regime.
    """
    groups = _sorted_into_groups(records)
    tables = [_table(groups[key], reference) for key in sorted(groups) if groups[key].tested]
    for table in tables:
        if table.unmatched and not allow_unmatched:
            raise UserError(
                f"rows on {table.task.name} break their regime: {'; '.join(table.unmatched)}. They do not compare; "
                "--allow-unmatched shows them all the same, with a mark."
            )
    return _with_differing_settings(tables)


@dataclass
class _Records:
    """The records of one table: those tested by label and key, and those that select by key."""

    tested: dict[str, dict[str, Record]] = field(default_factory=dict)
    selecting: dict[str, Record] = field(default_factory=dict)


def _sorted_into_groups(records: Iterable[Record]) -> dict[Group, _Records]:
    """Return the records of each table.

    Raises:
        UserError: For two different records of one run.
    """
    groups: dict[Group, _Records] = {}
    kinds: dict[tuple[str, str], tuple[Group, str]] = {}  # group and label, which are the same for all seeds
    # Sorted, so that a page does not depend on the order in which files were found.
    for record in sorted(records, key=lambda r: (r.config.seed, r.config.key)):
        config = record.config
        kind = record.protocol, config.kind_key
        if kind not in kinds:
            kinds[kind] = _group(record), config.label
        group, label = kinds[kind]
        found = groups.setdefault(group, _Records())
        if config.stage == "select":
            place, by_key = config.directory, found.selecting
        else:
            place, by_key = f"{label} seed {config.seed} on {config.task}", found.tested.setdefault(label, {})
        # Equal ones are the same run in two files, a folder and a collection of it, say.
        if by_key.setdefault(config.key, record) != record:
            raise UserError(f"two different records of {place}: delete one of them.")
    return groups


def _group(record: Record) -> Group:
    """Return the protocol, task, tier, regime and settings of a record, so that they sort."""
    config = record.config
    # A user's task may have tiers of its own; they come last.
    tier = TIERS.index(config.tier) if config.tier in TIERS else len(TIERS)
    shared = shared_settings(config, row_settings(config))
    # As keys that sort: None and numbers may be values of one setting.
    settings = tuple((name, sort_key(value)) for name, value in sorted(shared.items()))
    rules = REGIMES.index(config.regime), config.selected
    return record.protocol, config.task, tier, config.tier, rules, settings


def _with_differing_settings(tables: Sequence[Table]) -> list[Table]:
    """Return tables that know in which settings they differ from others of their task and tier."""
    beside: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        beside.setdefault((table.task.name, table.config.tier), []).append(table)
    differing = {kind: _differing(group) for kind, group in beside.items()}
    return [replace(table, differing=differing[table.task.name, table.config.tier]) for table in tables]


def _differing(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return the settings in which tables differ, sorted."""
    names = sorted({name for table in tables for name in table.settings})
    found = [table.config.values_of(names) for table in tables]
    differing = []
    for name in names:
        if any(values[name] != found[0][name] for values in found):
            differing.append(name)
    return tuple(differing)


def _table(records: _Records, reference: str) -> Table:
    trials = _trials(records.selecting.values())
    rows, superseded = [], list[Record]()
    for label in sorted(records.tested, key=natural):
        own_trials = [trial for trial in trials if trial.label == label]
        chosen, others = _chosen(list(records.tested[label].values()), own_trials)
        rows.append(_row(label, chosen))
        superseded += others
    task = recorded_task(rows[0].config.task)
    compared = compare_to_reference(rows, task.higher_is_better, reference)
    return Table(task, compared, trials, tuple(superseded), reference)


def _row(label: str, records: tuple[Record, ...]) -> Row:
    task = recorded_task(records[0].config.task)
    values, failed = dict[int, float](), dict[int, str]()
    for record in records:
        if reason := _failure(record, task):
            failed[record.config.seed] = reason
        else:
            values[record.config.seed] = record.metrics[f"test/{task.metric}"]
    return Row(label, records, values, failed, estimate(values.values()) if values else None)


def _failure(record: Record, task: Task) -> str | None:
    """Return why a run has no value, in one line; ``None`` if it has one."""
    if not record.ok:
        return record.reason
    value = record.metrics.get(f"test/{task.metric}")
    if value is None:
        return f"no test/{task.metric} recorded"
    # An infinite value would take the row's mean along; it is shown as a failure, with its seed.
    return None if math.isfinite(value) else f"test/{task.metric} is {value}"


def _trials(records: Iterable[Record]) -> tuple[Trial, ...]:
    """Return the values that were tried, by encoding and in order, each with its selecting runs."""
    found: dict[tuple[str, str], list[Record]] = {}
    seeds: dict[str, set[int]] = {}
    for record in records:
        label = record.config.label
        found.setdefault((label, json.dumps(record.config.selected_values)), []).append(record)
        seeds.setdefault(label, set()).add(record.config.seed)
    # Each value is to have as many seeds as any value of its encoding: one with fewer is not complete, and has no
    # score.
    trials = [Trial(label, json.loads(text), tuple(runs), len(seeds[label])) for (label, text), runs in found.items()]
    return tuple(sorted(trials, key=lambda trial: (natural(trial.label), trial.order)))


def _chosen(records: list[Record], trials: list[Trial]) -> tuple[tuple[Record, ...], list[Record]]:
    """Return the records of a row by seed, and those with values that are no longer chosen.

    Raises:
        UserError: If a row has several values, and nothing here tells which was chosen.
    """
    config = records[0].config
    # One kind of run: whatever was selected, it was the same for all seeds.
    if len({record.config.kind_key for record in records}) == 1:
        return tuple(records), []
    by_value: dict[str, list[Record]] = {}
    for record in records:
        by_value.setdefault(json.dumps(record.config.selected_values), []).append(record)
    chosen = by_value.pop(_chosen_values(by_value, trials, f"{config.label} on {config.task}", config.selected))
    for one, other in itertools.pairwise(chosen):  # by seed
        if one.config.seed == other.config.seed:
            place = f"{config.label} seed {one.config.seed} on {config.task}"
            raise UserError(f"two different records of {place}: delete one of them.")
    return tuple(chosen), list(itertools.chain(*by_value.values()))


def _chosen_values(
    by_value: Mapping[str, list[Record]], trials: list[Trial], place: str, selected: Sequence[str]
) -> str:
    """Return which of several tested values validation chose, as a key of `by_value`."""
    if len(by_value) == 1:
        return next(iter(by_value))
    # Among the tested values alone: one that wins by runs that came later has nothing to show yet.
    trial = best(trial for trial in trials if json.dumps(trial.values) in by_value)
    if trial is None:
        raise UserError(
            f"{place} was tested with several values of {', '.join(selected)}, and "
            "the selecting runs here do not tell which of them was chosen. Add those that are missing, or delete "
            "the records of all values but one."
        )
    return json.dumps(trial.values)
