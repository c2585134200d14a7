"""The study of costs by length: points beside `none`, added to earlier ones, and points that need too much memory."""

import json
from pathlib import Path

import pytest

from pebench.benchmarks.studies import costs_by_length


def test_points_are_beside_none_and_join_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"none": 2.0, "alibi": 3.0, "rope": 2.2}
    monkeypatch.setattr(
        costs_by_length, "measure", lambda name, length, threads: {"seconds": seconds[name], "gib": seconds[name] / 4}
    )
    output = tmp_path / "costs.md"
    for name in ("alibi", "rope"):
        assert costs_by_length.main(["--pe", name, "--length", "32", "--output", str(output)]) == 0
    found = json.loads(output.with_suffix(".json").read_text())
    assert found["points"]["alibi"]["32"] == {"ratio": 1.5, "gib": 0.25}
    assert found["points"]["rope"]["32"] == {"ratio": pytest.approx(1.1), "gib": pytest.approx(0.05)}
    assert found["complete"]
    assert "| `alibi`    | 1.50, 0.25 GiB |" in output.read_text()


def test_a_point_is_measured_in_a_process_of_its_own() -> None:
    found = costs_by_length.measure("alibi", 64, 1)
    assert found is not None
    assert found["seconds"] > 0


def test_too_much_memory_is_a_point_without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs_by_length, "measure", lambda name, length, threads: None)
    points: costs_by_length.Points = {}
    assert [*costs_by_length.sweep(points, ["rope", "rope-mixed"], [32], None)] == [None]
    assert points == {"rope": {"32": None}}  # rope-mixed serves grids alone
    assert costs_by_length.cell(None) == "too much memory"
