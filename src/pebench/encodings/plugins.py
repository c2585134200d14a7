"""Plug-ins: encodings and tasks of installed packages, of modules, of this process; imported when they are used."""

import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pebench.config.names import NAME, PLACE
from pebench.encodings.cards import EncodingCard, card_of, read_card
from pebench.encodings.origins import digest, folder_of
from pebench.encodings.sources import UnreadableError, bound_names, find_source, hidden_file
from pebench.errors import UserError, nearest
from pebench.exits import without_exits
from pebench.formatting import MOST, first_line, quoted


@dataclass(frozen=True)
class Group:
    """A kind of plug-in.

    Args:
        kind: Its name in messages: ``encoding``.
        entry_points: The group of entry points by which installed packages offer it.
        noun: The kind of object that a module holds: ``class``.
        example: The name of such an object in messages: ``Class``.
    """

    kind: str
    entry_points: str
    noun: str
    example: str


ENCODINGS = Group("encoding", "pebench.encodings", "class", "Class")
"""Entry points that name encodings: ``my-encoding = "my_package.my_module:MyEncoding"``."""

TASKS = Group("task", "pebench.tasks", "task", "my_task")
"""Entry points that name tasks: ``my-task = "my_package.my_module:my_task"``."""

MAIN = ("__main__", "__mp_main__")  # the latter is what processes that multiprocessing starts make of a script
SUITE_FILE = "<run_path>"  # the name by which `runpy` runs the file of a suite

used_folders = set[str]()
"""Folders of modules of plug-ins that are in no installed package."""


@dataclass(frozen=True)
class Plugin:
    """The place of an encoding or a task that is not one of ours.

    Args:
        name: The name that it is asked for by.
        place: Module and object.
        distribution: The installed package that offers it; None where the place was given.
        version: The version of that package.
        group: The kind of plug-in.
    """

    name: str
    place: str
    distribution: str | None = None
    version: str | None = None
    group: Group = ENCODINGS

    @property
    def module(self) -> str:
        """Dotted name of its module."""
        return self.place.partition(":")[0]

    @property
    def cls(self) -> str:
        """Name of its class, or of its task, in the module."""
        return self.place.partition(":")[2]

    def __str__(self) -> str:
        offered = f" of {self.distribution} {self.version}" if self.distribution else ""
        return f"{self.group.kind} {self.name!r}{offered}"


def at_place(name: str, group: Group = ENCODINGS) -> Plugin | None:
    """Return the plug-in that a name like ``my_module:MyEncoding`` means; None for another kind of name.

    The current directory is searched after everything that is installed, now and by the processes of runs.
    """
    if not PLACE.fullmatch(name):
        return None
    # a console script, unlike `python -m`, does not search the folder that it runs in
    add_paths([os.getcwd()])
    return Plugin(name, name, group=group)


def hint_of_file(name: str, group: Group = ENCODINGS) -> str:
    """How to name an object in a file here, if ``my_module``, ``my_module.py`` or ``my_module.Class`` may mean one."""
    file = Path(re.split(r"[.:]", name)[0] + ".py")
    if not (file.stem.isidentifier() and file.is_file()):
        return ""
    return f" A {group.noun} in {file} is {file.stem}:{group.example}."


def add_paths(folders: Iterable[str]) -> None:
    """Have modules found in these folders too, last."""
    for folder in folders:
        # last, so that a file here called like an installed package does not replace it
        if folder not in sys.path:
            sys.path.append(folder)


@functools.cache
def offered(group: Group = ENCODINGS) -> tuple[dict[str, Plugin], dict[str, str]]:
    """Return the plug-ins that installed packages offer, by name, and what is wrong with others, by name."""
    from importlib import metadata  # 0.05 s: not needed for --help

    found, problems = dict[str, Plugin](), dict[str, str]()
    for entry in metadata.entry_points(group=group.entry_points):
        package = entry.dist
        name, version = (package.name, package.version) if package else (None, None)
        plugin = Plugin(entry.name, entry.value, name, version, group)
        # the first one offered is kept, to be named beside the second
        known = found.setdefault(plugin.name, plugin)
        if not NAME.fullmatch(plugin.name):
            problems[plugin.name] = f"{plugin} has a name of other characters than letters, digits and . _ -"
        elif not PLACE.fullmatch(plugin.place):
            problems[plugin.name] = f"{plugin} is at {plugin.place!r}, expected package.module:{group.example}"
        elif known.place != plugin.place:
            problems[plugin.name] = f"{plugin} is offered by {known.distribution} {known.version} too; uninstall one"
    return {name: plugin for name, plugin in sorted(found.items()) if name not in problems}, problems


def clash(name: str, ours: Iterable[str], group: Group = ENCODINGS) -> str:
    """Return a warning that an installed package offers something by the name of one of ours; empty if none does."""
    plugin = offered(group)[0].get(name) if name in ours else None
    return f"{plugin} has the name of one of pebench's own, which is used: {plugin.place} is not." if plugin else ""


def by_name(name: str, ours: Iterable[str], registered_in: str | None, group: Group = ENCODINGS) -> Plugin | None:
    """Return the plug-in called `name`, unless it is one of ours or was registered in this process.

    Args:
        name: Name of a plug-in, or its place.
        ours: Names of pebench's own.
        registered_in: The module that has registered something by this name in this process, if one has.
        group: The kind of plug-in.

    Raises:
        UserError: If a package offers it, but not as it should.
    """
    if name in ours:
        return None
    found, problems = offered(group)
    if name in problems:
        raise UserError(problems[name])
    plugin = at_place(name, group) or found.get(name)
    if plugin and registered_in and plugin.module.split(".")[0] != registered_in.split(".")[0]:
        return None  # not registered by the package that offers it
    return plugin


