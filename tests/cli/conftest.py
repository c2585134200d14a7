"""The process of a command under test, and the runs that several tests look at."""

import signal

import pytest

from tests.cli.asking import TWO_BY_TWO, Answer, ask


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PEBENCH_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "")  # taken back afterwards, whatever --offline makes of it
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return ask(*TWO_BY_TWO, "--jobs", "2", out=tmp_path_factory.mktemp("cli"))
