"""The study of the engine measures what it names."""

from pathlib import Path

import pytest

from pebench.benchmarks.studies import engine
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
    plan = ("a plan", engine.median_and_range([3.0, 1.0, 2.0], "s"), "under 5 s")
    page = engine.render([plan, ("packing", "1.9 x", "at least 1.6 x")], 3)
    assert "| a plan  | 2.00 s (1.00 to 3.00) | under 5 s      |" in page
    assert "1.9 x" in page


def test_every_figure_is_measured_and_kept_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[str, ...]] = []

    def run_pebench(*arguments: str) -> float:
        if len(calls) == 40:
            raise KeyboardInterrupt
        calls.append(arguments)
        out = Path(arguments[arguments.index("--out") + 1]) if "--out" in arguments else tmp_path
        out.mkdir(parents=True, exist_ok=True)
        (out / "record.json").touch()
        return float(len(calls))

    monkeypatch.setattr(engine, "make_finished", lambda *_: None)
    monkeypatch.setattr(engine, "run_pebench", run_pebench)
    monkeypatch.setattr(engine, "run_python", lambda *_: 1.0)
    output = tmp_path / "engine.md"
    assert engine.main(["--rounds", "2", "--output", str(output)]) == 130
    figures = [line for line in output.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(figures) == 14  # 3, 5 of cold starts, 3 of overheads, 3 of packing, of which each calls six times
    assert capsys.readouterr().err.count("\n") == 14 + 1
