"""Tables of runs whose settings were selected or whose cost was matched: what is shown, kept apart and refused."""

import csv
import functools
import io
import json
import random
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pebench.cli import main
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.config import SELECTION_SEED, RunConfig
from pebench.config.overrides import override
from pebench.errors import UserError
from pebench.results.page import Page
from pebench.results.provenance import command
from pebench.results.tables import build_tables
from pebench.results.writers import markdown as report
from pebench.results.writers.csv import to_csv as write_csv
from pebench.results.writers.json import to_json as write_json
from pebench.results.writers.terminal import terminal
from pebench.runs.costs import Cost, cost
from pebench.runs.plan import Plan
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.runs.suite import Suite
from pebench.tasks import TASKS, configure

RESULTS = Path(__file__).parents[2] / "results"
RATE, DECAY = "train.learning_rate", "train.weight_decay"
BEST = {"add": 1e-3, "concat": 1e-2, "learned": 1e-3, "none": 1e-2, "rope": 1e-2}
FORMATS: dict[str, Callable[..., str]] = {
    name: lambda records, allow_unmatched=False, write=write: write(Page.of(records, allow_unmatched=allow_unmatched))
    for name, write in (
        ("markdown", report.markdown), ("csv", write_csv), ("json", write_json), ("overview", report.overview),
    )
}  # fmt: skip
markdown, to_csv, to_json, overview = FORMATS.values()
_costs: dict[str, Cost] = {}


def loss(config: RunConfig) -> float | None:
    """A validation loss, lowest for the encoding's best learning rate and the usual decay."""
    best = abs(config.train.learning_rate - BEST[config.encoding]) + abs(config.train.weight_decay - 0.05)
    return round(0.5 + best, 6)


def record(config: RunConfig, value: float | None, **changes: Any) -> Record:
    """A run that finished with this test metric (or validation loss, if it selects), or failed if it is None."""
    if value is None:
        return Record(config, status="failed", error={"kind": "diverged", "reason": "loss is nan", "log": ""})
    if config.kind_key not in _costs:
        _costs[config.kind_key] = cost(config)
    found = _costs[config.kind_key]
    metric = TASKS[config.task].metric
    metrics = {f"test/{metric}": value, "val/loss": 1.0}
    if config.stage == "select":
        metrics = {"val/loss": value, f"test/{metric}": 9.0}  # which no selecting run has, and none may be read from
    usual = {
        "metrics": metrics, "parameters": {"encoding": found.encoding, "total": found.parameters},
        "flops_per_sample": found.flops, "duration_s": 1000.0 if config.stage == "select" else 1.0,
    }  # fmt: skip
    return Record(config, **(usual | changes))


def results(score: Callable[[RunConfig], float | None] = loss, **changes: Any) -> list[Record]:
    """Records of all runs of a small suite."""
    usual = {"tasks": ["vit-digits"], "encodings": ["add", "rope"], "seeds": 2, "tier": "smoke"}
    suite = Suite("mine", "Why?", **(usual | changes))
    plan = Plan(suite, suite.kinds())
    selecting = {config.key: record(config, score(config)) for config in plan.selecting()}
    values = {"add": 0.5, "concat": 0.625, "learned": 0.125, "none": 0.25, "rope": 0.75}
    tested = [record(c, values[c.encoding] + c.seed / 16) for c in plan.testing(selecting)]
    return [*selecting.values(), *tested]


tuned = functools.partial(results, select={RATE: [1e-4, 1e-3, 1e-2, 1e-1]})


def no_selecting(records: list[Record]) -> list[Record]:
    return [record for record in records if record.config.stage == "test"]


