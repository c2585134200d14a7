"""Encodings from elsewhere: of installed packages, of modules, of this process. Nothing is imported before its use."""

import functools
import hashlib
import importlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pebench.encodings.cards import EncodingCard, card_of, read_card
from pebench.encodings.sources import UnreadableError, find_source
from pebench.errors import UserError, nearest

GROUP = "pebench.encodings"
"""Entry points that name encodings: ``my-encoding = "my_package.my_module:MyEncoding"``."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What an encoding may be called: it is a folder's name, too."""

PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""A class in a module: ``my_module:MyEncoding``."""

SHORT = 12
"""Digits of a source's SHA-256 that are shown."""

used_folders = set[str]()
"""Where modules of plug-ins were found that are in no installed package."""


@dataclass(frozen=True)
class Plugin:
    """Where an encoding is that is not one of ours.

    Args:
        name: As it is asked for.
        place: Module and class.
        distribution: The installed package that offers it; None where the place was given.
        version: Of that package.
    """

    name: str
    place: str
    distribution: str | None = None
    version: str | None = None

    @property
    def module(self) -> str:
        """Dotted name of its module."""
        return self.place.partition(":")[0]

    @property
    def cls(self) -> str:
        """Name of its class."""
        return self.place.partition(":")[2]

    def __str__(self) -> str:
        offered = f" of {self.distribution} {self.version}" if self.distribution else ""
        return f"encoding {self.name!r}{offered}"


def at_place(name: str) -> Plugin | None:
    """The plug-in that a name like ``my_module:MyEncoding`` means; None for another kind of name.

    The current directory is searched after everything that is installed, now and by the processes of runs.
    """
    if not PLACE.fullmatch(name):
        return None
    add_paths([os.getcwd()])
    return Plugin(name, name)


def hint_of_file(name: str) -> str:
    """How to name what is in a file here, if ``my_module``, ``my_module.py`` or ``my_module.Class`` may mean one."""
    file = Path(re.split(r"[.:]", name)[0] + ".py")
    return f" A class in {file} is {file.stem}:Class." if file.stem.isidentifier() and file.is_file() else ""


def add_paths(folders: Iterable[str]) -> None:
    """Have modules found in these folders too, last."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)


@functools.cache
def offered() -> tuple[dict[str, Plugin], dict[str, str]]:
    """What installed packages offer: plug-ins by name, and what is wrong with others, by name."""
    from importlib import metadata  # 0.05 s: not needed for --help

    found, problems = dict[str, Plugin](), dict[str, str]()
    for entry in metadata.entry_points(group=GROUP):
        package = entry.dist
        words = (package.name, package.version) if package else (None, None)
        plugin = Plugin(entry.name, entry.value, *words)
        known = found.setdefault(plugin.name, plugin)
        if not NAME.fullmatch(plugin.name):
            problems[plugin.name] = f"{plugin} has a name of other characters than letters, digits and . _ -"
        elif not PLACE.fullmatch(plugin.place):
            problems[plugin.name] = f"{plugin} is at {plugin.place!r}, expected package.module:Class"
        elif known.place != plugin.place:
            problems[plugin.name] = f"{plugin} is offered by {known.distribution} {known.version} too; uninstall one"
    return {name: plugin for name, plugin in sorted(found.items()) if name not in problems}, problems


@functools.cache
def card(plugin: Plugin) -> EncodingCard:
    """The card of a plug-in; its module is imported only if its source does not tell.

    Raises:
        UserError: If there is no such module or class, or it is no encoding.
    """
    if not plugin.distribution and (folder := folder_of(plugin.module)):
        used_folders.add(folder)
    try:
        return read_card(plugin.name, plugin.module, plugin.cls)
    except UnreadableError:
        return card_of(plugin.name, load(plugin))


def load(plugin: Plugin) -> type:
    """The class of a plug-in.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    module = import_module(plugin.module, str(plugin))
    if not hasattr(module, plugin.cls):
        near = nearest(plugin.cls, [name for name, found in vars(module).items() if isinstance(found, type)])
        hint = f" Did you mean {plugin.module}:{near}?" if near else ""
        raise UserError(f"{plugin}: {module.__file__ or plugin.module} has no {plugin.cls!r}.{hint}")
    found = getattr(module, plugin.cls)
    card_of(plugin.name, found)  # refuses what is no encoding
    if "name" not in vars(found):
        found.name = plugin.name
    return found  # type: ignore[no-any-return]


def import_module(module: str, what: str) -> ModuleType:
    """A module.

    Args:
        module: Its dotted name.
        what: It is for, for the message.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(
                f"{what}: no module {error.name!r} is installed or in this folder.{hint_of_file(module)}"
            ) from error
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"{what}: importing {module} failed with {text}") from error


def origin(plugin: Plugin) -> dict[str, str]:
    """What a record says of a plug-in: place, package and version, and the SHA-256 of its module's source now."""
    facts = {"place": plugin.place, "distribution": plugin.distribution, "version": plugin.version}
    return {name: text for name, text in facts.items() if text} | {"sha256": digest(find_source(plugin.module))}


def digest(source: Path | None) -> str:
    """SHA-256 of a file; ``unknown`` where there is none."""
    try:
        return hashlib.sha256(source.read_bytes()).hexdigest() if source else "unknown"
    except OSError:
        return "unknown"


def origin_text(facts: Mapping[str, Any]) -> str:
    """What `origin` found, in short.

    Example:
        >>> origin_text({"place": "mine:Rows", "sha256": "0123456789abcdef"})
        'mine:Rows, source 0123456789ab'
        >>> origin_text({"place": "mine:Rows", "distribution": "mine", "version": "1.0", "sha256": "unknown"})
        'mine 1.0, mine:Rows, source unknown'
    """
    package = f"{facts['distribution']} {facts.get('version', '')}, " if "distribution" in facts else ""
    return f"{package}{facts.get('place')}, source {str(facts.get('sha256', 'unknown'))[:SHORT]}"


def folder_of(module: str) -> str | None:
    """The folder that must be on Python's path for a module to be found; None where that is unknown.

    Args:
        module: Its dotted name.
    """
    source = find_source(module)
    if source is None:
        return None
    levels = len(module.split(".")) + (source.name == "__init__.py")
    return str(source.resolve().parents[levels - 1])
