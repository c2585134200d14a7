"""Plug-ins by name: encodings and tasks that installed packages offer, or that lie at a place in a module."""

import functools
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pebench.config.names import NAME, PLACE
from pebench.encodings.sources import written_names
from pebench.errors import UserError
from pebench.formatting import quoted

MOST_NAMED = 5
"""Most objects of a module that a message names."""


@dataclass(frozen=True)
class Group:
    """A kind of plug-in.

    Args:
        kind: Its name in messages: ``encoding``.
        entry_points: The group of entry points by which installed packages offer it.
        noun: The kind of object that a module holds: ``class``.
        example: The name of such an object in messages: ``Class``.
        classes: True if it is a class, False if it is none; None if it may be either.
    """

    kind: str
    entry_points: str
    noun: str
    example: str
    classes: bool | None = True


ENCODINGS = Group("encoding", "pebench.encodings", "class", "Class")
"""Entry points that name encodings: ``my-encoding = "my_package.my_module:MyEncoding"``."""

TASKS = Group("task", "pebench.tasks", "task", "my_task", classes=False)
"""Entry points that name tasks: ``my-task = "my_package.my_module:my_task"``."""

EITHER = Group("encoding or task", "", "class or task", "Name", classes=None)
"""A place of which is not known what it holds."""


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
    """How to name an object in a file here, if ``my_module``, ``my_module.py`` or ``my_module.Class`` may mean one.

    A name with a colon that is no place is told how a place is written.
    """
    file = Path(re.split(r"[.:]", name)[0] + ".py")
    if file.stem.isidentifier() and file.is_file():
        add_paths([os.getcwd()])
        return f" A {group.noun} in {file} is {file.stem}:{group.example}.{it_has(file.stem, group)}"
    if ":" in name and "<" not in name and not PLACE.fullmatch(name):  # else it is a class inside of a function
        return f" Expected module:{group.example}, where the names of modules have letters, digits and _ alone."
    return ""


def candidates(module: str, group: Group) -> list[str]:
    """Return the names of a module's own objects that may be plug-ins of a kind, by its source."""
    names = written_names(module).items()
    return [name for name, is_class in names if group.classes == is_class or None in (group.classes, is_class)]


def it_has(module: str, group: Group) -> str:
    """Return a sentence with the objects of a module that may be plug-ins of a kind; empty if its source has none."""
    names = candidates(module, group)
    return f" It has {', '.join(names[:MOST_NAMED])}{' ...' if len(names) > MOST_NAMED else '.'}" if names else ""


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
