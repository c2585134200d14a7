"""A recorded run for studies to train again."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from pebench.config import Options
from pebench.runs.records import Record
from pebench.tasks import configure
from pebench.training.runner import train


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Record]:
    """Returns the record of a smoke run without an encoding on a task, trained once for all tests."""

    @cache
    def run(task: str) -> Record:
        out: Path = tmp_path_factory.mktemp("recorded")
        return train(configure(task, "none", 0, "smoke"), Options(out, device="cpu", threads=1))

    return run
