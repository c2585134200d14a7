"""Import paths of earlier versions, for one release: each still works, with a warning that names the new one."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

MOVED = {
    "pebench.cards": "pebench.encodings.cards",
    "pebench.costs": "pebench.runs.costs",
    "pebench.modules": "pebench.models",
    "pebench.plugins": "pebench.encodings.plugins",
    "pebench.records": "pebench.runs.records",
    "pebench.registry": "pebench.encodings.registry",
    "pebench.runner": "pebench.training.runner",
    "pebench.suites": "pebench.runs.suite",
}
"""Old to new names of the modules that users' files import."""


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module by its old name, and hands out the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The old name, where it is one of `MOVED`."""
        return importlib.machinery.ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module by its new name."""
        old, new = spec.name, MOVED[spec.name]
        text = f"{old} has moved: import {new} instead. The old name will be gone in the next release."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return importlib.import_module(new)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the new module has been executed."""


def install() -> None:
    """Have the old names work in this process."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
