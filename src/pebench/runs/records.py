"""Records: one JSON file per run, written whole or not at all. Tables are made from these alone."""

import contextlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson  # json would take half the time of a report of very many runs

from pebench.atomic import replacing
from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.errors import UserError
from pebench.runs.collector import no_search_for_garbage
from pebench.tasks import reconfigure

SCHEMA = 1
FILE_NAME = "record.json"
"""Of a run that finished. It never gives way to a failure's."""
FAILURE = "failure.json"
"""Of a run that failed, until it finishes."""
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, UserError)
"""What reading something else than a record can raise."""


@dataclass(frozen=True)
class Record:
    """What a run leaves behind.

    Args:
        config: The resolved configuration.
        status: ``ok`` or ``failed``.
        metrics: Test metrics of the weights that validation chose (``test/accuracy``), the best validation
            metrics (``val/loss``) and the step they were reached at (``best_step``).
        curve: Validation and training metrics along the run, each point with its ``step``.
        parameters: Numbers of trained parameters: ``encoding`` and ``total``.
        flops_per_sample: Floating-point operations to train on one sample once, forward and backward; of texts, on one
            of the median length.
        throughput: Samples (images, texts, windows of tokens) trained on in a second, validation excluded.
        peak_memory_gib: Largest resident memory of the process while it trained, or of the accelerator if one was used.
        duration_s: Wall-clock time of the whole run.
        dataset: ``fingerprint`` (SHA-256 of the prepared data), ``sizes`` per split, ``padding`` (share of the
            tokens in a training epoch that are padding).
        environment: ``versions``, ``commit``, ``device``, ``devices``, ``threads``, ``precision``, ``compiled``,
            ``attention`` (kernel), and ``plugins`` and ``task``, where an encoding or the task is a plug-in.
        started: UTC, ISO 8601.
        error: For a failed run: its ``kind``, the ``reason`` in one line and the ``log``'s tail.
        protocol: Version of the rules.
        schema: Version of this layout.
        matched_flops: As `flops_per_sample`, of a sample of full length in a training step, whose samples share some of
            the work: by this the regime ``FLOPs`` matches rows.
        position_shares: Of the variance of what enters each block, and last the output layer, the share that lies
            between positions: ``untrained`` and ``trained``. See `pebench.training.position_share`.
    """

    config: RunConfig
    status: str = "ok"
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Sequence[Mapping[str, float]] = field(default_factory=list)
    parameters: Mapping[str, int] = field(default_factory=dict)
    flops_per_sample: int | None = None
    throughput: float | None = None
    peak_memory_gib: float | None = None
    duration_s: float | None = None
    dataset: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    error: Mapping[str, str] | None = None
    protocol: str = PROTOCOL_VERSION
    schema: int = SCHEMA
    matched_flops: int | None = None
    position_shares: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the run finished and was tested."""
        return self.status == "ok"

    def to_dict(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The record as plain JSON values.

        Args:
            config: What its configuration's `to_dict` gives, where that is known.
        """
        return vars(self) | {"key": self.config.key, "config": config or self.config.to_dict()}

    @property
    def diverged(self) -> bool:
        """Whether the run failed because its loss was no number any more."""
        return not self.ok and (self.error or {}).get("kind") == "diverged"

    @property
    def reason(self) -> str:
        """Why the run failed, in one line."""
        return " ".join((self.error or {}).get("reason", "").split()) or "no reason recorded"

    @property
    def identity(self) -> tuple[str, str]:
        """What two records of the same run share: protocol and key."""
        return self.protocol, self.config.key

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Record":
        """The record that `to_dict` wrote."""
        rest = {name: value for name, value in values.items() if name not in ("config", "key")}
        return checked(Record(config=RunConfig.from_dict(values["config"]), **rest))


def checked(record: Record) -> Record:
    """The same record, if its fields are of the kinds that reports take for granted.

    Raises:
        TypeError: If one is not.
        ValueError: If it does not say when the run was started.
    """
    for name in ("metrics", "parameters", "dataset", "environment", "position_shares", "error"):
        value = getattr(record, name)
        if not isinstance(value, Mapping) and not (name == "error" and value is None):
            raise TypeError(f"expected {name} as names and values, got {value!r}")
    if not all(isinstance(value, int | float) for value in record.metrics.values()):
        raise TypeError(f"expected numbers as metrics, got {dict(record.metrics)}")
    if record.started and datetime.fromisoformat(record.started).tzinfo is None:
        raise ValueError(f"expected the time at which the run was started with its zone, got {record.started!r}")
    return record


