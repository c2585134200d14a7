"""Names of tasks: ours, registered ones, those of installed packages, and tasks in modules. No torch here.

A name may bring options where it means a function of keyword options that returns a `Task`:
``my_module:my_task(length=32)``. Options with their default values are left out of the name that records hold.
"""

import contextlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, overload

from pebench.encodings import plugin_modules, plugin_processes, plugins
from pebench.encodings import registry as encodings
from pebench.encodings.options import split_options
from pebench.encodings.origins import digest, source_of
from pebench.encodings.plugins import Plugin
from pebench.errors import UserError, unknown_name
from pebench.exits import without_exits
from pebench.formatting import MOST, cut, format_encoding, quoted
from pebench.tasks import language, own, sequences, text, vision
from pebench.tasks.base import Task
from pebench.tasks.options import normal_options

Maker = Callable[..., Task]
"""A function of keyword options that returns a task, or a subclass of `Task` with such a constructor."""

M = TypeVar("M", bound=Maker)

OWN_NAME = re.compile(r"^task '[^']*': ")
"""The beginning of an error about a task."""

TASKS: dict[str, Task] = {task.name: task for task in (*vision.TASKS, *text.TASKS, *language.TASKS, *sequences.TASKS)}
"""Pebench's own tasks, by name."""

_registered: dict[str, Task | Maker] = {}
_modules: dict[str, str] = {}  # the module that registered each of them
_loaded: dict[Plugin, Task | Maker] = {}
_origins: dict[str, dict[str, str]] = {}  # by the name without options
_found: dict[str, Task] = {}  # tasks that are not ours, by the name that was asked for


@overload
def register_task(task: Task) -> Task: ...
@overload
def register_task(task: str) -> Callable[[M], M]: ...
def register_task(task: Task | str) -> Any:
    """Make a task known by its name in this process: a `Task`, or what returns one.

    Processes of runs find the task by importing the module that registers it, or the script that asked for them.

    Args:
        task: The task; or a name, which makes this a decorator of a function of keyword options that returns one.

    Raises:
        UserError: If the name cannot be one, or is that of another task.

    Example:
        >>> from dataclasses import replace
        >>> @register_task("tiny-order")
        ... def tiny_order(*, steps: int = 100) -> Task:
        ...     order = TASKS["text-order"]
        ...     quick = order.budgets["quick"]
        ...     return replace(order, budgets={"quick": replace(quick, train=replace(quick.train, max_steps=steps))})
        >>> find_task("tiny-order(steps=7)").name
        'tiny-order(steps=7)'
    """
    if isinstance(task, Task):
        _register(task.name, task, sys._getframe(1).f_globals["__name__"])  # an instance does not know its module
        return task

    def decorate(maker: M) -> M:
        _register(task, maker, maker.__module__)
        return maker

    return decorate


def _register(name: str, task: Task | Maker, module: str) -> None:
    known = _modules.get(name, module)
    place = None if known == module else f"of {known}"  # of the same module it is defined anew, as in a notebook
    plugins.check_name(name, getattr(task, "__name__", "this one"), TASKS, place, plugins.TASKS)
    _registered[name], _modules[name] = task, module
    _origins.pop(name, None)
    _found.clear()  # names with options of what is replaced may be among them


def find_task(name: str) -> Task:
    """Return the task called `name`; its own name is then `name`, without options that have their defaults.

    Args:
        name: Name of a task, or its place, with options if it has any: ``my_module:my_task(length=32)``.

    Raises:
        UserError: If there is none, with the nearest name, or it cannot be had.
    """
    if not isinstance(name, str):
        raise UserError(f"task expects a name such as 'vit-digits', got {quoted(name)}.")
    if name in TASKS:
        return TASKS[name]
    if name not in _found:
        base, options = split_options(name, "a task as in vit-digits or my_module:my_task(length=32)")
        if base not in own.MODULES:
            _found[name] = _make(base, options)
        else:
            make = own.maker(base)
            made = make(**normal_options(base, make, options))
            if "data" not in options:
                return made  # what is at its path may change
            _found[name] = made
    return _found[name]


def normal_name(name: str) -> str:
    """Return the name of a task as records hold it, without options that have their defaults.

    A name without options, known or not, is returned as it is.

    Raises:
        UserError: If there is no such task, or it does not have these options.
    """
    return find_task(name).name if "(" in name else name


def is_task(name: str) -> bool:
    """Return True if a name means a task; the module of a place is imported to see."""
    with contextlib.suppress(UserError):
        base = name.partition("(")[0].rstrip()
        return (
            base in TASKS
            or base in own.MODULES
            or base in _registered
            or base in plugins.offered(plugins.TASKS)[0]
            or _at_place(base)
        )
    return False


def _at_place(name: str) -> bool:
    plugin = plugins.at_place(name, plugins.TASKS)
    return plugin is not None and _is_task_or_maker(plugin_modules.load_object(plugin))


