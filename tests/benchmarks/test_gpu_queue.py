"""The queue of large suites: what is in it, what is left, turns that end in time, and a smoke run of every suite."""

import sys
from pathlib import Path

import pytest
import torch

from pebench.benchmarks import gpu_queue
from pebench.benchmarks.gpu_queue import QUEUE, Item
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
    assert find_task(suite.tasks[0]).name.partition("-")[0] in gpu_queue.STAND_INS
    assert item.rate > 0
    assert item.source


def test_what_is_published_and_recorded_is_not_left(tmp_path: Path) -> None:
    suite = load_suite("ladder-29m")
    runs = make_plan(suite).testing({})
    assert gpu_queue.progress(suite, tmp_path) == gpu_queue.Progress(12, 0, 12, 12 * 20_800)
    write_record(Record(runs[0], metrics={"test/bits_per_byte": 1.0}), tmp_path)
    write_record(Record(runs[1], status="failed", error={"kind": "out of memory", "reason": "no room"}), tmp_path)
    assert gpu_queue.progress(suite, tmp_path) == gpu_queue.Progress(12, 1, 10, 10 * 20_800)
    scorecard = gpu_queue.progress(load_suite("full-scorecard"), tmp_path)
    assert (scorecard.total, scorecard.left, scorecard.steps) == (228, 186, 186 * 2000)


def test_the_list_has_minutes_by_rate_and_the_size_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_queue, "QUEUE", (Item("ladder-29m", 100, 6, "a guess"),))
    (tmp_path / "imdb").mkdir()
    (tmp_path / "imdb" / "train.parquet").write_bytes(b"0" * 3 * 2**20)
    assert gpu_queue.main(["--list", "--out", str(tmp_path), "--data-dir", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    minutes = gpu_queue.MARGIN * 12 * 20_800 / 100 / 60
    assert row == ["ladder-29m", "0", "of", "12", "0", f"{minutes:.0f}", "3", "6", "100", "a", "guess"]


def test_a_command_that_ends_in_time_has_its_status() -> None:
    assert gpu_queue.run_for([sys.executable, "-c", "raise SystemExit(3)"], 3600) == 3


def test_a_turn_ends_when_its_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_queue.run_for([sys.executable, "-c", "import time; time.sleep(3600)"], 0.1) == 0
    assert "the next turn goes on from here" in capsys.readouterr().out


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_signal_is_handed_on_to_the_runs(signal: str) -> None:
    assert gpu_queue.run_for([sys.executable, "-c", HANDS_ON.format(signal=signal)], 3600) == 130


def test_turns_go_through_what_is_left_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run_for(command: list[str], seconds: float) -> int:
        assert 60 < seconds < 5 * 60
        asked.append(command)
        return len(asked) // 2  # the second one fails

    monkeypatch.setattr(gpu_queue, "run_for", run_for)
    done = make_plan(load_suite("nanogpt")).testing({})
    for run in done:
        write_record(Record(run, metrics={"test/bits_per_byte": 1.0}), tmp_path / "nanogpt")
    names = ("nanogpt", "ladder-29m", "ladder", "long")
    monkeypatch.setattr(gpu_queue, "QUEUE", tuple(Item(name, 1, 3, "a guess") for name in names))
    assert gpu_queue.main(["--minutes", "5", "--out", str(tmp_path), "--device", "cpu"]) == 1
    assert [command[command.index("--suite") + 1] for command in asked] == ["ladder-29m", "ladder"]
    assert asked[0][-4:] == ["--jobs", "3", "--device", "cpu"]
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


def test_two_steps_of_each_suite_run_on_processors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_queue.smoke(tmp_path) == 0
    assert capsys.readouterr().out.count(": ok\n") == len(QUEUE)


def test_a_small_suite_keeps_what_the_suite_is_about() -> None:
    (tied, small) = (gpu_queue.small(load_suite(f"full-rivals-{name}")) for name in ("tied", "small"))
    assert all(kind.model.tied and kind.train.max_steps == 2 for kind in tied.kinds())
    assert {kind.label for kind in small.kinds()} == {"learned (pace=1.0, ratio=0.02)"}
    assert all(kind.model.token_scale == 0.02 for kind in small.kinds())


def test_a_smoke_run_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_queue, "QUEUE", QUEUE[-1:])
    monkeypatch.setattr("pebench.training.runner.train", lambda *_: 1 / 0)
    assert gpu_queue.smoke(tmp_path) == 1
    answer = capsys.readouterr()
    assert answer.out == "nanogpt: failed\n"
    assert "ZeroDivisionError" in answer.err