def write_record(record: Record, out: Path) -> Path:
    """Write a record so that it is there completely or not at all, even if the machine stops.

    Args:
        record: What to write.
        out: Output folder; the record goes to its configuration's directory under it.

    Returns:
        The file written.
    """
    folder = out / record.config.directory
    path = folder / (FILE_NAME if record.ok else FAILURE)
    text = json.dumps(record.to_dict(), indent=1, sort_keys=True, allow_nan=False)
    with replacing(path, durable=True) as file:
        file.write(f"{text}\n".encode())
    if record.ok:
        (folder / FAILURE).unlink(missing_ok=True)
    return path


def write_config(config: RunConfig, out: Path) -> Path:
    """Write a run's configuration to its folder, for ``pebench run --config``."""
    path = out / config.directory / "config.json"
    with replacing(path) as file:
        file.write(f"{json.dumps(config.to_dict(), indent=1, sort_keys=True)}\n".encode())
    return path


def read_config(path: Path) -> RunConfig:
    """The configuration in a file that `write_config` wrote, or in a record.

    Args:
        path: Of the file, or of a finished run's folder.

    Raises:
        UserError: If there is none, or it cannot work.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return reconfigure(values.get("config", values))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror or error}. Expected a record.json, or the folder of one finished run."
        ) from error
    except DAMAGE as error:
        raise UserError(f"{path} holds no configuration of a run ({type(error).__name__}: {error})") from error


def find_record(config: RunConfig, out: Path) -> Record | None:
    """The record of a run under `out`, if it has one that can be read."""
    return read_record(out / config.directory)


def read_record(folder: Path) -> Record | None:
    """The record in a run's folder, if it has one that can be read."""
    for name in (FILE_NAME, FAILURE):
        with contextlib.suppress(OSError, *DAMAGE):
            return Record.from_dict(json.loads((folder / name).read_text(encoding="utf-8")))
    return None


def holds_records(source: Path) -> bool:
    """Whether `read_records` would find any; reads none."""
    return source.exists() and bool(_files(source))


def read_records(source: Path) -> list[Record]:
    """Every record in a folder of runs or in a file of one JSON record per line, in a fixed order.

    Args:
        source: An output folder, or a ``.jsonl`` file, or a folder that holds such files.

    Raises:
        UserError: If there is no such folder, nothing in it, or a file that is no record.
    """
    if not source.exists():
        raise UserError(f"expected a folder of runs or a .jsonl file, but {str(source)!r} does not exist.")
    found: list[Record] = []
    read = _Reader()
    with no_search_for_garbage():
        for path in _files(source):
            line = 0
            try:
                for line, text in _texts(path):  # noqa: B007
                    found.append(read(text))
            except DAMAGE as error:
                if path == str(source) and source.suffix != ".jsonl" and source.name not in (FILE_NAME, FAILURE):
                    beside = source.with_suffix(".jsonl")
                    hint = f" {beside}, beside it, may." if beside.exists() else ""
                    raise UserError(
                        f"expected a folder of runs or a .jsonl file; {path} holds no records.{hint}"
                    ) from error
                raise UserError(
                    f"{path}{f', line {line},' if line else ''} is not a record that this pebench can read "
                    f"({type(error).__name__}: {error}). If a newer one made it, update; else "
                    f"{'get the file again, or leave out that line' if line else 'delete it and run again'}."
                ) from error
    if not found:
        make = "" if source.is_file() else f" Make some: pebench run --suite quickstart --out {source}"
        raise UserError(f"no records {'in' if source.is_file() else 'under'} {str(source)!r}.{make}")
    return merge([found[::-1]])[0]  # of two records of a run the later counts


class _Reader:
    """Reads records that share what is equal in them: a hundred thousand runs have few environments and settings."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Any] = {}

    def __call__(self, text: bytes) -> Record:
        values = orjson.loads(text)
        config = values.pop("config")
        seed = config.pop("seed", 0)
        kind = self._shared(config, RunConfig.from_dict)  # checked and hashed once for all its seeds
        values.pop("key", None)
        facts = {name: values[name] for name in ("dataset", "environment", "parameters") if name in values}
        values |= self._shared(facts, lambda same: same)
        return checked(Record(config=kind.with_seed(seed), **values))

    def _shared(self, values: Any, make: Callable[[Any], Any]) -> Any:
        """What was made of values that look the same: 1 is not 1.0 here, though equal."""
        text = orjson.dumps(values)
        if text not in self._seen:
            self._seen[text] = make(values)
        return self._seen[text]


def _order(record: Record) -> tuple[Any, ...]:
    config = record.config
    return config.task, config.encoding, config.seed, config.key, record.protocol


def _files(source: Path) -> list[str]:
    """Files of records; a run's own comes last, so that it wins over a collection."""
    if source.is_file():
        return [str(source)]
    found: dict[str, list[str]] = {".jsonl": [], FAILURE: [], FILE_NAME: []}
    for path in _below(str(source)):
        name = os.path.basename(path)
        kind = ".jsonl" if name.endswith(".jsonl") else name
        if kind in found:
            found[kind].append(path)
    deep = str(source).count(os.sep) + 4  # of task/encoding/run/record.json in an output folder
    if any(path.count(os.sep) == deep for kind in (FAILURE, FILE_NAME) for path in found[kind]):
        depths = {".jsonl": deep - 3, FAILURE: deep, FILE_NAME: deep}  # what is deeper is of another one inside it
        found = {kind: [path for path in paths if path.count(os.sep) == depths[kind]] for kind, paths in found.items()}
    return [path for paths in found.values() for path in sorted(paths)]


