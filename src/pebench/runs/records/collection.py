"""Collections of records: read from folders and ``.jsonl`` files, and written to such a file."""

import itertools
import logging
import math
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson  # json would take half the time of a report of very many runs

from pebench.atomic import replacing
from pebench.config import RunConfig
from pebench.errors import UserError
from pebench.runs.collector import paused_garbage_collection
from pebench.runs.records.folders import PLANS, RUN_DEPTH, record_files, record_texts
from pebench.runs.records.merging import merge
from pebench.runs.records.record import DAMAGE, FAILURE, FILE_NAME, Record, check_key, check_whole, damage_text
from pebench.runs.records.run_files import is_in_place
from pebench.runs.records.schema import check_fields

log = logging.getLogger(__name__)

RUN_FOLDER = re.compile(r"(select-)?seed\d+-[0-9a-f]{12}")
"""Names of folders of runs, which end in the run's key."""

COLLECTION = "runs.jsonl"
"""Name of the file of records in a published folder: ``results/core/runs.jsonl``."""


def holds_records(source: Path) -> bool:
    """Return whether `read_records` would find any files of records; reads none."""
    return source.exists() and bool(record_files(source))


def read_records(source: Path) -> list[Record]:
    """Return every record in a folder of runs or in a file of one JSON record per line, in a fixed order.

    A record that lies in another run's folder is left out with a warning in the log: `run_suite` would make that run.

    Args:
        source: An output folder, or a ``.jsonl`` file, or a folder that holds such files.

    Raises:
        UserError: If there is no such folder, nothing in it, or a file that is no record.
    """
    if not source.exists():
        folder = source.with_suffix("")
        hint = f" {str(folder)!r} does." if (folder / COLLECTION).exists() else ""
        raise UserError(f"expected a folder of runs or a .jsonl file, but {str(source)!r} does not exist.{hint}")
    found: list[Record] = []
    read = _Reader()
    with paused_garbage_collection():
        for path in record_files(source):
            number = 0
            try:
                for line, text in record_texts(path):
                    number = line  # of which an error tells
                    record = read(text)
                    if _is_at_home(record, path, source):
                        found.append(record)
            except DAMAGE as error:
                raise _unreadable(source, path, number, error) from error
    if not found:
        place = shlex.quote(str(source))
        make = "" if source.is_file() else f" Make some: pebench run --suite quickstart --out {place}"
        if (source / PLANS).is_dir():
            make = f" No run has finished yet: pebench status {place}"
        raise UserError(f"no records {'in' if source.is_file() else 'under'} {str(source)!r}.{make}")
    return merge([found[::-1]])[0]  # the later of two records of a run counts, and `merge` keeps the first


def _is_at_home(record: Record, path: str, source: Path) -> bool:
    """Return False for a record in the folder of another run, and name it."""
    parts = path.removeprefix(str(source)).strip(os.sep).split(os.sep)
    directory = "/".join(parts[:-1])
    if len(parts) != RUN_DEPTH or not RUN_FOLDER.fullmatch(parts[-2]) or is_in_place(record, directory):
        return True
    log.warning("%s is left out: it is the record of %s, in the folder of another run", path, record.config.directory)
    return False


def _unreadable(source: Path, path: str, line: int, error: Exception) -> UserError:
    """Return the error for a file that holds something else than records.

    Args:
        source: Folder or file that is read.
        path: File in it that cannot be read.
        line: Number of the line in a ``.jsonl`` file; 0 in other files.
        error: Exception that reading it raised.
    """
    if path == str(source) and source.suffix != ".jsonl" and source.name not in (FILE_NAME, FAILURE):
        beside = [path for path in (source.with_suffix(".jsonl"), source.with_name(COLLECTION)) if path.exists()]
        hint = f" {beside[0]}, beside it, may." if beside else ""
        return UserError(f"expected a folder of runs or a .jsonl file; {path} holds no records.{hint}")
    return UserError(
        f"{path}{f', line {line},' if line else ''} is not a record that this pebench can read "
        f"({damage_text(error)}). If a newer one made it, update; else "
        f"{'get the file again, or leave out that line' if line else 'delete it and run again'}."
    )


def _checked(facts: dict[str, Any]) -> dict[str, Any]:
    check_fields(facts)
    return facts


class _Reader:
    """Reader of records that share equal parts: a hundred thousand runs have few environments and settings."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Any] = {}

    def __call__(self, text: bytes) -> Record:
        values = orjson.loads(text)
        check_whole(values)
        # Seed and key are taken out, so that all seeds of a configuration share one parsed object; the key follows from
        # both.
        config, key = values.pop("config"), values.pop("key", None)
        seed = config.pop("seed", 0)
        kind = self._shared(config, RunConfig.from_dict)  # checked and hashed once for all its seeds
        facts = {name: values.pop(name) for name in ("dataset", "environment", "parameters") if name in values}
        check_fields(values)
        values |= self._shared(facts, _checked)
        record = Record(config=kind.with_seed(seed), **values)
        check_key(record, key)
        return record

    def _shared(self, values: Any, make: Callable[[Any], Any]) -> Any:
        """Return what `make` made of the first values with the same JSON, in which 1 and 1.0 differ."""
        text = orjson.dumps(values)
        if text not in self._seen:
            self._seen[text] = make(values)
        return self._seen[text]


def write_jsonl(records: list[Record], path: Path) -> None:
    """Write records to one file, a line each, as results are published.

    Raises:
        UserError: If its folder does not exist, it is one, or its name does not end in ``.jsonl``.
        ValueError: If a number is infinite or no number, which JSON cannot hold.
    """
    if path.is_dir():
        raise UserError(f"expected a file to write records to, but {str(path)!r} is a folder.")
    if not path.parent.is_dir():
        raise UserError(f"expected a folder to write {path.name} to, but {str(path.parent)!r} is none.")
    if path.suffix != ".jsonl":
        raise UserError(f"expected a file that ends in .jsonl, by which records are found again, got {str(path)!r}.")
    kinds: dict[str, dict[str, Any]] = {}  # very many seeds have the same configuration otherwise
    with replacing(path) as file, paused_garbage_collection():
        for record in records:
            _check_finite(record)
            kind = record.config.kind_key
            if kind not in kinds:
                kinds[kind] = record.config.to_dict()
            values = record.to_dict({**kinds[kind], "seed": record.config.seed})
            file.write(orjson.dumps(values, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))


def _check_finite(record: Record) -> None:
    """Refuse numbers that JSON cannot hold: orjson would write null.

    Raises:
        ValueError: If a number is infinite or no number.
    """
    single = filter(None, (record.throughput, record.peak_memory_gib, record.duration_s))
    numbers = itertools.chain(single, record.metrics.values(), *(point.values() for point in record.curve))
    if not math.isfinite(sum(numbers)):  # one sum to look at: it is finite only if all of them are
        raise ValueError(f"a number in the record of {record.config.directory} is not JSON compliant")
