"""Folders and modules by which the processes of runs know the plug-ins that this process does."""

import re
import sys
from collections.abc import Iterable, Mapping

from pebench.encodings.origins import folder_of
from pebench.encodings.plugins import Plugin

MAIN = ("__main__", "__mp_main__")  # the latter is what processes that multiprocessing starts make of a script
SUITE_FILE = "<run_path>"  # the name by which `runpy` runs the file of a suite

used_folders = set[str]()
"""Folders of modules of plug-ins that are in no installed package."""


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