def grid(text: str, mark: str) -> dict[str, dict[str, str]]:
    """The first Markdown table after a text: row to column to cell."""
    lines = text[text.index(mark) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    head, _, *body = rows
    return {cells[0]: dict(zip(head[1:], cells[1:], strict=True)) for cells in body}


def main_grid(text: str) -> dict[str, dict[str, str]]:
    return grid(text, "\n## vit-digits")


def sweep(text: str) -> dict[str, dict[str, str]]:
    return grid(text, "Selected on validation data")


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


def keys(records: list[Record], stage: str) -> set[str]:
    return {record.config.key for record in records if record.config.stage == stage}


# Selecting runs are no results


@pytest.mark.parametrize("form", ["markdown", "csv", "overview"])
def test_no_number_of_a_selecting_run_is_in_a_row(form: str) -> None:
    records = tuned(tasks=["lm-grammar", "vit-digits"])
    absurd = {
        "parameters": {"total": 1}, "flops_per_sample": 1, "throughput": 1e9, "peak_memory_gib": 1e9,
        "dataset": {"fingerprint": "f"}, "environment": {"threads": 9},
    }  # fmt: skip
    changed = [
        replace(r, metrics={"val/loss": r.metrics["val/loss"]}, **absurd) if r.config.stage == "select" else r
        for r in records
    ]
    before, after = (FORMATS[form](found).partition("## Provenance")[0] for found in (records, changed))
    assert before == after != ""


def test_a_row_has_the_tested_seeds_alone() -> None:
    (table,) = json.loads(to_json(tuned()))["tables"]
    assert {row["encoding"]: row["values"] for row in table["rows"]} == {
        "add": {"0": 0.5, "1": 0.5625}, "rope": {"0": 0.75, "1": 0.8125},
    }  # fmt: skip
    assert [(row["n"], row["missing"], row["failed"]) for row in table["rows"]] == [(2, [], {})] * 2
    assert [row["mean"] for row in table["rows"]] == [0.53125, 0.78125]
    assert table["wall_time_s"] == 8004.0  # the selecting runs took time too
    assert str(SELECTION_SEED) not in table["command"]


def test_a_selecting_run_that_failed_is_absent_but_not_one_that_diverged() -> None:
    lost = {"kind": "out of memory", "reason": "out of memory", "log": ""}
    records = tuned(lambda config: None if config.train.learning_rate == 0.1 else loss(config))
    assert Page.of(records).absent == []
    changed = [replace(r, error=lost) if not r.ok and r.config.encoding == "rope" else r for r in records]
    (absence,) = Page.of(changed).absent
    assert (absence.label, absence.values) == ("rope", "train.learning_rate=0.1")
    assert absence.reason == "out of memory"
    assert "Failed: rope (train.learning_rate=0.1, selecting) seed 1000000: `out of memory`" in markdown(changed)
    assert json.loads(to_json(changed))["absent"][0]["reason"] == "out of memory"


def test_a_csv_has_a_line_for_every_tested_row() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(tuned()))))
    assert [(row["encoding"], row["n"], json.loads(row["own_settings"])) for row in rows] == [
        ("add", "2", {RATE: 1e-3}), ("rope", "2", {RATE: 1e-2}),
    ]  # fmt: skip


# The sweep is on the page


def test_the_sweep_is_printed_with_the_chosen_values_in_bold() -> None:
    assert sweep(markdown(tuned())) == {
        "add": {"0.0001": "0.5009", "0.001": "**0.5000**", "0.01": "0.5090", "0.1": "0.5990"},
        "rope": {"0.0001": "0.5099", "0.001": "0.5090", "0.01": "**0.5000**", "0.1": "0.5900"},
    }


def test_the_page_says_what_was_selected_and_how() -> None:
    text = markdown(tuned(selection_seeds=2))
    assert f"at equal budget, over 2 seeds that are not tested: {RATE}, by the lowest val/loss." in text
    assert "over 1 seed that is not tested: " in markdown(tuned())
    assert "Selected on" not in markdown(results())


