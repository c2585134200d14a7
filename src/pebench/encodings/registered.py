"""Encodings that `pebench.register` has made known in this process, and what other processes need to know them."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from pebench.encodings import plugins
from pebench.encodings.cards import card_of
from pebench.encodings.sources import find_source

MAIN = ("__main__", "__mp_main__")
"""Names of a script's module; the second is its name in processes that multiprocessing starts."""

SUITE = "<run_path>"
"""Name that `runpy` gives to the module of a suite's file."""

classes: dict[str, type] = {}
"""Registered classes by name; pebench's own are here once their files are imported."""

_origins: dict[type, dict[str, str]] = {}


def is_ours(cls: type) -> bool:
    """Return True for a class of pebench's own."""
    return cls.__module__.startswith("pebench.encodings.")


def of_others() -> dict[str, type]:
    """Return the registered classes that are not pebench's own, by name."""
    return {name: cls for name, cls in classes.items() if not is_ours(cls)}


def source_of(cls: type) -> Path | None:
    """Return the file that defines a class; None if there is none."""
    origin = getattr(sys.modules.get(cls.__module__), "__file__", None) or find_source(cls.__module__)
    return Path(origin) if origin else None


def remember_origin(cls: type, facts: dict[str, str] | None = None) -> None:
    """Keep the origin of a class that is not pebench's own, for the records of runs.

    Args:
        cls: The class.
        facts: Place, package, version and SHA-256; by default the place, and the SHA-256 of the source as it is now.
    """
    if facts:
        _origins[cls] = facts
    elif cls not in _origins:
        _origins[cls] = {"place": f"{cls.__module__}:{cls.__qualname__}", "sha256": plugins.digest(source_of(cls))}


def origins(among: Iterable[type]) -> dict[str, dict[str, str]]:
    """Return what a record holds of the encodings that are not pebench's own, by name: their origin and summary.

    Args:
        among: Classes, some of which may be pebench's own or no encodings at all.
    """
    found = {cls.name: cls for cls in among if cls in _origins}  # type: ignore[attr-defined]
    return {name: _origins[cls] | {"summary": card_of(name, cls).summary} for name, cls in found.items()}


def needs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders to search and the modules to import by which another process knows the same encodings."""
    modules = {cls.__module__ for cls in of_others().values()} - {*MAIN, SUITE}
    folders = {plugins.folder_of(module) for module in modules} | plugins.used_folders
    return tuple(sorted(filter(None, folders))), tuple(sorted(modules))


def adopt(folders: Iterable[str], modules: Iterable[str]) -> None:
    """Make the encodings of another process known in this one; see `needs`.

    Raises:
        UserError: If a module cannot be imported.
    """
    plugins.add_paths(folders)
    for module in modules:
        plugins.import_module(module, f"what registers encodings, {module}")


def stays_here(words: Iterable[str], script: bool, modules: bool = True) -> str:
    """Return the name of an encoding that other processes will not know; empty if they know all.

    They do not know those registered by a module that they do not import.

    Args:
        words: Names of encodings, and options that may name others.
        script: True if the other processes import the script that started this one, as multiprocessing's do.
        modules: True if they import the modules that this process has imported.
    """
    again = MAIN if script and getattr(sys.modules["__main__"], "__file__", None) else ()
    lost = {*MAIN, SUITE} - {*again}
    if not modules:
        lost |= {cls.__module__ for cls in classes.values()}
    unknown = {name for name, cls in of_others().items() if cls.__module__ in lost}
    for word in words:
        for name in re.findall(r"[\w.-]+", word):
            if name in unknown:
                return name
    return ""
