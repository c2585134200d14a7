"""What runs take on this machine, before anything is recorded, and the warning where that is very long."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pebench.config import RunConfig
from pebench.engine import execution, pace
from pebench.engine.execution import Execution
from pebench.engine.pace import expected_seconds, long_wait, operations, operations_per_second
from pebench.runs.costs import Cost, check_costs
from pebench.tasks import configure
from tests.cli.asking import SMOKE, ask

AUTO, CPU = Execution(Path("nowhere")), Execution(Path("nowhere"), device="cpu")


def costs_of(runs: Sequence[RunConfig]) -> dict[str, Cost]:
    return check_costs({config.kind_key: config for config in runs}.values())


def test_operations_are_those_of_all_steps() -> None:
    runs = [configure("vit-digits", name, seed, "smoke") for name in ("add", "rope") for seed in range(3)]
    costs = costs_of(runs)
    each = [2 * 16 * costs[run.kind_key].layers() for run in runs]  # two steps of 16 examples
    assert operations(runs, costs) == sum(each) > 0


def test_a_measurement_finds_operations() -> None:
    assert operations_per_second(configure("vit-digits", "add", 0, "smoke"), "cpu", 1) > 1e5


def test_a_measured_step_is_small_whatever_the_batch() -> None:
    """All of this batch would take 4 TB."""
    huge = configure("vit-digits", "add", 0, "smoke", {"train.batch_size": 10**9})
    assert operations_per_second(huge, "cpu", 1) > 1e5


def test_runs_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "cores", lambda: 4)
    monkeypatch.setattr(pace, "operations_per_second", lambda config, device, threads: 1e9 * threads)
    one, six = ([configure("vit-digits", "add", seed, "smoke") for seed in range(number)] for number in (1, 6))
    costs = costs_of(one)

    def share(runs: list[RunConfig], **options: Any) -> float:
        return expected_seconds(runs, costs, Execution(Path("nowhere"), device="cpu", **options)) * 4e9

    assert share(one) == pytest.approx(operations(one, costs))  # four threads
    assert share(six) == pytest.approx(operations(six, costs))  # four runs of one
    assert share(six, jobs=1) == pytest.approx(operations(six, costs))  # one run of four
    assert share(six, threads=1, jobs=2) == pytest.approx(2 * operations(six, costs))
    assert share(six, executor="sequential", threads=1) == pytest.approx(4 * operations(six, costs))


def test_runs_share_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setattr(pace, "operations_per_second", lambda config, device, threads: {"cuda": 1e9}[device])
    runs = [configure("vit-digits", "add", seed, "smoke") for seed in range(8)]
    costs = costs_of(runs)
    for options in ({}, {"devices": 2}, {"devices": 4}):
        seconds = expected_seconds(runs, costs, Execution(Path("nowhere"), **options))
        assert seconds == pytest.approx(operations(runs, costs) / 4e9)


def test_a_wait_of_days_is_told_with_what_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "operations_per_second", lambda config, device, threads: 2e10)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    runs = [configure("vit-cifar10", "add", seed, "full") for seed in range(3)]
    text = long_wait(runs, costs_of(runs), AUTO)
    assert text.startswith("3 runs: about ")
    assert " days here, on cpu, " in text
    assert "Shorter: --tier core (about " in text
    assert "or a GPU, or fewer seeds" in text


def test_a_machine_that_is_fast_enough_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [configure("vit-cifar10", "add", 0, "full")]
    monkeypatch.setattr(pace, "operations_per_second", lambda config, device, threads: 1e15)
    assert long_wait(runs, costs_of(runs), CPU) == ""


def test_short_runs_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "operations_per_second", lambda config, device, threads: pytest.fail("measured"))
    runs = [configure("vit-digits", "add", 0, "minute")]
    assert long_wait(runs, costs_of(runs), CPU) == ""


def test_the_warning_comes_before_the_first_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pebench.engine.run.long_wait", lambda runs, costs, how: f"{len(runs)} run, for ever")
    told = ask(*SMOKE, "--pe", "add", "--seed", "0", "--executor", "sequential", out=tmp_path)
    assert told.lines[:2] == ["1 run: 1 to do, 0 done", "1 run, for ever"]