def test_a_score_is_the_mean_over_the_selection_seeds() -> None:
    records = results(
        lambda c: {1e-3: 0.25, 1e-2: 0.5}[c.train.learning_rate] + (c.seed - SELECTION_SEED),
        select={RATE: [1e-3, 1e-2]}, selection_seeds=3,
    )  # fmt: skip
    assert sweep(markdown(records))["add"] == {"0.001": "**1.2500**", "0.01": "1.5000"}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_failed_trial_is_shown_and_not_chosen(seed: int) -> None:
    def score(config: RunConfig) -> float | None:
        bad = (config.encoding, config.train.learning_rate, config.seed) == ("add", 1e-3, SELECTION_SEED + seed)
        return None if bad else loss(config)

    text = markdown(tuned(score, selection_seeds=2))
    assert sweep(text)["add"] == {"0.0001": "**0.5009**", "0.001": "failed", "0.01": "0.5090", "0.1": "0.5990"}
    assert main_grid(text)["add"]["learning_rate"] == "0.0001"


def test_an_encoding_of_which_nothing_finished_is_in_the_sweep_alone() -> None:
    text = markdown(tuned(lambda c: None if c.encoding == "rope" else loss(c)))
    assert set(sweep(text)["rope"].values()) == {"failed"}
    assert list(main_grid(text)) == ["add"]


def test_two_settings_are_swept_together() -> None:
    records = results(select={RATE: [1e-3, 1e-2], DECAY: [0.05, 0.25]})
    text = markdown(records)
    assert sweep(text)["add"] == {
        "0.001, 0.05": "**0.5000**", "0.001, 0.25": "0.7000", "0.01, 0.05": "0.5090", "0.01, 0.25": "0.7090",
    }  # fmt: skip
    assert f"not tested: {RATE}, {DECAY}, by" in text
    cells = main_grid(text)["rope"]
    assert (cells["learning_rate"], cells["weight_decay"]) == ("0.01", "0.05")


def test_every_trial_is_exported() -> None:
    (table,) = json.loads(to_json(tuned(lambda c: None if c.train.learning_rate == 0.1 else loss(c))))["tables"]
    assert [(t["encoding"], t["settings"][RATE], t["score"]) for t in table["trials"]] == [
        ("add", 1e-4, 0.5009), ("add", 1e-3, 0.5), ("add", 1e-2, 0.509), ("add", 1e-1, None),
        ("rope", 1e-4, 0.5099), ("rope", 1e-3, 0.509), ("rope", 1e-2, 0.5), ("rope", 1e-1, None),
    ]  # fmt: skip
    assert table["trials"][0]["metrics"][str(SELECTION_SEED)]["val/loss"] == 0.5009


@pytest.mark.parametrize(
    ("rates", "at_the_edge"),
    [
        ([1e-4, 1e-3, 1e-2, 1e-1], ""),
        ([1e-3, 1e-2, 1e-1], "add"),
        ([1e-4, 1e-3, 1e-2], "rope"),
        ([1e-2, 1e-3], "add, rope"),
        ([1e-3], ""),  # nothing was swept
    ],
)
def test_a_choice_at_the_edge_of_its_grid_is_told(rates: list[float], at_the_edge: str) -> None:
    text = markdown(results(select={RATE: rates}))
    expected = f"**The best {RATE} is at the edge of its grid for {at_the_edge}.**"
    assert (expected in text) == bool(at_the_edge)
    assert ("edge" in text) == bool(at_the_edge)


def test_the_edge_is_that_of_what_a_row_has_tried_whatever_others_have() -> None:
    narrow = [r for r in results(select={RATE: [1e-4, 1e-3]}) if r.config.encoding == "add"]
    wide = [r for r in results(select={RATE: [1e-4, 1e-3, 1e-2, 1e-1]}) if r.config.encoding == "rope"]
    assert f"**The best {RATE} is at the edge of its grid for add.**" in markdown([*narrow, *wide])


