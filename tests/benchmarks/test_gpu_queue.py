"""The queue of large suites: what is in it, what is left, turns that end in time, and a smoke run of every suite."""

import sys
from pathlib import Path

import pytest
import torch

from pebench.benchmarks import gpu_queue, gpu_smoke
from pebench.benchmarks.gpu_queue import QUEUE, Item
from pebench.engine.executors.local import TERMINATION_S
from pebench.engine.plans import make_plan
from pebench.runs.records import Record, write_record
from pebench.runs.suite import load_suite, suite_files
from pebench.tasks import find_task

HANDS_ON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
os.kill(os.getppid(), signal.{signal})
time.sleep(3600)
"""
"""A command that has its parent told to stop, and ends as `pebench run` does once it is told itself."""


def test_every_large_suite_is_in_the_queue_once() -> None:
    large = [name for name, path in suite_files().items() if path.parent.name == "large"]
    assert sorted(item.suite for item in QUEUE) == sorted(large)


@pytest.mark.parametrize("item", QUEUE, ids=lambda item: item.suite)
def test_a_suite_says_what_is_asked_expected_and_decided(item: Item) -> None:
    suite = load_suite(item.suite)
    assert suite.declared_at
    assert suite.question
    assert suite.expect
    assert suite.decision
    assert suite.margin
    assert suite.shared_machine == (item.jobs > 1)
    assert find_task(suite.tasks[0]).name.partition("-")[0] in gpu_smoke.STAND_INS
    assert item.rate > 0
    assert item.source


def test_what_is_published_and_recorded_is_not_left(tmp_path: Path) -> None:
    suite = load_suite("ladder-29m")
    runs = make_plan(suite).testing({})
    assert gpu_queue.progress(suite, tmp_path) == gpu_queue.Progress(12, 0, 0, 12, 12 * 20_800)
    write_record(Record(runs[0], metrics={"test/bits_per_byte": 1.0}), tmp_path)
    write_record(Record(runs[1], status="failed", error={"kind": "out of memory", "reason": "no room"}), tmp_path)
    assert gpu_queue.progress(suite, tmp_path) == gpu_queue.Progress(12, 1, 0, 10, 10 * 20_800)
    scorecard = gpu_queue.progress(load_suite("full-scorecard"), tmp_path)
    assert (scorecard.total, scorecard.left, scorecard.steps) == (228, 186, 186 * 2000)


def test_runs_that_wait_for_a_failed_one_are_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, records = make_plan(suite := load_suite("full-rivals-tied")), dict[str, Record]()
    for number, run in enumerate(plan.selecting()):
        record = Record(run, metrics={"val/loss": 3.0, "best_step": 2000})
        if not number:
            record = Record(run, status="failed", error={"kind": "out of memory", "reason": "no room"})
        write_record(record, tmp_path / suite.name)
        records[run.key] = record
    assert gpu_queue.progress(suite, tmp_path / suite.name) == gpu_queue.Progress(32, 1, 5, 15, 15 * 2000)
    for run in plan.testing(records):
        write_record(Record(run, metrics={"test/bits_per_byte": 1.0}), tmp_path / suite.name)
    assert gpu_queue.progress(suite, tmp_path / suite.name) == gpu_queue.Progress(32, 1, 5, 0, 0)
    assert gpu_queue.table(tmp_path, None, 9).splitlines()[3].split()[:6] == [suite.name, "27", "of", "32", "1", "5"]
    asked: list[list[str]] = []
    monkeypatch.setattr(gpu_queue, "run_for", lambda command, _: asked.append(command) or 0)
    monkeypatch.setattr(gpu_queue, "QUEUE", tuple(Item(name, 192, 3, "") for name in (suite.name, "full-rivals-pace")))
    assert gpu_queue.main(["--out", str(tmp_path), "--device", "cpu"]) == 0
    assert [command[command.index("--suite") + 1] for command in asked] == ["full-rivals-pace"]


@pytest.mark.parametrize("minutes", [9.0, 12.0, 60.0])
@pytest.mark.parametrize("item", QUEUE, ids=lambda item: item.suite)
def test_a_run_takes_half_a_turn_at_most(item: Item, minutes: float) -> None:
    jobs = gpu_queue.jobs_of(item, minutes)
    seconds = [jobs * kind.train.max_steps / item.rate for kind in make_plan(item.suite).kinds]
    assert 1 <= jobs <= item.jobs
    assert max(seconds) <= 60 * minutes / 2


def test_the_list_has_minutes_by_rate_and_the_size_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_queue, "QUEUE", (Item("ladder-29m", 100, 6, "a guess"),))
    (tmp_path / "imdb").mkdir()
    (tmp_path / "imdb" / "train.parquet").write_bytes(b"0" * 3 * 2**20)
    words = ["--list", "--minutes", "15", "--out", str(tmp_path), "--data-dir", str(tmp_path)]
    assert gpu_queue.main(words) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    minutes = gpu_queue.MARGIN * 12 * 20_800 / 100 / 60
    assert row == ["ladder-29m", "0", "of", "12", "0", "0", f"{minutes:.0f}", "3", "2", "100", "a", "guess"]


def test_a_command_that_ends_in_time_has_its_status() -> None:
    assert gpu_queue.run_for([sys.executable, "-c", "raise SystemExit(3)"], 3600) == 3


def test_a_turn_ends_when_its_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert TERMINATION_S < gpu_queue.ENDING_S
    assert gpu_queue.run_for([sys.executable, "-c", "import time; time.sleep(3600)"], 0.1) == 0
    assert "the next turn goes on from here" in capsys.readouterr().out


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_signal_is_handed_on_to_the_runs(signal: str) -> None:
    assert gpu_queue.run_for([sys.executable, "-c", HANDS_ON.format(signal=signal)], 3600) == 130


@pytest.mark.parametrize("status", [0, 1, 2, 130])
def test_turns_go_through_what_is_left_in_order(status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails is no reason to stop; a suite that cannot run, and Ctrl-C, are."""
    asked: list[list[str]] = []

    def run_for(command: list[str], seconds: float) -> int:
        assert 60 < seconds < 5 * 60
        asked.append(command)
        return status if len(asked) == 2 else 0

    monkeypatch.setattr(gpu_queue, "run_for", run_for)
    done = make_plan(load_suite("nanogpt")).testing({})
    for run in done:
        write_record(Record(run, metrics={"test/bits_per_byte": 1.0}), tmp_path / "nanogpt")
    names = ("nanogpt", "ladder-29m", "ladder", "long")
    monkeypatch.setattr(gpu_queue, "QUEUE", tuple(Item(name, 300, 3, "a guess") for name in names))
    assert gpu_queue.main(["--minutes", "5", "--out", str(tmp_path), "--device", "cpu"]) == status
    begun = ["ladder-29m", "ladder", "long"][: 2 if status > 1 else 3]
    assert [command[command.index("--suite") + 1] for command in asked] == begun
    assert asked[0][-4:] == ["--jobs", "2", "--device", "cpu"]
    assert str(tmp_path / "ladder-29m") in asked[0]


