"""Tasks on a user's data: all that a record needs stands in their names, and no path does. No torch here."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebench.config import DataConfig
from pebench.errors import UserError
from pebench.formatting import format_encoding, quoted
from pebench.tasks import sources
from pebench.tasks.base import Task
from pebench.tasks.own.places import Place, Survey, data_key, find_place, note_place, plain_name, surveyed
from pebench.tasks.own.sizes import sizes_text

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{12}")
"""The name of data: a word, and the first digits of a checksum."""


@dataclass(frozen=True, kw_only=True)
class OwnTask(Task):
    """A task on a user's data, which lie where `pebench.tasks.own.places` knows."""

    def check_available(self, data: DataConfig, data_dir: Path | None) -> None:
        """Find out at once whether the data are prepared, or their place is known.

        Raises:
            UserError: If neither.
        """
        known = {**vars(data), **self.data_args}
        settings = {name: known[name] for name in self.prepared_by}
        if not sources.prepared_file(None, self.data_args["own"], settings, None).is_file():
            find_place(self.data_args["own"], self.data_args.get("origin"))


def key_of(
    kind: str, place: Place, name: str, make: Callable[[Place], Survey], given: Collection[str]
) -> tuple[str, Survey]:
    """Return the name of data, and their survey; their place is noted.

    Args:
        kind: The kind of data: ``texts``.
        place: Where they are.
        name: The word that names them; empty takes the file's.
        make: Makes a survey.
        given: Options that were asked for, which the data do not decide.

    Raises:
        UserError: If they cannot be read, or no model can be trained on them.
    """
    survey = surveyed(kind, place, lambda: make(place))
    key = data_key(plain_name(name or Path(place.path).stem), survey)
    sizes = sizes_text({option: value for option, value in survey.options.items() if option not in given})
    note_place(key, place, [*survey.remarks, *filter(None, [sizes])])
    return key, survey


def check_key(kind: str, key: str) -> None:
    """Refuse a task on data without the name of data.

    Raises:
        UserError: With what was expected.
    """
    if not KEY.fullmatch(key):
        got = f"data={quoted(key)}, which is no name that pebench gave" if key else "no path"
        raise UserError(f"task {kind!r} expects a file or folder, as in {kind}(path='FILE'), got {got}.")


def full_name(kind: str, options: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return the name of a task as records hold it: its data, and the options that are not the usual ones."""
    chosen = {option: value for option, value in sorted(options.items()) if value != usual.get(option)}
    return format_encoding(kind, chosen, literal=True)