def test_selected_settings_without_their_sweep_are_told() -> None:
    text = markdown(no_selecting(tuned()))
    assert "**The runs that selected settings are not among these records.**" in text
    assert "Selected on" not in text
    assert "not among these" not in markdown(tuned())


# What shares a table


def test_rows_with_different_selected_values_share_a_table_that_shows_them() -> None:
    records = tuned()
    (table,) = build_tables(records)
    assert {row.label: row.config.train.learning_rate for row in table.rows} == {"add": 1e-3, "rope": 1e-2}
    assert table.settings == {}  # no setting of the table: it is the rows'
    cells = main_grid(markdown(records))
    assert {name: row["learning_rate"] for name, row in cells.items()} == {"add": "0.001", "rope": "0.01"}
    assert cells["rope"]["Δ to add (points)"] == "+25.00 ± 0.00"


def test_the_sweep_of_every_table_is_its_own() -> None:
    usual, longer = tuned(), tuned(lambda c: 2 * (loss(c) or 0), settings={"train.max_steps": 7})
    tables = json.loads(to_json([*usual, *longer]))["tables"]
    best = {table["train"]["max_steps"]: min(trial["score"] for trial in table["trials"]) for table in tables}
    assert best == {2: 0.5, 7: 1.0}
    assert [len(table["trials"]) for table in tables] == [8, 8]


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


@pytest.mark.parametrize("regime", ["parameters", "FLOPs"])
def test_a_matched_table_says_so_and_shows_its_widths(regime: str) -> None:
    records = results(encodings=["add", "learned"], tier="quick", regime=regime)
    text = markdown(records)
    assert f"## vit-digits (tier quick, matched by {regime}, protocol " in text
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


# Commands


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
    records = [record for record in read_records(RESULTS / "untuned.jsonl") if record.config.task == "text-sst2"]
    (table,) = build_tables(records)
    assert table.settings == {}  # under its own protocol it was the budget
    assert planned_by(records)[1] == keys(records, "test")


# Rows that break their regime


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


# Bytes


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_records_does_not_change_a_byte(form: str, seed: int) -> None:
    records = [
        *tuned(lambda c: None if c.train.learning_rate == 0.1 else loss(c), selection_seeds=2),
        *tuned(regime="parameters", tasks=["lm-grammar"]), *results(),
        *results(regime="FLOPs", encodings=["add", ("concat", {"d_p": 8}), "concat"], tier="quick"),
    ]  # fmt: skip
    shuffled = random.Random(seed).sample(records, len(records))
    assert FORMATS[form](shuffled) == FORMATS[form](records)


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


@pytest.mark.parametrize(
    "changes", [{"regime": "parameters"}, {"select": {RATE: [3e-3, 1e-2]}}], ids=["regime", "select"]
)
def test_an_overview_never_mixes_regimes_or_selections(changes: dict[str, Any]) -> None:
    tasks = {"tasks": ["lm-grammar", "vit-digits"]}
    usual = results(**tasks)
    other = [replace(r, metrics=dict.fromkeys(r.metrics, 0.99)) for r in results(**(tasks | changes))]
    tables = overview(usual).partition("What to cite")[0]
    assert tables in markdown([*usual, *other])


def test_an_overview_of_one_task_is_its_tables() -> None:
    assert "| add        |" in overview(results())
    assert "| rope       |" in overview(results())


def test_a_value_that_lacks_a_seed_has_no_score() -> None:
    records = tuned(selection_seeds=2, encodings=["add"])
    lost = next(r for r in records if r.config.stage == "select" and r.config.train.learning_rate == 1e-4)
    (table,) = json.loads(to_json([r for r in records if r is not lost]))["tables"]
    assert [trial["score"] is None for trial in table["trials"]] == [True, False, False, False]


def test_two_records_of_one_selecting_run_are_refused_unless_equal() -> None:
    records = tuned()
    assert markdown([*records, records[0]]) == markdown(records)
    with pytest.raises(UserError, match="two different records"):
        markdown([*records, replace(records[0], metrics={"val/loss": 0.125})])


