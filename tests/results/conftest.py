"""Fixtures that tests of results share."""

import gc
from collections.abc import Iterator

import pytest

from pebench.cli import main
from pebench.results import figures
from tests.results.single_records import Answer, Ask


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """A function that runs a command, which must not end in a traceback."""

    def call(*arguments: object) -> Answer:
        code = main([str(argument) for argument in arguments])
        answer = Answer(code, *capsys.readouterr())
        assert "Traceback" not in answer.error
        assert (code == 2) == answer.error.startswith("pebench: error: ")
        assert code == 0 or not answer.text
        return answer

    return call


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No table is short enough for a picture."""
    figures.pictures.cache_clear()
    monkeypatch.setattr(figures, "MOST_ROWS", 0)
    yield
    figures.pictures.cache_clear()


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """A report freezes what the collector knows, as at the end of a command; hypothesis would warn of it later."""
    yield
    gc.unfreeze()
