"""Progress: what is shown of runs that go on, on a console and in a notebook."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from pebench.cli.run import CommandLine
from pebench.config import RunConfig
from pebench.engine.cells import Cells
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
    # 40 steps are left, at 10 in 100 s
    assert told.getvalue().strip() == "vit-digits learned seed 0: step 40 of 40, 0.1 steps/s, about 7 min left"


def test_the_first_run_tells_its_pace_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1.0]
    monkeypatch.setattr("pebench.engine.progress.time.monotonic", lambda: now[0])
    told = io.StringIO()
    display = Display(Console(file=told, width=200))
    display.planned(Stage([DIGITS, GRAMMAR], [DIGITS, GRAMMAR]))
    for step in range(10):
        now[0] += 1.0
        display.progress(DIGITS, step, {})
        display.progress(GRAMMAR, step, {})
    (line,) = told.getvalue().splitlines()
    assert line.strip() == "vit-digits learned seed 0: step 3 of 40, 1 steps/s, about 45 s left"


def test_on_a_narrow_terminal_no_line_breaks_inside_a_word() -> None:
    told, message = io.StringIO(), "a sentence of words that a terminal of sixty columns cannot show on one line [here]"
    Display(Console(file=told, width=60, force_terminal=True)).note(message)
    assert told.getvalue().split() == message.split()
    assert max(map(len, told.getvalue().splitlines())) <= 60


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
    assert "FAILED after 0 s: a < b" in capsys.readouterr().out
    assert "FAILED after 0 s: a &lt; b" in bar.html()


def test_a_program_that_is_no_notebook_hears_nothing() -> None:
    assert type(default_observer()) is Observer


TASKS = ("vit-digits", "lm-grammar")
PLAN = [configure(task, name, seed, "smoke") for task in TASKS for seed in (0, 1) for name in ("add", "rope")]


def ended(config: RunConfig, value: float = 0.5) -> Record:
    metrics = {"test/accuracy": value, "test/bits_per_byte": value, "test/loss": 1.0, "val/loss": 1.0, "best_step": 2}
    return Record(config, metrics=metrics, parameters={"encoding": 0, "total": 10})


def shown(cells: Cells, task: str) -> list[list[str]]:
    text = io.StringIO()
    Console(file=text, width=100).print(cells.table(task))
    return [line.split() for line in text.getvalue().splitlines() if line.startswith(("add", "rope"))]


def test_cells_fill_in_while_runs_end() -> None:
    cells = Cells(Stage(PLAN, PLAN[1:], known={PLAN[0].key: ended(PLAN[0], 0.25)}))
    assert shown(cells, "vit-digits") == [["add", "25.00", "...", "25.00"], ["rope", "...", "..."]]
    cells.fill(ended(PLAN[2], 0.75))
    cells.fill(Record(PLAN[1], status="failed"))
    assert shown(cells, "vit-digits") == [["add", "25.00", "75.00", "50.00"], ["rope", "failed", "..."]]
    assert (cells.complete, cells.current) == ([], "vit-digits")
    cells.fill(ended(PLAN[3]))
    assert (cells.complete, cells.current) == (["vit-digits"], "lm-grammar")


def test_a_run_that_is_tried_again_has_no_outcome_and_one_that_selects_no_cell() -> None:
    selecting = replace(PLAN[0], selected=("train.learning_rate",), stage="select")
    failed = Record(PLAN[0], status="failed")
    cells = Cells(Stage([PLAN[0], selecting], [PLAN[0], selecting], known={PLAN[0].key: failed}))
    assert shown(cells, "vit-digits") == [["add", "..."]]
    assert list(cells.tasks) == ["vit-digits"]


def test_a_table_is_printed_once_and_as_soon_as_its_runs_have_ended() -> None:
    told = io.StringIO()
    display = CommandLine(Console(file=told, width=200), "add")
    display.planned(Stage(PLAN, PLAN))
    display.started()
    for config in PLAN[:4]:
        assert "± 95" not in told.getvalue()
        assert "Verdict" not in told.getvalue()
        display.finished(ended(config, 0.5 + 0.1 * config.seed))
    assert told.getvalue().count("Verdict") == 1
    assert "lm-grammar" not in told.getvalue()
    for config in PLAN[4:]:
        display.finished(ended(config))
    display.ended()
    display.show_rest([ended(config) for config in PLAN])
    assert told.getvalue().count("Verdict") == 2
    assert told.getvalue().count("± 95") == 1


def test_tables_of_runs_that_had_ended_before_are_printed_at_the_end() -> None:
    told = io.StringIO()
    display = CommandLine(Console(file=told, width=200), "add")
    known = {config.key: ended(config) for config in PLAN}
    display.planned(Stage(PLAN, [], known=known))
    assert "Verdict" not in told.getvalue()
    display.show_rest(known.values())
    assert told.getvalue().count("Verdict") == 2


def test_on_a_terminal_a_cell_stands_for_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for height, lines in ((40, 0), (5, 1)):  # too low for the table: a line for each run
        told = io.StringIO()
        display = Display(Console(file=told, width=100, height=height, force_terminal=True))
        display.planned(Stage(PLAN, PLAN))
        display.started()
        display.finished(ended(PLAN[0], 0.25))
        display.live.refresh()
        display.ended()
        assert told.getvalue().count("[1/8]") == lines
        assert ("Encoding" in told.getvalue()) == (lines == 0)
