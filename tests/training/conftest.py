"""Runs that the tests of training only read: each is trained once."""

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from pebench.runs.records import Record
from pebench.tasks import configure
from pebench.training.runner import train
from tests.training.helpers import EMBEDDED, LOGGED, options


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session", params=EMBEDDED)
def record(request: pytest.FixtureRequest, out: Path) -> Record:
    return train(configure(request.param, "learned", 1, "smoke", LOGGED), options(out))


@pytest.fixture(scope="session")
def folder(record: Record, out: Path) -> Path:
    return out / record.config.directory


@pytest.fixture(scope="session")
def events(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
