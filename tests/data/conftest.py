"""Data tests see neither the network nor what this machine has cached or set."""

import os

import pytest

from pebench.tasks import sources

ENVIRONMENT = ("PEBENCH_DATA_DIR", "PEBENCH_OFFLINE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "HF_HUB_CACHE")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Neither network nor what this machine has cached or set."""

    def refuse(*_):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5=None: os.path.isfile(path))
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hub" / "datasets")
    monkeypatch.setattr(sources, "check_contents", lambda *_: None)  # small copies are not what was published
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
