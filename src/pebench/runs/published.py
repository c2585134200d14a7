"""Published records: those that lie in ``results/`` beside the suites, from which a suite takes the runs it shares."""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.errors import UserError
from pebench.runs.costs import cost
from pebench.runs.records import COLLECTION, Record, merge
from pebench.runs.records.record import DAMAGE, damage_text
from pebench.runs.suite.files import shipped

KEY = re.compile(rb'"key":"([^"]+)"')
"""A record's key in a line of a collection: most lines are other runs', and are not parsed."""


def shipped_results() -> Path:
    """Return the folder of published records: that of the clone that pebench is imported from, or else called in.

    An installed package has suites and no records, but whoever installed it from a clone mostly works there.
    """
    home = shipped("benchmarks").parent
    installed = home == Path(__file__).parents[1]
    if installed and Path("src/pebench").is_dir():
        return Path("results").absolute()
    return home / "results"


def published_records(runs: Sequence[RunConfig], folder: Path) -> dict[str, Record]:
    """Return the published records of some runs, by key, as ``pebench merge`` would write them.

    Those of another protocol are left out. Where matching changes nothing about a row, its run at equal width is the
    same run, and counts. Of records that contradict each other the first is taken, by the names of their folders.

    Args:
        runs: The runs.
        folder: Folder of published folders, each with a collection.

    Raises:
        UserError: If a record of one of the runs is damaged, with its place.
    """
    keys = {key for config in runs for key in (config.key, _at_width(config).key)}
    found = [_of_runs(keys, path) for path in sorted(folder.glob(f"*/{COLLECTION}"))] if keys else []
    records = {record.config.key: record for record in merge(found)[0]}
    taken = []
    for config in runs:
        if record := records.get(config.key):
            taken.append(record)
        elif record := records.get(_at_width(config).key):
            taken += equal_already([record], config.regime)
    return {record.config.key: record for record in with_costs(taken)}


def _at_width(config: RunConfig) -> RunConfig:
    return replace(config, regime="width")


def _of_runs(keys: Container[str], path: Path) -> list[Record]:
    """Return the records of some runs, by their keys, in a collection; those of today's protocol alone."""
    records = []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            key = KEY.search(line)
            if key is None or key[1].decode() not in keys:
                continue
            try:
                record = Record.from_dict(orjson.loads(line))
            except DAMAGE as error:
                raise UserError(
                    f"{path}, line {number} is not a record that this pebench can read ({damage_text(error)}). "
                    "Get the file again, or make the runs: --no-published."
                ) from error
            if record.protocol == PROTOCOL_VERSION:
                records.append(record)
    return records


def equal_already(records: Iterable[Record], regime: str) -> list[Record]:
    """Return runs at equal width as runs of another regime: where matching changes nothing, they are the same runs."""
    if regime == "width":
        return []
    return [replace(r, config=replace(r.config, regime=regime)) for r in records if r.config.regime == "width"]


def with_costs(records: Iterable[Record]) -> list[Record]:
    """Return the records, with the FLOPs that the regime matches in those that ran at equal width."""

    def lacks(r: Record) -> bool:
        return r.config.regime == "FLOPs" and r.ok and not r.matched_flops

    records = list(records)
    kinds = {r.config.kind_key: r.config for r in records if lacks(r)}
    flops = {kind: cost(config).of("FLOPs") for kind, config in kinds.items()}
    return [replace(r, matched_flops=flops[r.config.kind_key]) if lacks(r) else r for r in records]
