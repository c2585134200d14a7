"""What is done about runs on other machines, without any: these tests need no cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pebench.config import Options, RunConfig
from pebench.engine.executors import watching
from pebench.engine.executors.watching import Backlog, with_threads
from pebench.engine.executors.worker import LOST_TRIES, failed_record
from pebench.runs.leases import claim
from pebench.runs.records import FAILURE, Record, find_record, write_record
from pebench.tasks import configure

PLAN = [configure("vit-digits", "rope", seed, "smoke") for seed in range(4)]


@pytest.fixture
def backlog(tmp_path: Path, watcher: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Backlog:
    monkeypatch.setattr(watching, "WATCH_S", 0.0)
    return Backlog(PLAN, Options(tmp_path, time_limit_s=1000.0), watcher(PLAN))


def folder(config: RunConfig, out: Path) -> Path:
    made = out / config.directory
    made.mkdir(parents=True, exist_ok=True)
    return made


def test_runs_are_taken_that_nobody_has_done_or_tried_or_is_at(backlog: Backlog, tmp_path: Path) -> None:
    done, failed, held, free = PLAN
    write_record(Record(done), tmp_path)
    failed_record(failed, tmp_path, "lost", "before", 1.0)
    with claim(folder(held, tmp_path)):
        assert backlog.take(1) == [free]
        assert backlog.observer.tally.done == 2
        assert not find_record(failed, tmp_path).ok  # another command tried it: this one was not asked to try again
        assert backlog.take(5) == []
    backlog.put_back([free])
    assert backlog.take(5) == [free, held]
    assert not backlog


def test_a_run_left_to_another_process_waits_for_it(backlog: Backlog, tmp_path: Path) -> None:
    config = backlog.take(1)[0]
    with claim(folder(config, tmp_path)):
        for _ in range(LOST_TRIES + 1):
            backlog.ended(config, "")
            backlog.waiting.rotate()
            assert config not in backlog.take(4)
            assert backlog.waiting.count(config) == 1
            backlog.waiting.remove(config)


def test_a_run_that_is_lost_is_started_again_but_not_for_ever(backlog: Backlog, tmp_path: Path) -> None:
    (config,) = backlog.take(1)
    for _ in range(LOST_TRIES - 1):
        backlog.ended(config, "its node is gone")
        assert backlog.waiting.pop() == config
    backlog.ended(config, "its node is gone")
    assert config not in backlog.waiting
    record = find_record(config, tmp_path)
    assert (record.error["kind"], record.error["reason"]) == ("lost", f"its node is gone ({LOST_TRIES} tries)")
    assert (tmp_path / config.directory / FAILURE).is_file()


def test_a_record_counts_whatever_became_of_the_worker(backlog: Backlog, tmp_path: Path) -> None:
    (config,) = backlog.take(1)
    write_record(Record(config), tmp_path)
    backlog.ended(config, "its worker was killed")
    assert (backlog.observer.tally.done, len(backlog.waiting)) == (1, 3)
    assert find_record(config, tmp_path).ok


def test_progress_is_read_from_leases_and_the_clock_begins_with_each_attempt(
    backlog: Backlog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr(backlog.observer, "progress", lambda config, step, metrics: told.append((step, metrics)))
    (config,) = backlog.take(1)
    assert backlog.watch([config]) == []
    with claim(folder(config, tmp_path)) as lease:
        assert backlog.watch([config]) == []
        lease.report(5, {"val/loss": 1.0})
        assert backlog.watch([config]) == []
        assert told == [(5, {"val/loss": 1.0})]
    monkeypatch.setattr(watching, "LATE_S", -1000.0)
    with claim(folder(config, tmp_path)):
        assert backlog.watch([config]) == []  # begun again
        assert backlog.watch([config]) == [config]
    backlog.ended(config, "it was ended")
    assert find_record(config, tmp_path).error["kind"] == "time limit"


def test_a_run_has_as_many_threads_as_it_was_given(tmp_path: Path) -> None:
    assert with_threads(Options(tmp_path), 4.0).threads == 4
    assert with_threads(Options(tmp_path, devices=2), 4).threads == 2
    assert with_threads(Options(tmp_path), 0.5).threads == 1
    assert with_threads(Options(tmp_path, threads=3), 8).threads == 3
