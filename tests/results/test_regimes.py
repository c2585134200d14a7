"""Tables of matched cost: kept apart, marked or refused, with the commands that make them again."""

import io
import json
import random
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pebench.cli import main
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.errors import UserError
from pebench.results.page import Page
from pebench.results.provenance import command
from pebench.results.tables import build_tables
from pebench.results.titles import heading
from pebench.results.writers import markdown as report
from pebench.results.writers.terminal import terminal
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.tasks import configure
from tests.results.selection_records import (
    DECAY,
    FORMATS,
    RATE,
    keys,
    main_grid,
    markdown,
    record,
    results,
    to_json,
    tuned,
)

RESULTS = Path(__file__).parents[2] / "results"


def planned_by(records: list[Record]) -> tuple[set[str], set[str]]:
    """The keys that the commands of a report plan: of the runs that select, and of those that are tested."""
    selecting: set[str] = set()
    testing: set[str] = set()
    for line in map(command, build_tables(records)):
        assert line in markdown(records)
        program, *words = shlex.split(line)
        assert program == "pebench"
        plan = requested_plan(parser().parse_args(words))
        selecting |= {config.key for config in plan.selecting()}
        testing |= {config.key for config in plan.testing({r.config.key: r for r in records})}
    return selecting, testing


APART: dict[str, dict[str, Any]] = {
    "usual": {},
    "parameters": {"regime": "parameters"},
    "FLOPs": {"regime": "FLOPs"},
    "learning rate": {"select": {RATE: [1e-3]}},
    "decay": {"select": {DECAY: [0.05]}},
    "both": {"select": {RATE: [1e-3], DECAY: [0.05]}},
    "learning rate, parameters": {"select": {RATE: [1e-3]}, "regime": "parameters"},
}


def test_rows_of_different_regimes_or_selections_never_share_a_table() -> None:
    same = {"settings": {RATE: 1e-3, DECAY: 0.05}}  # all runs have the same numbers
    records = []
    for changes in APART.values():
        fixed = {name: value for name, value in same["settings"].items() if name not in changes.get("select", {})}
        records += results(**({"settings": fixed} | changes))
    tables = build_tables(random.Random(0).sample(records, len(records)))
    rules = {(table.config.regime, table.config.selected) for table in tables}
    assert len(tables) == len(rules) == len(APART)
    for table in tables:
        assert {(r.config.regime, r.config.selected) for r in table.records} == {
            (table.config.regime, table.config.selected)
        }
        assert {trial.records[0].config.regime for trial in table.trials} <= {table.config.regime}
        assert (len(table.rows), len(table.records)) == (2, 4)
    titles = {heading(table, tables) for table in tables}
    assert len(titles) == len(tables)
    assert {
        "vit-digits, matched by width, nothing selected",
        "vit-digits, matched by parameters, train.learning_rate selected",
    } <= titles


@pytest.mark.parametrize("regime", ["parameters", "FLOPs"])
def test_a_matched_table_says_so_and_shows_its_widths(regime: str) -> None:
    records = results(encodings=["add", "learned"], tier="quick", regime=regime)
    text = markdown(records)
    assert "## vit-digits\n\n8x8 grey" in text
    assert f" Tier quick, matched by {regime}.\n" in text
    assert f"- Matched by: {regime} (the same " in text
    widths = {r.config.encoding: r.config.model.d_ff for r in records}
    assert main_grid(text)["learned"]["d_ff"] == str(widths["learned"] or 4 * records[0].config.model.d_model)
    (table,) = json.loads(to_json(records))["tables"]
    assert (table["matched_by"], table["settings"], table["warnings"]) == (regime, {}, [])
    assert {row["encoding"]: row["own_settings"] for row in table["rows"]} == {
        name: {"model.d_ff": width} for name, width in widths.items()
    }


def test_where_the_width_is_equal_it_is_no_rows_own() -> None:
    assert "d_ff" not in main_grid(markdown(results()))["add"]
    (table,) = build_tables(results(settings={"model.d_ff": 24}))
    assert table.settings == {"model.d_ff": 24}


@pytest.mark.parametrize(
    "changes",
    [
        {"select": {RATE: [1e-3, 1e-2]}},
        {"select": {RATE: [1e-5, 3e-4, 0.1], DECAY: [0.0, 0.1]}},
        {"select": {"model.num_layers": [1, 2], "train.precision": ["32-true", "64-true"]}},
        {"regime": "parameters", "tier": "quick", "encodings": ["rope", "learned", "add"]},
        {"regime": "FLOPs", "tier": "quick", "encodings": ["rope", "concat", "add"]},
        {"regime": "FLOPs", "encodings": ["add", "concat", "learned", "none", "rope"]},
        {"regime": "parameters", "encodings": ["add", ("concat", {"d_p": 8}), "none"]},
        {"regime": "parameters", "encodings": ["add", "learned"], "select": {RATE: [1e-3, 1e-2]}, "seeds": [7, 3]},
        {"select": {RATE: [1e-3, 1e-2]}, "encodings": ["add", ("concat", {"d_p": 4})]},
        {"select": {RATE: [1e-3, 1e-2]}, "settings": {"train.max_steps": 7, "model.d_ff": 24}},
        {"select": {"train.clip": [0.5, 1.0]}, "tasks": ["lm-grammar", "vit-digits"]},
    ],
    ids=str,
)
def test_the_commands_of_a_report_plan_its_runs(changes: dict[str, Any]) -> None:
    records = results(**changes)
    assert planned_by(records) == (keys(records, "select"), keys(records, "test"))


def test_a_command_names_the_regime_and_the_grid() -> None:
    said = command(build_tables(tuned(regime="FLOPs"))[0])
    assert said.endswith("--seeds 2 --regime FLOPs --select train.learning_rate=0.0001,0.001,0.01,0.1")
    usual = command(build_tables(results())[0])
    assert "--regime" not in usual
    assert "--select" not in usual


