"""Progress: what is shown of runs that go on, on a console and in a notebook."""

import io

import pytest
from rich.console import Console

from pebench.engine.notebook import NotebookBar, default_observer
from pebench.engine.observer import Observer, Stage
from pebench.engine.progress import Display
from pebench.runs.records import Record
from pebench.tasks import configure

SETTINGS = {"train.max_steps": 40, "train.evaluations": 4, "model.dropout": 0.1}
DIGITS = configure("vit-digits", "learned", tier="smoke", settings=SETTINGS)
GRAMMAR = configure("lm-grammar", "add", tier="smoke", settings=SETTINGS)


def test_progress_tells_apart_runs_that_differ_in_a_setting_alone() -> None:
    told = io.StringIO()
    display = Display(Console(file=told, width=200))
    display.planned(Stage([DIGITS], [DIGITS], varied=["model.num_layers"]))
    display.finished(Record(DIGITS, metrics={"test/accuracy": 0.5}))
    assert "vit-digits learned (model.num_layers=1) seed 0: test accuracy 50.00 %" in told.getvalue()


def test_the_time_left_does_not_go_by_what_an_earlier_attempt_did(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((1.0, 1.0, 101.0, 101.0))
    monkeypatch.setattr("pebench.engine.progress.time.monotonic", lambda: next(clock))
    told = io.StringIO()
    display = Display(Console(file=told, width=200))
    display.planned(Stage([DIGITS, GRAMMAR], [DIGITS, GRAMMAR]))
    display.progress(DIGITS, 30, {})  # resumed: 30 of its 40 steps are old
    display.progress(GRAMMAR, 0, {})
    display.progress(DIGITS, 40, {})
    assert told.getvalue().strip() == "vit-digits learned seed 0: step 40 of 40, about 7 min left"  # 40 at 10 in 100 s


def test_a_bar_counts_the_steps_of_all_runs() -> None:
    bar = NotebookBar()
    bar.planned(Stage([DIGITS, GRAMMAR], [DIGITS, GRAMMAR]))
    bar.progress(DIGITS, 30, {})
    assert '<progress value="30" max="80"></progress> 0 of 2 runs' in bar.html()
    bar.finished(Record(DIGITS, metrics={"test/accuracy": 0.5}))
    assert '<progress value="40" max="80"></progress> 1 of 2 runs' in bar.html()
    assert "test accuracy 50.00 %" in bar.html()


def test_a_run_that_fails_is_printed_above_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    bar = NotebookBar()
    bar.planned(Stage([DIGITS], [DIGITS]))
    bar.finished(Record(DIGITS, status="failed", error={"kind": "exception", "reason": "a < b"}))
    assert "FAILED: a < b" in capsys.readouterr().out
    assert "FAILED: a &lt; b" in bar.html()


def test_a_program_that_is_no_notebook_hears_nothing() -> None:
    assert type(default_observer()) is Observer
