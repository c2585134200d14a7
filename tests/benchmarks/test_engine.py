"""The benchmark of the engine measures what it says."""

from pathlib import Path

import pytest
from benchmarks.studies import engine

from pebench.cli import main
from pebench.runs.suite import load_suite


def test_what_it_takes_for_finished_is_recognised_as_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.make_finished(tmp_path, 6)
    words = [*engine.RUNS, "--seeds", "3", "--tier", "smoke", "--out", str(tmp_path)]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("6 runs: 0 to do, 6 done\n")


def test_its_large_suite_has_a_hundred_thousand_runs(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text(engine.LARGE_SUITE.format(10_000))
    suite = load_suite(str(path))
    assert len(suite.kinds()) * suite.seeds == 100_000


def test_a_page_holds_every_figure() -> None:
    rows = [("a plan", engine.spread([3.0, 1.0, 2.0], "s"), "under 5 s"), ("packing", "1.9 x", "at least 1.6 x")]
    page = engine.render(rows, 3)
    assert "| a plan  | 2.00 s (1.00 to 3.00) | under 5 s      |" in page
    assert "1.9 x" in page
