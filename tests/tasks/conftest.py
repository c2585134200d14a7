"""Tests of tasks see no network; the embedded data are prepared once for all tests of a file."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def alone(monkeypatch, cache):
    """Neither network nor what this machine has set; the embedded data are prepared once for all tests here."""

    def refuse(*_):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(cache))
    monkeypatch.delenv("PEBENCH_DATA_DIR", raising=False)
