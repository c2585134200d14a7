"""Suites: what is refused before anything trains, and all mistakes at once."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pebench.cli import main
from pebench.config import SELECTION_SEED
from pebench.errors import UserError
from pebench.runs.suite import Suite, load_suite
from tests.runs.plans import RATE, asked, plan_of

WIDTHS: dict[str, Any] = {
    "vary": {"model.d_model": [16, 32]},
    "along": {
        "model.d_model": {16: {"model.num_heads": 4, RATE: 1e-2}, 32: {"model.num_heads": 8, RATE: 5e-3}},
    },
}  # fmt: skip


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_is_none_is_told_before_anything_selects(seed: int) -> None:
    with pytest.raises(UserError, match=rf"a seed must be in \[0, 2\^32\), got {seed}"):
        plan_of(select={RATE: [1e-3, 1e-2]}, seeds=[1, seed])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"select": {RATE: "0.001"}}, r"values to select train\.learning_rate from must be a list, got '0\.001'"),
        ({"select": {RATE: []}}, r"values to select train\.learning_rate from must be a list, got \[\]"),
        ({"select": {"encoding.theta": [1.0]}}, r"encoding\.theta cannot be selected; give each value a row"),
        ({"select": {"model.d_ff": [8]}, "regime": "parameters"}, r"model\.d_ff cannot be selected.*parameters"),
        ({"select": {"model.d_ff": [8]}, "regime": "FLOPs"}, r"model\.d_ff cannot be selected.*FLOPs"),
        ({"regime": "parameter"}, r"unknown regime 'parameter'\. Did you mean 'parameters'\?"),
        ({"select": {"train.rate": [1]}}, r"unknown setting 'train\.rate'\. Did you mean '.*'\?"),
        ({"select": {"data.max_len": [8]}}, r"unknown setting 'data\.max_len'"),
        ({"select": {RATE: ["fast"]}}, r"train\.learning_rate expects float, got 'fast'"),
        ({"select": {RATE: [0.0]}}, r"train\.learning_rate must be positive, got 0\.0"),
        (
            {"select": {RATE: [0.1]}, "settings": {RATE: 1.0}},
            rf"{RATE} cannot be set and selected.*--select {RATE}=VALUE",
        ),
        ({"select": {"model.num_heads": [2, 3]}}, r"d_model must be a multiple of model\.num_heads, got 16 and 3"),
    ],
)
def test_a_selection_that_cannot_work_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(**changes).selecting()


def test_values_that_work_together_alone_can_be_selected() -> None:
    plan = plan_of(encodings=["add"], select={"model.d_model": [24], "model.num_heads": [3]})
    assert [(c.model.d_model, c.model.num_heads) for c in plan.selecting()] == [(24, 3)]


def test_the_width_of_the_feed_forward_layers_can_be_selected_where_nothing_is_matched() -> None:
    assert [config.model.d_ff for config in plan_of(encodings=["add"], select={"model.d_ff": [8, 16]}).selecting()] == [
        8, 16,
    ]  # fmt: skip


def test_all_mistakes_are_told_at_once_and_each_once() -> None:
    with pytest.raises(UserError) as caught:
        plan_of(
            tasks=["vit-digits", "text-order", "lm-gramar"], encodings=["add", "rop", "none"], regime="flop",
            settings={"encoding.raito": 1}, select={"model.d_ff": [], "encoding.theta": "10", RATE: "1e-3"},
        )  # fmt: skip
    lines = str(caught.value).splitlines()
    expected = (
        "unknown encoding option 'encoding.raito'", "unknown regime 'flop'", "model.d_ff cannot be selected",
        "select model.d_ff from must be a list", "encoding.theta cannot be selected",
        "select encoding.theta from must be a list", "select train.learning_rate from must be a list",
        "unknown encoding 'rop'", "unknown task 'lm-gramar'",
    )  # fmt: skip
    assert {text: sum(text in line for line in lines) for text in expected} == dict.fromkeys(expected, 1)
    assert len(lines) == len(expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--select", "train.rate=1,2"], "unknown setting 'train.rate'"),
        (["--select", "train.learning_rate"], "--select expects key=value"),
        (["--select", "train.learning_rate="], "train.learning_rate expects float, got ''"),
        (["--select", "train.learning_rate=1e-3,fast"], "train.learning_rate expects float, got 'fast'"),
        (["--select", "train.learning_rate=1e-3,-1"], "train.learning_rate must be positive, got -1.0"),
        (["--select", "encoding.theta=10,100"], "encoding.theta cannot be selected"),
        (["--select", "model.d_ff=8,16", "--regime", "FLOPs"], "model.d_ff cannot be selected"),
        (["--regime", "FLOP"], "unknown regime 'FLOP'. Did you mean 'FLOPs'?"),
    ],
)
@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_mistake_on_the_command_line_ends_it_before_any_run(
    arguments: list[str], words: str, dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    assert main(["run", "--task", "vit-digits", "--tier", "smoke", "--out", str(out), *arguments, *dry]) == 2
    message = capsys.readouterr().err
    assert message.startswith("pebench: error: ")
    assert words in message
    assert "Traceback" not in message
    assert not out.exists()


def test_all_mistakes_of_a_selection_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        asked("--pe", "add", "--pe", "rop", "--select", "train.rate=1", "--select", "train.learning_rate=fast")
    assert all(words in str(caught.value) for words in ("'rop'", "'train.rate'", "'fast'"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection_seeds": 0}, "selection_seeds must be at least 1, got 0"),
        ({"selection_seeds": {"vit-digits": 0}}, r"selection_seeds must be at least 1, got \{'vit-digits': 0\}"),
        ({"selection_seeds": {"vit-digit": 2}}, "unknown task .* 'vit-digit'"),
        ({"select": {RATE: 1e-3}}, "must be a list, got 0.001"),
        ({"select": {RATE: [[1e-3], [1e-2]]}}, r"train\.learning_rate"),
        ({"select": {RATE: ["[1]"]}}, r"train\.learning_rate"),
        ({"seeds": [SELECTION_SEED]}, "select and cannot be tested"),
    ],
    ids=str,
)
def test_a_selection_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(**({"select": {RATE: [1e-3, 1e-2]}} | changes)).testing({})


@pytest.mark.parametrize(
    ("rates", "problem"),
    [
        ({"vit-digits": [1e-3]}, "must be a list on each task, got None"),
        ({"vit-digits": [1e-3], "text-order": []}, r"must be a list on each task, got \[\]"),
        ({"vit-digits": [1e-3], "text-ordre": [1e-3]}, "unknown task to select train.learning_rate on 'text-ordre'"),
        ({"vit-digits": [1e-3], "text-order": ["fast"]}, "fast"),
    ],
)
def test_values_of_tasks_that_make_no_sense_are_refused(rates: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        plan_of(tasks=["vit-digits", "text-order"], select={RATE: rates})


def test_a_setting_that_breaks_the_regime_cannot_be_selected() -> None:
    with pytest.raises(UserError, match=r"model\.d_model"):
        plan_of(regime="parameters", select={"model.d_model": [16, 32]}).selecting()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vary": {"model.num_layer": [1]}}, "model.num_layers"),
        ({"vary": {"model.num_layers": ["x"]}}, "model.num_layers expects int"),
        ({"vary": {"model.num_layers": "12"}}, "must be a list"),
        ({"vary": {"model.num_layers": []}}, "must be a list"),
        ({"vary": {"encoding.ratio": [1]}}, "row of its own"),
        ({"vary": {RATE: [1e-3]}, "select": {RATE: [1e-3]}}, "set or selected too"),
        ({"vary": {"model.d_ff": [8]}, "regime": "parameters"}, "it matches parameters"),
        ({"along": {"model.d_model": {16: {RATE: 1e-3}}}}, "model.d_model, which does not vary"),
        ({**WIDTHS, "settings": {RATE: 1e-3}}, f"{RATE} cannot go along with model.d_model and"),
        ({**WIDTHS, "vary": {"model.d_model": [16, 48]}}, "model.d_model of 16, 32, got 48"),
        ({**WIDTHS, "along": {"model.d_model": {16: {"model.heads": 1}, 32: {}}}}, "unknown setting 'model.heads'"),
    ],
)
def test_what_cannot_vary_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        plan_of(**options)


def test_settings_go_along_with_the_one_that_varies() -> None:
    found = [
        (kind.model.d_model, kind.model.num_heads, kind.train.learning_rate)
        for kind in plan_of(encodings=["add"], **WIDTHS).kinds
    ]
    assert found == [(16, 4, 1e-2), (32, 8, 5e-3)]
    suite = Suite("s", "?", ["vit-digits"], ["add"], **WIDTHS)
    text = replace(suite, vary={"model.d_model": ["32"]})  # as --vary gives it
    assert [(kind.model.d_model, kind.model.num_heads) for kind in text.kinds()] == [(32, 8)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name expects text without slashes, such as 'depth', which files may be named by, got ''."),
        ({"name": "a b/c"}, "got 'a b/c'."),
        ({"tasks": []}, "tasks expects at least one, as in ['vit-digits'], got []."),
        ({"encodings": []}, "encodings expects at least one, as in ['add', 'rope'], got []."),
    ],
)
def test_a_suite_without_a_name_or_rows_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        replace(Suite("depth", "?", ["vit-digits"]), **changes).kinds()
    assert str(caught.value).endswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_that_gives_a_suite_what_it_does_not_take_names_what_it_does(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['vit-digits'], seed=3)\n")
    with pytest.raises(
        UserError, match=r"wrong\.py, line 2, .*unknown argument of Suite 'seed'\. Did you mean 'seeds'"
    ):
        load_suite(str(file))
