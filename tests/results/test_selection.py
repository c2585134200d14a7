"""Tables of runs whose settings were selected: what is shown of the selection, and what is left out."""

import csv
import io
import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest

from pebench.config import SELECTION_SEED, RunConfig
from pebench.config.overrides import override
from pebench.errors import UserError
from pebench.results.page import Page
from pebench.results.tables import build_tables
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from tests.results.selection_records import (
    BEST,
    DECAY,
    FORMATS,
    RATE,
    loss,
    main_grid,
    markdown,
    no_selecting,
    overview,
    results,
    sweep,
    to_csv,
    to_json,
    tuned,
)


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
    "changes", [{"regime": "parameters"}, {"select": {RATE: [3e-3, 1e-2]}}], ids=["regime", "select"]
)
def test_an_overview_never_mixes_regimes_or_selections(changes: dict[str, Any]) -> None:
    tasks = {"tasks": ["lm-grammar", "vit-digits"]}
    usual = results(**tasks)
    other = [replace(r, metrics=dict.fromkeys(r.metrics, 0.99)) for r in results(**(tasks | changes))]
    tables = overview([*usual, *other]).split("\n\n")
    alone = overview(usual).split("\n\n")[0]
    assert alone in tables
    assert "99.0" not in alone
    page = markdown([*usual, *other])
    assert page.count("\n## Overview (") == 2


def test_an_overview_of_one_task_is_its_tables() -> None:
    assert "| `add`      |" in overview(results())
    assert "| `rope`     |" in overview(results())


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
    assert f"Left out: 2 runs of add with {RATE}=0.1, a choice that further selecting runs have changed." in text
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
    assert "Equal scores, of which the lowest value was taken: rope." in markdown(records)
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
    told = "so another seed might have chosen another value: rope." in markdown(records)
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


def test_values_that_only_some_rows_were_tried_at_are_told() -> None:
    records = tuned()
    assert "Tried besides" not in markdown(records)
    further = [
        replace(record, config=override(record.config, {RATE: value}), metrics={"val/loss": 99.0})
        for record in records
        for value in (0.05, 0.3)
        if record.config.stage == "select" and record.config.encoding == "rope"
    ]
    assert " Tried besides at 0.05, 0.3: rope." in markdown([*records, *further])