def test_a_turn_that_is_too_short_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_queue, "run_for", lambda *_: pytest.fail("it began"))
    assert gpu_queue.main(["--minutes", "0.5", "--out", str(tmp_path), "--device", "cpu"]) == 0


def test_without_a_gpu_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_queue.main(["--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("queue: expected a GPU that this torch can use, found none.")


def test_two_steps_of_each_suite_run_on_processors(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_queue.main(["--smoke"]) == 0
    assert capsys.readouterr().out.count(": ok\n") == len(QUEUE)


def test_a_small_suite_keeps_what_the_suite_is_about() -> None:
    (tied, small) = (gpu_smoke.small(load_suite(f"full-rivals-{name}")) for name in ("tied", "small"))
    assert all(kind.model.tied and kind.train.max_steps == 2 for kind in tied.kinds())
    assert {kind.label for kind in small.kinds()} == {"learned (pace=1.0, ratio=0.02)"}
    assert all(kind.model.token_scale == 0.02 for kind in small.kinds())


def test_a_smoke_run_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pebench.training.runner.train", lambda *_: 1 / 0)
    assert gpu_smoke.smoke(["nanogpt"], tmp_path) == 1
    answer = capsys.readouterr()
    assert answer.out == "nanogpt: failed\n"
    assert "ZeroDivisionError" in answer.err
