"""Encodings that `pebench.register` has made known in this process, and what other processes need to know them."""

from collections.abc import Iterable

from pebench.encodings import plugin_modules, plugin_processes, plugins
from pebench.encodings.cards import card_of
from pebench.encodings.origins import digest, source_of

classes: dict[str, type] = {}
"""Registered classes by name; pebench's own are here once their files are imported."""

_origins: dict[type, dict[str, str]] = {}


def is_ours(cls: type) -> bool:
    """Return True for a class of pebench's own."""
    return cls.__module__.startswith("pebench.encodings.")


def of_others() -> dict[str, type]:
    """Return the registered classes that are not pebench's own, by name."""
    return {name: cls for name, cls in classes.items() if not is_ours(cls)}


def remember_origin(cls: type, facts: dict[str, str] | None = None) -> None:
    """Keep the origin of a class that is not pebench's own, for the records of runs.

    Args:
        cls: The class.
        facts: Place, package, version and SHA-256; by default the place, and the SHA-256 of the source as it is now.
    """
    if facts:
        _origins[cls] = facts
    elif cls not in _origins:
        _origins[cls] = {"place": f"{cls.__module__}:{cls.__qualname__}", "sha256": digest(source_of(cls.__module__))}


def origins(among: Iterable[type]) -> dict[str, dict[str, str]]:
    """Return what a record holds of the encodings that are not pebench's own, by name: their origin and summary.

    Args:
        among: Classes, some of which may be pebench's own or no encodings at all.
    """
    found = {cls.name: cls for cls in among if cls in _origins}  # type: ignore[attr-defined]
    return {name: _origins[cls] | {"summary": card_of(name, cls).summary} for name, cls in found.items()}


def _modules() -> dict[str, str]:
    """Return the names that are not pebench's own, each with the module that registered it."""
    return {name: cls.__module__ for name, cls in of_others().items()}


def needs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders to search and the modules to import by which another process knows the same encodings."""
    return plugin_processes.needs(_modules().values())


def adopt(folders: Iterable[str], modules: Iterable[str]) -> None:
    """Make the encodings of another process known in this one; see `needs`.

    Raises:
        UserError: If a module cannot be imported.
    """
    plugins.add_paths(folders)
    for module in modules:
        # importing runs their `register`
        plugin_modules.import_module(module, f"what registers encodings, {module}")


def stays_here(words: Iterable[str], script: bool, modules: bool = True) -> str:
    """Return the name of an encoding that other processes will not know; empty if they know all.

    They do not know those registered by a module that they do not import.

    Args:
        words: Names of encodings, and options that may name others.
        script: True if the other processes import the script that started this one, as multiprocessing's do.
        modules: True if they import the modules that this process has imported.
    """
    return plugin_processes.stays_here(_modules(), words, script, modules)
