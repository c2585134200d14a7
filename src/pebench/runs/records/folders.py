"""Files of records: where they lie below a folder, and the records in each as text.

Paths are text here, and files are opened by `os.open`: of a hundred thousand runs, `Path` objects and `open` would take
longer than to read them.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pebench.runs.records.record import FAILURE, FILE_NAME

PLANS = "plans"
"""Folder of the plans that were made for an output folder, under it."""

RUN_DEPTH = 4
"""Parts of a record's path below an output folder: task/encoding/run/record.json."""


def record_files(source: Path) -> list[str]:
    """Return the files of records in a folder; a run's own come last, so that they win over a collection.

    In an output folder, which has runs of its own, files of another output folder inside it do not count.

    Args:
        source: A folder, or a file, which is then the only one.
    """
    if source.is_file():
        return [str(source)]
    found: dict[str, list[str]] = {".jsonl": [], FAILURE: [], FILE_NAME: []}
    for path in _below(str(source)):
        name = os.path.basename(path)
        kind = ".jsonl" if name.endswith(".jsonl") else name
        if kind in found:
            found[kind].append(path)
    top = str(source).count(os.sep)
    if any(path.count(os.sep) == top + RUN_DEPTH for path in found[FAILURE] + found[FILE_NAME]):
        depths = {".jsonl": 1, FAILURE: RUN_DEPTH, FILE_NAME: RUN_DEPTH}
        for kind, depth in depths.items():
            found[kind] = [path for path in found[kind] if path.count(os.sep) == top + depth]
    return sorted(found[".jsonl"]) + sorted(found[FAILURE]) + sorted(found[FILE_NAME])


def _below(folder: str) -> Iterator[str]:
    """Yield every file below a folder, but in a finished run's folder its record alone."""
    folders, linked = [folder], {os.path.realpath(folder)}
    while folders:
        here = folders.pop()
        if os.path.isfile(record := os.path.join(here, FILE_NAME)):
            yield record
            continue
        # A run deletes files and folders that it has no more use for, also while they are listed here.
        with contextlib.suppress(FileNotFoundError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_symlink():  # a folder on another disk, say: followed once, or a circle would have no end
                    real = os.path.realpath(entry.path)
                    if real in linked:
                        continue
                    linked.add(real)
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    yield entry.path


def record_texts(path: str) -> Iterable[tuple[int, bytes]]:
    """Return the records in a file, each with its line number; 0 for a run's own file, which is one record."""
    if path.endswith(".jsonl"):
        return _lines(path)
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        # A failed run was tried again since its failure was listed, and may have finished by now.
        finished = os.path.join(os.path.dirname(path), FILE_NAME)
        return record_texts(finished) if path != finished and os.path.isfile(finished) else []
    try:
        return [(0, os.read(file, os.fstat(file).st_size))]
    finally:
        os.close(file)


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line