def test_runs_with_values_that_are_no_longer_chosen_are_left_out_and_told() -> None:
    today = tuned(encodings=["add"])
    changed = [
        replace(r, config=override(r.config, {RATE: 1e-1}), metrics=dict.fromkeys(r.metrics, 0.125))
        for r in no_selecting(today)
    ]
    (table,) = build_tables([*changed, *today])
    assert {r.config.train.learning_rate for r in table.records} == {BEST["add"]}
    assert table.superseded == tuple(changed)
    assert len(table.every) == len(changed) + len(today)
    text = markdown([*changed, *today])
    assert f"Left out: 2 runs of add with {RATE}=0.1, chosen when fewer runs had selected, and no longer." in text
    assert main_grid(text) == main_grid(markdown(today))
    assert f"None: every run finished ({len(changed) + len(today)})." in text
    with pytest.raises(UserError, match="the selecting runs here do not tell which of them was chosen"):
        build_tables([*changed, *no_selecting(today)])


def test_a_row_whose_value_is_no_longer_chosen_is_told_and_refused_as_complete() -> None:
    """Between a new selection and its tests."""
    today = tuned()
    stale = [
        replace(r, config=override(r.config, {RATE: 1e-1})) if r.config.encoding == "add" else r
        for r in no_selecting(today)
    ]
    records = [*stale, *(r for r in today if r.config.stage == "select")]
    text = markdown(records)
    assert f"add was tested with {RATE}=0.1; by now the runs that select choose {RATE}=0.001." in text
    assert "by now the runs" not in markdown(today)
    assert "another seed might have chosen" not in text
    assert f"Missing: add with {RATE}=0.001 seeds 0, 1" in text
    with pytest.raises(UserError, match=re.escape(f"add with {RATE}=0.001 seeds 0, 1")):
        Page.of(records).check_complete()
    suite = Suite(
        "m", "?", ["vit-digits"], ["rope"], seeds=[0, 2], tier="smoke", reference="rope", select={RATE: [1e-4, 1e-3]}
    )
    absent = [(absence.label, absence.seed) for absence in Page.of(records, suite).absent]
    assert absent == [("add with train.learning_rate=0.001", 0), ("add with train.learning_rate=0.001", 1), ("rope", 2)]
    killed = {"status": "failed", "error": {"kind": "killed", "reason": "killed", "log": ""}}
    lost = [replace(r, **killed) if r.config.train.learning_rate == 1e-4 else r for r in records]
    assert "by now the runs" not in markdown(lost)  # it might have been the best


def test_a_new_seed_of_one_row_takes_no_score_from_the_others() -> None:
    records = tuned()
    extra = next(r for r in records if r.config.stage == "select" and r.config.encoding == "rope")
    more = [*records, replace(extra, config=extra.config.with_seed(extra.config.seed + 1))]
    assert sweep(markdown(more))["add"] == sweep(markdown(records))["add"]
    assert "incomplete" in sweep(markdown(more))["rope"].values()


def test_columns_of_what_was_tried_are_in_order_whatever_the_first_row_lacks() -> None:
    lost = [r for r in tuned() if (r.config.encoding, r.config.train.learning_rate) != ("add", 1e-4)]
    assert [*sweep(markdown(lost))["add"]] == ["0.0001", "0.001", "0.01", "0.1"]


def test_a_page_without_absences_tells_of_selecting_runs_that_diverged() -> None:
    records = tuned(lambda c: None if c.train.learning_rate == 1e-1 else loss(c))
    finished = sum(r.ok for r in records)
    assert f"None: every run finished, but for 2 runs that selected and diverged ({finished})." in markdown(records)


def test_a_failed_run_that_is_left_out_did_not_select() -> None:
    today = tuned(encodings=["add"])
    older = replace(no_selecting(today)[0], status="failed", error={"kind": "killed", "reason": "no memory", "log": ""})
    left_out = replace(older, config=override(older.config, {RATE: 1e-1}))
    assert f"None: every run finished ({len(today)})." in markdown([left_out, *today])


