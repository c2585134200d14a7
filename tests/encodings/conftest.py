"""Fixtures of the tests of encodings from elsewhere."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pebench.encodings import plugin_processes, plugins, registered

from .workplace import Workplace


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(plugin_processes, "used_folders", set())
    plugins.offered.cache_clear()
    yield Workplace(tmp_path)
    monkeypatch.undo()
    for name in [name for name, cls in registered.classes.items() if not cls.__module__.startswith("pebench.")]:
        del registered.classes[name]
    plugins.offered.cache_clear()