def check_name(name: str, what: str, ours: Iterable[str], known: str | None, group: Group = ENCODINGS) -> None:
    """Refuse a name that something cannot be registered by.

    Args:
        name: The name.
        what: Name of the object to register, for the message.
        ours: Names of pebench's own.
        known: The place of something else that has this name already, if there is one.
        group: The kind of plug-in.

    Raises:
        UserError: With the reason.
    """
    article = "an" if group.kind[0] in "aeiou" else "a"
    if not NAME.fullmatch(name):
        raise UserError(f"expected a name of letters, digits and . _ - for {article} {group.kind}, got {quoted(name)}.")
    if name in ours:
        raise UserError(f"{group.kind} {name!r} is one of pebench's own; register {what} by another name.")
    if known:
        raise UserError(f"{group.kind} {name!r} is {known} already; register {what} by another name.")


@functools.cache
def card(plugin: Plugin) -> EncodingCard:
    """Return the card of a plug-in encoding; its module is imported only if its source does not suffice.

    Raises:
        UserError: If there is no such module or class, or it is no encoding.
    """
    note_folder(plugin)
    try:
        return read_card(plugin.name, plugin.module, plugin.cls)
    except UnreadableError:
        return card_of(plugin.name, load(plugin))


def load(plugin: Plugin) -> type:
    """Return the class of a plug-in encoding.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    found = load_object(plugin, lambda other: isinstance(other, type))
    card_of(plugin.name, found)  # refuses what is no encoding
    # its own: an inherited name is another encoding's
    if "name" not in vars(found):
        found.name = plugin.name
    return found  # type: ignore[no-any-return]


def load_object(plugin: Plugin, fits: Callable[[Any], bool]) -> Any:
    """Import the module of a plug-in and return the object that it names there.

    Args:
        plugin: The plug-in.
        fits: Selects the objects of the module that may have been meant by a misspelt name.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    if (names := bound_names(plugin.module)) is not None and plugin.cls not in names:  # before torch is imported
        raise _missing(plugin, str(find_source(plugin.module)), names)
    module = import_module(plugin.module, str(plugin))
    if not hasattr(module, plugin.cls):
        like = [name for name, found in vars(module).items() if fits(found)]
        raise _missing(plugin, module.__file__ or plugin.module, like)
    return getattr(module, plugin.cls)


def _missing(plugin: Plugin, place: str, known: Iterable[str]) -> UserError:
    near = nearest(plugin.cls, known)
    hint = f" Did you mean {plugin.module}:{near}?" if near else ""
    return UserError(f"{plugin}: {place} has no {plugin.cls!r}.{hidden_file(plugin.module, place) or hint}")


def import_module(module: str, what: str) -> ModuleType:
    """Import a module.

    Args:
        module: Its dotted name.
        what: Purpose of the module, for the message.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    try:
        with without_exits():
            return importlib.import_module(module)
    # a script without a main guard may exit when it is imported
    except (Exception, SystemExit) as error:
        # the module or a package around it is missing; a missing dependency of it is another failure, told below
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(
                f"{what}: no module {error.name!r} is installed or in this folder.{hint_of_file(module)}"
            ) from error
        text = first_line(str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}", MOST)
        raise UserError(f"{what}: importing {module} failed with {text}") from error


def note_folder(plugin: Plugin) -> None:
    """Remember the folder of a plug-in's module, where it is in no installed package, for the processes of runs."""
    if not plugin.distribution and (folder := folder_of(plugin.module)):
        used_folders.add(folder)


def needs(modules: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders and the modules by which another process knows the plug-ins that this one does.

    Args:
        modules: Modules that have registered something in this process.
    """
    named = {module for module in modules if module not in (*MAIN, SUITE_FILE)}
    folders = {folder_of(module) for module in named} | used_folders
    return tuple(sorted(filter(None, folders))), tuple(sorted(named))


def stays_here(registered: Mapping[str, str], words: Iterable[str], script: bool, modules: bool = True) -> str:
    """Return the registered name that other processes will not know, as they do not import its module; empty if none.

    Args:
        registered: Names registered in this process, each with the module that did it.
        words: The names that those processes need, and options that may hold others.
        script: True if those processes import the script again that started this one, as multiprocessing's do.
        modules: True if they import the modules that this one has.
    """
    again = MAIN if script and getattr(sys.modules["__main__"], "__file__", None) else ()
    lost = {*MAIN, SUITE_FILE} - {*again}
    here = {name for name, module in registered.items() if not modules or module in lost}
    # in pieces, as options may hold names: "stack(first=mine)"
    parts = (part for word in words for part in re.findall(r"[\w.-]+", word))
    return next((part for part in parts if part in here), "")


def origin(plugin: Plugin) -> dict[str, str]:
    """Return what a record holds of a plug-in: place, package, version, and the SHA-256 of its module's source now."""
    facts = {"place": plugin.place, "distribution": plugin.distribution, "version": plugin.version}
    return {name: text for name, text in facts.items() if text} | {"sha256": digest(find_source(plugin.module))}