def test_equal_scores_are_told() -> None:
    def level(config: RunConfig) -> float | None:
        return 0.5 if config.encoding == "rope" else loss(config)

    records = results(level, select={RATE: [1e-3, 1e-2]})
    assert "Equal scores, of which that of the lowest value counts: rope." in markdown(records)
    assert "Equal scores" not in markdown(results(select={RATE: [1e-3, 1e-2]}))


@pytest.mark.parametrize("apart", [0.016, 0.012, 0.0])
def test_a_choice_by_less_than_seeds_differ_by_is_told(apart: float) -> None:
    """The other rate is 0.009 behind; the standard deviation over two seeds is their distance by the root of two."""
    records = [
        replace(r, metrics=r.metrics | {"val/loss": 1.0 + apart * r.config.seed * (r.config.encoding == "rope")})
        if r.config.stage == "test"
        else r
        for r in results(select={RATE: [1e-3, 1e-2]})
    ]
    told = "so that another seed might have chosen otherwise: rope." in markdown(records)
    assert told == (apart / 2**0.5 > 0.009)
    assert "chosen otherwise" not in markdown([r for r in records if r.config.seed != 1])


def test_devices_of_tested_runs_are_told_where_selecting_runs_had_others() -> None:
    records = results(select={RATE: [1e-3, 1e-2]})

    def on(stage: str) -> dict[str, str]:
        return {"device": "cpu: A" if stage == "select" else "cpu: B"}

    told = markdown([replace(r, environment=on(r.config.stage)) for r in records])
    assert "- Device: cpu: A / cpu: B (those tested: cpu: B), threads" in told
    assert "those tested" not in markdown([replace(r, environment={"device": "cpu: A"}) for r in records])


def test_code_of_selecting_runs_is_held_against_that_of_the_same_row() -> None:
    """Not of the table: two rows, each selected with the code that the other was tested with."""

    def code(config: RunConfig) -> dict[str, str]:
        return {"commit": "one" if (config.encoding == "add") == (config.stage == "test") else "two"}

    told = markdown([replace(r, environment=code(r.config)) for r in results(select={RATE: [1e-3, 1e-2]})])
    assert "were not all made with the code of those that are tested" in told


def test_the_usual_width_of_feed_forward_layers_is_that_of_the_row() -> None:
    select = {"model.d_ff": [None, 24], "model.d_model": [32, 64]}
    best = {"add": (32, 24), "rope": (64, None)}
    records = results(lambda c: 0.0 if (c.model.d_model, c.model.d_ff) == best[c.encoding] else 1.0, select=select)
    shown = main_grid(markdown(records))
    assert [(shown[name]["d_model"], shown[name]["d_ff"]) for name in best] == [("32", "24"), ("64", "256")]


def test_of_several_values_the_one_with_the_highest_metric_is_todays_where_that_selects() -> None:
    def by_accuracy(r: Record) -> Record:
        found = {"val/accuracy": 1 - r.metrics["val/loss"], "val/loss": 1.0}
        return replace(r, config=override(r.config, {"train.monitor": "metric"}), metrics=r.metrics | found)

    today = list(map(by_accuracy, tuned(encodings=["add"])))
    changed = [replace(r, config=override(r.config, {RATE: 1e-1})) for r in no_selecting(today)]
    (table,) = build_tables([*changed, *today])
    assert {r.config.train.learning_rate for r in table.records} == {BEST["add"]}
    assert table.superseded == tuple(changed)


def test_rows_are_held_against_the_reference_wherever_it_stands() -> None:
    (table,) = build_tables(uneven("parameters", 12_000), allow_unmatched=True, reference="rope")
    assert table.unmatched == ["add has 10,000 parameters, not 12,000 within 1%"]
