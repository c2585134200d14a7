"""One run in full, and two collections of records side by side, as text."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pebench.errors import UserError
from pebench.formatting import counted, duration_text
from pebench.results.cells import NOTHING, plus_minus
from pebench.results.stats import estimate, paired_difference
from pebench.runs.leases import holder_of
from pebench.runs.records import FAILURE, FILE_NAME, Record, read_records
from pebench.tasks import recorded_task


def describe(place: Path) -> str:
    """Return everything that is recorded of one run, as text.

    Args:
        place: Folder or record of the run.

    Raises:
        UserError: If there is no run, or more than one.
    """
    # Without a record of its own the folder may be that of a run in progress, or hold a collection.
    if place.is_dir() and not any((place / name).exists() for name in (FILE_NAME, FAILURE)):
        holder = holder_of(place)
        if holder:
            return f"{place}: running, step {holder.step}, in process {holder.pid} of {holder.host}\n"
        if not any(any(place.rglob(name)) for name in (FILE_NAME, FAILURE, "*.jsonl")):
            raise UserError(f"{place} holds no record of a run; it has not finished.")
    records = read_records(place)
    if len(records) != 1:
        raise UserError(f"expected one run, but {place} holds {len(records)}. Name one of the folders in it.")
    return _run_text(records[0], place)


def _run_text(record: Record, place: Path) -> str:
    config = record.config
    head = f"{config.task} {config.label}, seed {config.seed}, tier {config.tier}: {record.status}"
    took = f" in {duration_text(record.duration_s)}" if record.duration_s is not None else ""
    sections: dict[str, Mapping[str, Any]] = {
        "error": {k: v for k, v in (record.error or {}).items() if k != "log"},
        "metrics": record.metrics,
        "costs": {
            **{f"parameters.{name}": value for name, value in record.parameters.items()},
            "flops_per_sample": record.flops_per_sample,
            "throughput": record.throughput and f"{record.throughput:.6g} examples/s",
            "peak_memory_gib": record.peak_memory_gib,
        },
        "position_shares (of the stream's variance, before each block and of the output)": {
            stage: ", ".join("unknown" if share is None else f"{share:.4f}" for share in shares)
            for stage, shares in record.position_shares.items()
        },
        "beyond": _flat(record.beyond),
        **{f"analysis, {stage}": _flat(figures) for stage, figures in record.analysis.items()},
        "settings": _flat(config.to_dict()),
        "data": _flat(record.dataset),
        "environment": _flat(record.environment),
        "origin": {"place": place, "started": record.started, "protocol": record.protocol, "key": config.key},
    }
    lines = [head + took]
    for title, values in sections.items():
        known = {name: value for name, value in values.items() if value is not None}
        width = max(map(len, known), default=0)  # a section may have nothing that is known
        lines += [f"\n{title}"] * bool(known) + [f"  {name:{width}}  {_text(value)}" for name, value in known.items()]
    if record.curve:
        lines += ["\ncurve", *(f"  {line}" for line in _curve(record.curve))]
    if log := (record.error or {}).get("log"):
        lines += ["\nend of its log", *(f"  {line}" for line in log.splitlines())]
    return "\n".join(lines) + "\n"


def _curve(points: Sequence[Mapping[str, float]]) -> list[str]:
    from tabulate import tabulate

    names = list(dict.fromkeys(name for point in points for name in point))
    rows = [[_text(point.get(name, "")) for name in names] for point in points]
    return str(tabulate(rows, headers=names, tablefmt="plain", disable_numparse=True)).splitlines()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def compare(a: Sequence[Record], b: Sequence[Record], names: tuple[str, str]) -> str:
    """Return the settings, circumstances and outcomes at equal seeds in which two collections differ, as text.

    Args:
        a: One collection.
        b: The other, whose outcomes are compared to those of the first.
        names: Names of both.
    """
    lines = [f"A: {names[0]}, {counted(len(a), 'run')}", f"B: {names[1]}, {counted(len(b), 'run')}", ""]
    differing = _differences(a, b)
    lines += [f"differs  {name}: {ours} | {theirs}" for name, ours, theirs in differing]
    lines += [""] * bool(differing)
    return "\n".join([*lines, _outcomes(a, b)]) + "\n"


def _differences(a: Iterable[Record], b: Iterable[Record]) -> list[tuple[str, str, str]]:
    """Return the names of facts that do not take the same values in both, with the values."""
    ours, theirs = _values(a), _values(b)
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = sorted(ours.get(name, set())), sorted(theirs.get(name, set()))
        if mine != other:
            found.append((name, " ".join(mine) or "nothing", " ".join(other) or "nothing"))
    return found


def _values(records: Iterable[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        facts = _facts(record) | _flat({"environment": record.environment, "status": record.status})
        facts |= {"data": record.dataset.get("fingerprint", "unknown")[:12]}  # beside data.max_len and the like
        for name, value in facts.items():
            found.setdefault(name, set()).add(json.dumps(value))  # as text: lists and mappings cannot be in a set
    return found


def _outcomes(a: Sequence[Record], b: Sequence[Record]) -> str:
    """Return a text table with the means of both by task and encoding, and their difference at equal seeds."""
    from tabulate import tabulate

    # Settings that tell rows of one collection apart, of either: else its runs would overwrite each other by seed.
    distinguishing = sorted(_distinguishing(a) | _distinguishing(b))
    ours, theirs = _by_encoding(a, distinguishing), _by_encoding(b, distinguishing)
    rows = []
    for key in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(key, {}), theirs.get(key, {})
        # At equal seeds, also where one collection has more: the means of each are over all that it has.
        difference = paired_difference(other, mine)
        means = (plus_minus(estimate(seeds.values()), 1, 4) if seeds else NOTHING for seeds in (mine, other))
        change = plus_minus(difference, 1, 4, "+") if difference else "no seed in common"
        rows.append([*key, *means, change, difference.n if difference else 0])
    names = ["Task", "Encoding", "Metric", "A", "B", "B - A", "pairs"]
    align = ["left"] * 3 + ["right"] * 4
    return str(tabulate(rows, headers=names, tablefmt="simple", colalign=align, disable_numparse=True))


def _facts(record: Record) -> dict[str, Any]:
    return _flat(record.config.to_dict() | {"protocol": record.protocol})


def _distinguishing(records: Iterable[Record]) -> set[str]:
    """Return the settings that differ between runs of one collection with the same encoding and seed."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        config = record.config
        groups.setdefault((config.task, config.label, config.stage, config.seed), []).append(_facts(record))
    differing = set()
    for group in groups.values():
        for name in set().union(*group):
            values = {json.dumps(facts.get(name)) for facts in group}  # as text: a list cannot be in a set
            if len(values) > 1:
                differing.add(name)
    return differing


def _by_encoding(records: Iterable[Record], settings: Sequence[str]) -> dict[tuple[str, str, str], dict[int, float]]:
    """Return task, encoding with these settings, and metric to the value of each seed."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for record in records:
        config = record.config
        task = recorded_task(config.task)
        # Selecting runs are never tested, so they compare by what selected.
        metric = f"test/{task.metric}" if config.stage == "test" else task.monitored(config.train.monitor)[0]
        facts = _facts(record)
        name = " ".join([config.label, *(f"{name}={_text(facts[name])}" for name in settings if name in facts)])
        values = found.setdefault((config.task, name, metric), {})
        if record.ok and metric in record.metrics:
            values[config.seed] = record.metrics[metric]
    return found
