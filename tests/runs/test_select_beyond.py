"""Grids that go on beyond their ends: for a row whose best value is there, as far as the suite says, and no further."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pebench
from pebench.config import SELECTION_SEED, RunConfig
from pebench.engine.preview import preview_suite
from pebench.errors import UserError
from pebench.results.page import Page
from pebench.runs.plan import Plan
from pebench.runs.records import Record, read_records
from pebench.runs.suite import Suite
from pebench.runs.suite.values import further_values
from tests.runs.plans import DECAY, RATE, asked, keys, plan_of, record

RATES = [2e-3, 4e-3, 8e-3]


def rate(config: RunConfig) -> float:
    return config.train.learning_rate


def around(best: float) -> Callable[[RunConfig], float]:
    """A validation loss that is lowest at a rate."""
    return lambda config: abs(math.log(rate(config) / best))


def made(plan: Plan, score: Callable[[RunConfig], float | None]) -> dict[str, Record]:
    """Records of all that a plan asks for, round by round."""
    records: dict[str, Record] = {}
    for runs in plan.rounds(records):
        records |= {config.key: record(config, score(config)) for config in runs}
    return records


def tried(records: dict[str, Record]) -> list[float]:
    return sorted({rate(record.config) for record in records.values()})


@pytest.mark.parametrize(
    ("best", "values", "chosen"),
    [
        (4e-3, RATES, 4e-3),
        (8e-3, [*RATES, 1.6e-2], 8e-3),
        (1.6e-2, [*RATES, 1.6e-2, 3.2e-2], 1.6e-2),
        (1.0, [*RATES, 1.6e-2, 3.2e-2], 3.2e-2),  # two beyond, and there it ends
        (2e-3, [1e-3, *RATES], 2e-3),
        (1e-9, [5e-4, 1e-3, *RATES], 5e-4),
    ],
)
def test_a_grid_goes_on_where_the_best_is_at_its_end(best: float, values: list[float], chosen: float) -> None:
    plan = plan_of(encodings=["add"], select={RATE: RATES}, selection_seeds=2, select_beyond=2)
    records = made(plan, around(best))
    assert tried(records) == values
    assert len(records) == 2 * len(values)  # with all the seeds
    assert {rate(config) for config in plan.testing(records)} == {chosen}
    assert keys(plan.selecting(records)) == keys(sorted(plan.selecting(records), key=lambda config: config.seed))


def test_only_the_row_that_asks_for_it_has_more() -> None:
    plan = plan_of(select={RATE: RATES}, select_beyond=1)
    records = made(plan, lambda c: around(8e-3 if c.encoding == "rope" else 4e-3)(c))
    assert [(r.config.encoding, rate(r.config)) for r in records.values()][6:] == [("rope", 1.6e-2)]


def test_without_it_a_grid_ends_where_it_is_declared_to() -> None:
    plan = plan_of(select={RATE: RATES})
    assert tried(made(plan, around(1.0))) == RATES


def test_a_grid_does_not_go_on_while_a_value_might_still_be_the_best() -> None:
    plan = plan_of(encodings=["add"], select={RATE: RATES}, select_beyond=1)
    base = plan.selecting()
    for lost in base:
        records = {config.key: record(config, around(1.0)(config)) for config in base if config is not lost}
        assert keys(plan.selecting(records)) == keys(base)
        assert plan.undecided(records) == 2
        records[lost.key] = Record(lost, status="failed", error={"kind": "killed", "reason": "?", "log": ""})
        assert keys(plan.selecting(records)) == keys(base)
    records = {config.key: record(config, around(1.0)(config)) for config in base}
    assert len(plan.selecting(records)) == 4
    assert plan.undecided(records) == 2  # nothing is chosen before the further value has run
    assert plan.testing(records) == []


def test_values_that_diverge_are_an_end_of_their_own() -> None:
    plan = plan_of(encodings=["add"], select={RATE: RATES}, select_beyond=2)
    grows = made(plan, lambda c: None if rate(c) > 3e-3 else around(1e-3)(c))
    assert tried(grows) == [5e-4, 1e-3, *RATES]
    beyond_diverges = made(plan, lambda c: None if rate(c) > 9e-3 else around(1.0)(c))
    assert tried(beyond_diverges) == [*RATES, 1.6e-2]
    assert {rate(config) for config in plan.testing(beyond_diverges)} == {8e-3}
    nothing = made(plan, lambda c: None)
    assert tried(nothing) == RATES


def test_steps_are_those_of_the_end_and_whole_numbers_stay_whole() -> None:
    assert further_values([2.8e-3, 4e-3, 5.6e-3], 2) == ([1.96e-3, 1.37e-3], [7.84e-3, 1.1e-2])
    assert further_values([1e-2, 1e-3, 1e-1], 1) == ([1e-4], [1.0])
    assert further_values(["2e-3", "4e-3"], 1) == ([1e-3], [8e-3])  # of a command line
    assert further_values([16, 32], 2) == ([8, 4], [64, 128])
    assert [type(value) for value in further_values([16, 32], 1)[0]] == [int]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"select_beyond": -1}, "select_beyond must be at least 0, got -1"),
        ({"select": {}}, "goes with one setting to select, got 0"),
        ({"select": {RATE: RATES, DECAY: [0.1, 0.2]}}, f"goes with one setting to select, got 2: {RATE}, {DECAY}"),
        ({"select": {RATE: [1e-3]}}, f"two positive numbers or more to go on from, got {RATE}"),
        ({"select": {DECAY: [0.0, 0.1]}}, f"two positive numbers or more to go on from, got {DECAY}"),
        ({"select": {RATE: [[1e-3], [1e-2]]}}, "two positive numbers or more"),
        ({"select": {"train.precision": ["32-true", "64-true"]}}, "two positive numbers or more"),
        ({"select": {"model.dropout": [0.3, 0.6]}}, r"dropout must be .* got 1\.2"),
    ],
    ids=str,
)
def test_what_cannot_go_on_is_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(**({"select": {RATE: RATES}, "select_beyond": 1} | changes))


def test_the_command_line_asks_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    plan = asked("--pe", "add", "--select", f"{RATE}=2e-3,4e-3", "--select-beyond", "1")
    assert tried(made(plan, around(1.0))) == [2e-3, 4e-3, 8e-3]
    assert pebench.cli.main(["run", "--task", "vit-digits", "--select-beyond", "1"]) == 2
    assert "it goes with that" in capsys.readouterr().err
    words = ["run", "--task", "vit-digits", "--tier", "smoke", "--select", f"{RATE}=2e-3,4e-3", "--select-beyond", "3"]
    assert pebench.cli.main([*words, "--dry-run", "--out", "nowhere"]) == 0
    assert "and up to 3 further values for a row" in capsys.readouterr().out


def test_the_engine_makes_them_and_a_second_call_finds_them(tmp_path: Path) -> None:
    suite = Suite(
        "mine", "?", ["vit-digits"], ["add"], 1, "smoke", {"train.max_steps": 4}, select={RATE: [5e-4, 1e-3]},
        select_beyond=1,
    )  # fmt: skip
    how: dict[str, Any] = {"device": "cpu", "threads": 1, "executor": "sequential"}
    results = pebench.run_suite(suite, tmp_path, **how)
    assert results.complete
    values = tried({r.checksum: r for r in results.records})
    assert values in ([2.5e-4, 5e-4, 1e-3], [5e-4, 1e-3, 2e-3])  # either is an end, and after four steps either may win
    before = {r.checksum for r in read_records(tmp_path)}
    assert len(before) == 4
    preview = preview_suite(suite, tmp_path, **how)
    assert (len(preview.waiting), preview.later) == (0, 0)
    assert {r.checksum for r in pebench.run_suite(suite, tmp_path, **how).records} == before
    page = Page.of(results.records, suite)
    assert page.absent == []
    assert page.tables[0].grid[RATE] == values
    selecting = [r for r in results.records if r.config.stage == "select"]
    (further,) = [r for r in selecting if rate(r.config) not in (5e-4, 1e-3)]
    without = Page.of([r for r in results.records if r is not further], suite)
    (lost,) = [absence for absence in without.absent if absence.values]
    assert (lost.label, lost.seed, lost.values) == ("add", SELECTION_SEED, f"{RATE}={rate(further.config)}")