def test_the_command_of_an_older_budget_sets_what_has_changed_since() -> None:
    records = [record for record in read_records(RESULTS / "untuned") if record.config.task == "text-sst2"]
    (table,) = build_tables(records)
    assert table.settings == {}  # under its own protocol it was the budget
    assert planned_by(records)[1] == keys(records, "test")


def uneven(regime: str, value: int, encoding: str = "rope") -> list[Record]:
    """Records whose add has 10,000 of what the regime makes equal, and another encoding something else."""
    found = []
    for name in ("add", encoding):
        config = replace(configure("vit-digits", name, tier="smoke"), regime=regime)
        cost = 10_000 if name == "add" else value
        found.append(record(config, 0.5, parameters={"encoding": 0, "total": cost}, flops_per_sample=cost))
    return found


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("regime", ["parameters", "FLOPs"])
@pytest.mark.parametrize("value", [10_101, 9_899, 1])
def test_rows_that_break_their_regime_are_refused(form: str, regime: str, value: int) -> None:
    with pytest.raises(UserError) as caught:
        FORMATS[form](uneven(regime, value))
    message = str(caught.value)
    assert f"rows on vit-digits break their regime: rope has {value:,} {regime}, not 10,000 within 1%" in message
    assert "--allow-unmatched" in message


@pytest.mark.parametrize(("full", "holds"), [(10_000, True), (10_101, False)])
def test_texts_are_matched_at_full_length_though_most_are_shorter(full: int, holds: bool) -> None:
    records = [replace(r, matched_flops=f) for r, f in zip(uneven("FLOPs", 9_000), (10_000, full), strict=True)]
    if holds:
        assert "Not matched" not in report.markdown(Page.of(records))
        return
    with pytest.raises(UserError, match="rope has 10,101 FLOPs, not 10,000"):
        Page.of(records)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("regime", "value"), [("parameters", 10_100), ("FLOPs", 9_900), ("width", 20_000)])
def test_rows_that_keep_to_their_regime_are_not(form: str, regime: str, value: int) -> None:
    assert "Not matched" not in FORMATS[form](uneven(regime, value))


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_rows_that_break_their_regime_can_be_shown_with_a_mark(form: str) -> None:
    warning = "Not matched: rope has 12,000 parameters, not 10,000 within 1%."
    text = FORMATS[form](uneven("parameters", 12_000), allow_unmatched=True)
    assert (f"- **{warning}**\n" if form == "markdown" else warning) in text


def test_every_row_that_breaks_its_regime_is_named() -> None:
    records = [*uneven("FLOPs", 12_000), *uneven("FLOPs", 8_000, "none")[1:], *uneven("FLOPs", 10_050, "learned")[1:]]
    with pytest.raises(UserError) as caught:
        build_tables(records)
    assert "none has 8,000 FLOPs" in str(caught.value)
    assert "rope has 12,000 FLOPs" in str(caught.value)
    assert "learned" not in str(caught.value)


def test_a_row_without_a_finished_run_breaks_nothing() -> None:
    add, rope = uneven("parameters", 12_000)
    failed = record(rope.config, None, parameters={"total": 12_000})
    assert build_tables([add, failed])[0].unmatched == []


def test_the_terminal_marks_what_a_page_refuses() -> None:
    console = Console(width=160, file=io.StringIO(), color_system=None)
    terminal(uneven("FLOPs", 12_000), console)
    text = console.file.getvalue()
    assert "Not matched: rope has 12,000 FLOPs, not 10,000 within 1%." in text
    assert "matched by FLOPs" in text


def test_the_terminal_tells_the_rate_that_no_row_was_tuned_to() -> None:
    said = "Learning rate: 0.003 in every row, not tuned."
    for records, told in ((uneven("FLOPs", 12_000), True), (tuned(), False)):
        console = Console(width=160, file=io.StringIO(), color_system=None)
        terminal(records, console)
        assert (said in console.file.getvalue()) == told


def test_the_command_line_refuses_and_marks_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_jsonl(uneven("parameters", 12_000), tmp_path / "all.jsonl")
    assert main(["report", str(tmp_path)]) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert refused.err.startswith("pebench: error: rows on vit-digits break their regime: rope has 12,000 parameters")
    assert main(["report", str(tmp_path), "--allow-unmatched"]) == 0
    assert "**Not matched: rope has 12,000 parameters" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [
        {"regime": "parameters", "encodings": ["add", "learned"], "settings": {"model.d_ff": 100}},
        {"regime": "parameters", "encodings": ["add", ("concat", {"ratio": 0.5})]},
        {
            "reference": "learned",
            "encodings": ["learned", ("concat", {"table": "learned"}), ("learned", {"frozen": True})],
        },
        {"select": {RATE: [1e-3, 1e-2]}, "selection_seeds": 2},
    ],
    ids=["d_ff set", "shared option", "reference", "selection seeds"],
)
def test_the_commands_of_any_report_plan_its_runs(changes: dict[str, Any]) -> None:
    records = results(**changes)
    assert planned_by(records) == (keys(records, "select"), keys(records, "test"))


def test_the_default_width_can_be_among_the_values_to_select_from() -> None:
    records = results(lambda c: float(c.model.d_ff or 0), select={"model.d_ff": [None, 24]})
    assert planned_by(records) == (keys(records, "select"), keys(records, "test"))


def test_rows_are_held_against_the_reference_wherever_it_stands() -> None:
    (table,) = build_tables(uneven("parameters", 12_000), allow_unmatched=True, reference="rope")
    assert table.unmatched == ["add has 10,000 parameters, not 12,000 within 1%"]