def _below(folder: str) -> Iterator[str]:
    """Every file below a folder, but in a finished run's its record alone.

    As text: a `Path` for each of very many would take longer than to read them.
    """
    folders, linked = [folder], {os.path.realpath(folder)}
    while folders:
        here = folders.pop()
        if os.path.isfile(record := os.path.join(here, FILE_NAME)):
            yield record
            continue
        with contextlib.suppress(FileNotFoundError), os.scandir(here) as entries:  # what a run has no more use for
            for entry in entries:
                if entry.is_symlink():  # to another disk, say; once, or a circle had no end
                    real = os.path.realpath(entry.path)
                    if real in linked:
                        continue
                    linked.add(real)
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    yield entry.path


def _texts(path: str) -> Iterable[tuple[int, bytes]]:
    """The records in a file, each with the number of its line; 0 for a run's own file, which is one record."""
    if path.endswith(".jsonl"):
        return _lines(path)
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # of very many, `open` would take twice as long
    except FileNotFoundError:  # of a failure: the run was tried again meanwhile, and may have ended
        beside = os.path.join(os.path.dirname(path), FILE_NAME)
        return _texts(beside) if path != beside and os.path.isfile(beside) else []
    try:
        return [(0, os.read(file, os.fstat(file).st_size))]
    finally:
        os.close(file)


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    with open(path, "rb") as file:
        yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())


def write_jsonl(records: list[Record], path: Path) -> None:
    """Write records to one file, a line each, as results are published.

    Raises:
        UserError: If its folder does not exist, it is one, or its name does not end in ``.jsonl``.
    """
    if path.is_dir():
        raise UserError(f"expected a file to write records to, but {str(path)!r} is a folder.")
    if not path.parent.is_dir():
        raise UserError(f"expected a folder to write {path.name} to, but {str(path.parent)!r} is none.")
    if path.suffix != ".jsonl":
        raise UserError(f"expected a file that ends in .jsonl, by which records are found again, got {str(path)!r}.")
    kinds: dict[str, dict[str, Any]] = {}  # configurations are the same for very many seeds
    with replacing(path) as file, no_search_for_garbage():
        for record in records:
            _check_finite(record)
            kind = record.config.kind_key
            if kind not in kinds:
                kinds[kind] = record.config.to_dict()
            values = record.to_dict({**kinds[kind], "seed": record.config.seed})
            file.write(orjson.dumps(values, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))


def _check_finite(record: Record) -> None:
    """Refuse what JSON has no number for; orjson would write null.

    Raises:
        ValueError: If a number is infinite, or none.
    """
    once = filter(None, (record.throughput, record.peak_memory_gib, record.duration_s))
    numbers = itertools.chain(once, record.metrics.values(), *(point.values() for point in record.curve))
    if not math.isfinite(sum(numbers)):  # which is one number to look at
        raise ValueError(f"a number in the record of {record.config.directory} is not JSON compliant")


def merge(collections: Iterable[Sequence[Record]]) -> tuple[list[Record], list[tuple[Record, Record]]]:
    """Records of several machines as one collection, each run once.

    A run that finished anywhere counts as finished; of two that failed one that diverged counts, which says something
    of the run. Otherwise the first record of a run is kept.

    Args:
        collections: Each as `read_records` gives it; earlier ones take precedence.

    Returns:
        The records in a fixed order, and pairs that contradict each other: kept, and left out.
    """
    kept: dict[tuple[str, str], Record] = {}
    conflicts = []
    for record in (record for records in collections for record in records):
        known = kept.setdefault(record.identity, record)
        if (record.ok, record.diverged) > (known.ok, known.diverged):
            kept[record.identity] = record
        elif record.ok and (record.metrics, record.dataset) != (known.metrics, known.dataset):
            conflicts.append((known, record))
    return sorted(kept.values(), key=_order), conflicts
