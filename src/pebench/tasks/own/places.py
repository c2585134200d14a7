"""Places of a user's data: a record holds their name and checksum alone, and the path is looked up here. No torch here.

A command that is given a path notes it twice: in the variable `VARIABLE`, which reaches the processes of its runs on
any executor, and in the cache, by which a later command without the path finds it.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pebench.atomic import write_text
from pebench.errors import UserError
from pebench.tasks import sources

VARIABLE = "PEBENCH_OWN_DATA"
"""Variable of the environment with the places that this process knows, as JSON by key."""

VERSION = 2
"""Version of the surveys that are kept: raise it with a change of what is read or counted."""

_remarks: dict[str, list[str]] = {}


@dataclass(frozen=True)
class Place:
    """Where data are, and how they are read.

    Args:
        path: Their file or folder; empty for data of the hub.
        read: Options of reading, such as names of columns.
    """

    path: str
    read: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Survey:
    """Facts on data that decide their task.

    Args:
        sha256: Checksum of their contents, wherever they are and however a file packs them.
        options: Options of the task that follow from them.
        remarks: Sentences for the user.
    """

    sha256: str
    options: Mapping[str, Any]
    remarks: list[str]


def place_of(path: str, read: Mapping[str, str] | None = None) -> Place:
    """Return the place of a path, however it is written.

    Args:
        path: A file or folder; empty for data of the hub.
        read: Options of reading; empty ones are left out.
    """
    options = {option: value for option, value in (read or {}).items() if value}
    return Place(str(Path(path).expanduser().absolute()) if path else "", options)


def data_key(name: str, survey: Survey) -> str:
    """Return the name and the first digits of the checksum, by which tasks, records and tables name data."""
    return f"{name}-{survey.sha256[:12]}"


def plain_name(text: str) -> str:
    """Return a text as a name of letters, digits, dots, - and _.

    Example:
        >>> plain_name("My reviews (2024)")
        'My-reviews-2024'
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:40] or "data"


def surveyed(kind: str, place: Place, make: Callable[[], Survey]) -> Survey:
    """Return the survey of data, made anew only if a file of theirs has changed since the last one.

    Args:
        kind: The kind of data.
        place: Where they are.
        make: Makes the survey.
    """
    note, stamp = _folder() / f"{_digest([kind, asdict(place)])}.json", _stamp(Path(place.path))
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["stamp"] == stamp:
            return Survey(**known["survey"])
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or a damaged one
        pass
    survey = make()
    values = {"stamp": stamp, "survey": asdict(survey), "place": asdict(place)}
    with sources.writing(note.parent):
        write_text(note, json.dumps(values))
    return survey


def note_place(key: str, place: Place, remarks: list[str]) -> None:
    """Make known where data are, to this process and those of its runs."""
    known = _known()
    if known.get(key) != asdict(place):  # else the user has been told
        os.environ[VARIABLE] = json.dumps(known | {key: asdict(place)})
        _remarks[key] = remarks


def take_remarks(key: str) -> list[str]:
    """Return what a user is told about data; once in a process."""
    found = _remarks.get(key, [])
    _remarks[key] = []
    return found


def find_place(key: str, origin: Mapping[str, str] | None = None) -> Place:
    """Return where data are.

    Args:
        key: Their name.
        origin: Options of reading data of the hub, which are where the hub is.

    Raises:
        UserError: If that is not known here.
    """
    if origin:
        return place_of("", origin)
    known = _known().get(key)
    if known is None:
        for note in sorted(_folder().glob("*.json")):
            try:
                values = json.loads(note.read_text(encoding="utf-8"))
                place = values["place"]
                if key.endswith("-" + values["survey"]["sha256"][:12]) and Path(place["path"]).exists():
                    known = place
            except (OSError, ValueError, KeyError, TypeError):
                continue
    if known is None:
        raise UserError(
            f"the data {key} are not known on this machine: name their file or folder once, as in "
            "pebench run --data FILE --dry-run."
        )
    return Place(**known)


def _known() -> dict[str, Any]:
    try:
        found = json.loads(os.environ.get(VARIABLE, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _folder() -> Path:
    return sources.cache_folder() / "own"


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps([VERSION, values], sort_keys=True).encode()).hexdigest()[:16]


def _stamp(path: Path) -> str:
    """Return a checksum of the names, sizes and times of all files, which stand for their contents."""
    if path == Path():  # of the hub: a commit stays as it is
        return ""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    stats = [(str(file.relative_to(path)), file.stat()) for file in files]
    return _digest([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
