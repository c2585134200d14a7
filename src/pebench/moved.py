"""Import paths of earlier versions, which work for one release: with a warning that names the new path."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

MOVED = {
    "pebench.cards": "pebench.encodings.cards",
    "pebench.costs": "pebench.runs.costs",
    "pebench.effects": "pebench.encodings.effects",
    "pebench.modules": "pebench.models",
    "pebench.plugins": "pebench.encodings.plugins",
    "pebench.records": "pebench.runs.records",
    "pebench.registry": "pebench.encodings.registry",
    "pebench.runner": "pebench.training.runner",
    "pebench.settings": "pebench.config",
    "pebench.suites": "pebench.runs.suite",
}
"""Old to new paths of the modules that users' files import. A package's submodules have moved with it."""

RENAMED = {"pebench.runner": {"run": "train"}}
"""Old to new names inside these modules, by the module's old path."""


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader of modules by their old paths: each hands on the attributes of the new module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for an old path, or None for any other."""
        new = _new_path(fullname)
        if new is None or not _exists(new):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # so that submodules are asked for here

    def exec_module(self, module: ModuleType) -> None:
        """Warn, and have the old module hand on the attributes of the new one."""
        old, new = module.__name__, importlib.import_module(str(_new_path(module.__name__)))
        if old in MOVED:  # a submodule is imported after its package, which has warned
            text = f"{old} has moved: import {new.__name__} instead. The old name will be gone in the next release."
            warnings.warn(text, FutureWarning, stacklevel=2)  # frames of the import system are skipped
        names = RENAMED.get(old, {})

        def attribute(name: str) -> object:
            # Asked at each use, so that names which the new module loads late are loaded late here too.
            return getattr(new, name if hasattr(new, name) else names.get(name, name))

        public = [name for name in dir(new) if not name.startswith("_")]
        vars(module).update(__getattr__=attribute, __all__=getattr(new, "__all__", public), __doc__=new.__doc__)


def _new_path(old: str) -> str | None:
    """Return the new path of a module; None if it has not moved."""
    top = ".".join(old.split(".")[:2])
    return MOVED[top] + old.removeprefix(top) if top in MOVED else None


def _exists(module: str) -> bool:
    """Return whether there is a module, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # inside a module that is no package
        return False


def install() -> None:
    """Make the old paths work in this process."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
