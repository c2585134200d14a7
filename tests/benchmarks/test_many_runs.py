"""The study of many runs on one device measures each way to make them, and says what it could not measure."""

from pathlib import Path

import pytest

from pebench.benchmarks.studies import many_runs
from pebench.benchmarks.studies.many_runs import Arm, Pace
from pebench.tasks import configure

QUICK = ["--quick", "--device", "cpu", "--steps", "100"]


def test_each_way_has_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        many_runs, "ARMS", (Arm(2, "sequential", False), Arm(2, "together", True), Arm(12, "local", True))
    )
    output = tmp_path / "many-runs.md"
    assert many_runs.main([*QUICK, "--output", str(output)]) == 0
    table = [line.split("|")[1:-1] for line in output.read_text().splitlines() if line.startswith("|")][2:]
    one_by_one, together = ([cell.strip() for cell in row] for row in table)  # twelve are too many for --quick
    assert one_by_one[:4] == ["2", "sequential", "no", "not measured: the first run had ended when the last one began"]
    assert together[:3] == ["2", "together", "no"]  # a processor captures nothing
    assert all(float(cell) > 0 for cell in together[3:])
    assert capsys.readouterr().err.count("\n") == 2


def test_no_way_is_begun_after_its_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    assert many_runs.main([*QUICK, "--minutes", "0"]) == 0
    assert f"{len(many_runs.ARMS)} arms are left out" in capsys.readouterr().err


def test_the_pace_is_that_of_all_while_all_train(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 2.0, 3.0, 5.0, 7.0])
    monkeypatch.setattr(many_runs.time, "perf_counter", lambda: next(clock))
    runs = [configure("lm-grammar", "add", seed, "smoke", {"train.max_steps": 100}) for seed in (0, 1)]
    pace = Pace(2)
    for number, step in ((0, 0), (0, 50), (1, 20), (1, 60), (0, 100)):
        pace.progress(runs[number], step, {})
    assert pace.first == 2.0
    assert pace.steps_per_second == (160 - 70) / (7.0 - 3.0)