def plugin_tasks() -> tuple[dict[str, Task], list[str]]:
    """Return tasks that are registered here or offered by installed packages, and what is wrong with others."""
    offered, wrong = plugins.offered(plugins.TASKS)
    found, problems = dict[str, Task](), list(wrong.values())
    # One broken package must not take the others from the list: what is wrong is listed after them.
    for name in sorted({*_registered, *offered}):
        try:
            found[name] = find_task(name)
            if text := clash(name):
                raise UserError(text)
        except UserError as error:
            problems.append(str(error))
    return {name: task for name, task in found.items() if name not in TASKS}, problems


def clash(name: str) -> str:
    """Return a warning that an installed package offers a task by the name of one of ours; empty if none does."""
    return plugins.clash(name, TASKS, plugins.TASKS)


def _plugin(name: str) -> Plugin | None:
    return plugins.by_name(name, TASKS, _modules.get(name), plugins.TASKS)


def _make(name: str, options: Mapping[str, Any]) -> Task:
    """Return the task of a name and its options.

    Args:
        name: Name or place, without options.
        options: Options as they were given.

    Raises:
        UserError: If it cannot be had.
    """
    found = TASKS.get(name) or _load(name)
    if isinstance(found, Task):
        if options:
            raise UserError(f"task {name!r} has no options, got {', '.join(options)}.")
        return replace(found, name=name)
    chosen = normal_options(name, found, options)
    full = format_encoding(name, dict(sorted(chosen.items())), literal=True)
    try:
        with without_exits():
            task = found(**chosen)
    except (Exception, SystemExit) as error:  # it is anyone's code, which may end the program, too
        reason = str(error) if isinstance(error, ValueError | UserError) else f"{type(error).__name__}: {error}"
        reason = OWN_NAME.sub("", reason)  # a task that is refused says so by the name that is in its code
        raise UserError(f"task {full!r}: {cut(reason, MOST)}") from error
    if not isinstance(task, Task):
        raise UserError(f"task {full!r} returned {quoted(task)}, expected a pebench.Task.")
    return replace(task, name=full)


def _load(name: str) -> Task | Maker:
    """Return what a name means that is not one of ours: a task, or what makes one.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    if plugin := _plugin(name):
        if plugin not in _loaded:
            facts = plugin_modules.origin(plugin)  # before the import: the source may change later
            found = plugin_modules.load_object(plugin)
            if not _is_task_or_maker(found):
                hint = " An encoding is named by --pe." if isinstance(found, type) else ""
                raise UserError(
                    f"{plugin} is {quoted(found)}, expected a pebench.Task, or a function that returns one.{hint}"
                )
            plugin_processes.note_folder(plugin)
            _loaded[plugin], _origins[name] = found, facts
        return _loaded[plugin]
    if name in _registered:
        if name not in _origins:
            _origins[name] = {"place": _modules[name], "sha256": digest(source_of(_modules[name]))}
        return _registered[name]
    if hint := plugins.hint_of_file(name, plugins.TASKS):
        raise UserError(f"unknown task {name!r}.{hint}")
    if name in encodings.encoding_cards():
        raise UserError(f"unknown task {name!r}: it is an encoding, which --pe {name} names.")
    raise unknown_name(
        "task", name, [*TASKS, *own.MODULES, *_registered, *plugins.offered(plugins.TASKS)[0], "module:my_task"]
    )


def _is_task_or_maker(found: Any) -> bool:
    return isinstance(found, Task) or inspect.isfunction(found) or (isinstance(found, type) and issubclass(found, Task))


def task_origin(task: Task) -> dict[str, str]:
    """Return what a record holds of the source of a task that is not ours; nothing for one of ours."""
    facts = _origins.get(task.name.partition("(")[0])
    return {**facts, "summary": task.summary} if facts else {}


def source_now(name: str) -> str | None:
    """Return the SHA-256 of the source of a task that is not ours, as it is now; None if it is not here."""
    base = name.partition("(")[0]
    try:
        plugin = _plugin(base)
    except UserError:
        return None
    module = plugin.module if plugin else _modules.get(base)
    source = source_of(module) if module else None
    return digest(source) if source else None


def needs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders and modules by which another process knows the encodings and tasks that this one does."""
    folders, modules = encodings.needs()
    more_folders, more_modules = plugin_processes.needs(_modules.values())
    return tuple(sorted({*folders, *more_folders})), tuple(sorted({*modules, *more_modules}))


def stays_here(names: Iterable[str], script: bool, modules: bool = True) -> str:
    """Return the task that other processes will not know, as they do not import what registered it; empty if none.

    Args:
        names: Names of tasks.
        script: True if those processes import the script again that started this one, as multiprocessing's do.
        modules: True if they import the modules that this one has.
    """
    bases = (name.partition("(")[0] for name in names)
    return plugin_processes.stays_here(_modules, bases, script, modules)
