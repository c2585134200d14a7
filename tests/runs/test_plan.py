"""Plans: what selects, what is tested, what is refused before anything trains, and what files say of a run."""

import itertools
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench.cli import main
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.config import SELECTION_SEED, RunConfig
from pebench.encodings.registry import encoding_cards
from pebench.errors import UserError
from pebench.runs.costs import check_costs, cost
from pebench.runs.leases import claim
from pebench.runs.plan import PLANS, SAMPLE, Plan, forecast, load_records, planned_runs, run_states, write_plan
from pebench.runs.records import FAILURE, FILE_NAME, Record, write_record
from pebench.runs.suite import Suite, serves
from pebench.tasks import TASKS, configure

RATE, DECAY = "train.learning_rate", "train.weight_decay"
EMBEDDED = [name for name, task in TASKS.items() if task.embedded]
NARROW: dict[str, Any] = {"model.d_model": 8, "model.num_heads": 1, "model.d_ff": 4, "data.max_len": 4096}
matched_regimes = pytest.mark.parametrize("regime", ["parameters", "FLOPs"])


def plan_of(**changes: Any) -> Plan:
    """The plan of a small suite with some of its fields replaced."""
    usual = {"tasks": ["vit-digits"], "encodings": ["add", "rope"], "seeds": 2, "tier": "smoke"}
    suite = Suite("mine", "Why?", **(usual | changes))
    return Plan(suite, suite.kinds())


def asked(*arguments: str) -> Plan:
    """The plan of a command line."""
    return requested_plan(parser().parse_args(["run", "--task", "vit-digits", "--tier", "smoke", *arguments]))


def keys(configs: Sequence[RunConfig]) -> list[str]:
    return [config.key for config in configs]


def record(config: RunConfig, loss: float | None) -> Record:
    """A run that reached this validation loss, or failed if it is None."""
    if loss is None:
        return Record(config, status="failed", error={"kind": "diverged", "reason": "loss is nan", "log": ""})
    return Record(config, metrics={"val/loss": loss})


def scored(plan: Plan, score: Callable[[RunConfig], float | None]) -> dict[str, Record]:
    """Records of a plan's selecting runs, by key."""
    return {config.key: record(config, score(config)) for config in plan.selecting()}


def first_seed(config: RunConfig) -> bool:
    return config.seed == SELECTION_SEED


# What selects


def test_a_suite_has_encodings_as_the_command_line_does() -> None:
    rows = plan_of(encodings=["add", "rope(theta=5)", "concat (d_p=4)"]).kinds
    assert [row.label for row in rows] == ["add", "rope (theta=5.0)", "concat (d_p=4)"]
    assert rows == plan_of(encodings=["add", ("rope", {"theta": 5.0}), ("concat", {"d_p": 4})]).kinds
    with pytest.raises(UserError, match="Did you mean 'theta'"):
        plan_of(encodings=["rope(theto=5)"])


def test_without_a_selection_nothing_selects() -> None:
    plan = plan_of()
    assert plan.selecting() == []
    assert [plan.chosen(kind, {}) for kind in plan.kinds] == plan.kinds
    assert [(c.encoding, c.seed, c.selected) for c in plan.testing({})] == [
        ("add", 0, ()), ("rope", 0, ()), ("add", 1, ()), ("rope", 1, ()),
    ]  # fmt: skip


def test_every_combination_of_values_selects_once_per_task_encoding_and_seed() -> None:
    tasks, names, rates, decays = ["vit-digits", "lm-grammar"], ["add", "rope"], [1e-3, 1e-2, 1e-1], [0.0, 0.1]
    plan = plan_of(tasks=tasks, encodings=names, select={RATE: rates, DECAY: decays}, selection_seeds=2)
    found = Counter((c.task, c.encoding, c.seed, c.train.learning_rate, c.train.weight_decay) for c in plan.selecting())
    seeds = [SELECTION_SEED, SELECTION_SEED + 1]
    assert found == Counter(itertools.product(tasks, names, seeds, rates, decays))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seeds", [1, 10, [7, 3]])
def test_seeds_that_select_are_not_tested(seeds: int | list[int], count: int) -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2]}, seeds=seeds, selection_seeds=count)
    selecting = {config.seed for config in plan.selecting()}
    assert selecting == set(range(SELECTION_SEED, SELECTION_SEED + count))
    assert selecting.isdisjoint(config.seed for config in plan.testing(scored(plan, lambda c: 1.0)))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_is_none_is_told_before_anything_selects(seed: int) -> None:
    with pytest.raises(UserError, match=rf"a seed must be in \[0, 2\^32\), got {seed}"):
        plan_of(select={RATE: [1e-3, 1e-2]}, seeds=[1, seed])


def test_candidates_differ_from_their_kind_in_what_is_selected_alone() -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2], DECAY: [0.0, 0.1]}, selection_seeds=2)
    for config in plan.selecting():
        (kind,) = [kind for kind in plan.kinds if kind.encoding == config.encoding]
        train = replace(
            config.train, learning_rate=kind.train.learning_rate, weight_decay=kind.train.weight_decay
        )  # the budget is equal
        assert replace(config, train=train, seed=kind.seed, selected=(), stage="test") == kind
        assert (config.stage, config.selected) == ("select", (RATE, DECAY))


def test_a_selecting_run_is_never_taken_for_a_tested_one() -> None:
    plan = plan_of(select={RATE: [1e-3]}, seeds=1)
    selecting = [config.with_seed(0) for config in plan.selecting()]
    testing = plan.testing(scored(plan, lambda c: 1.0))
    assert [replace(config, stage="test") for config in selecting] == testing
    assert set(keys(selecting)).isdisjoint(keys(testing))
    assert all("/select-seed" in config.directory for config in selecting)
    assert not any("select" in config.directory for config in testing)


def test_a_value_given_twice_selects_once() -> None:
    assert keys(plan_of(select={RATE: [0.01, "0.01", 1e-2]}).selecting()) == keys(
        plan_of(select={RATE: [0.01]}).selecting()
    )


def test_the_order_of_settings_and_values_changes_no_run() -> None:
    one = plan_of(select={RATE: [1e-3, 1e-2], DECAY: [0.0, 0.1]})
    other = plan_of(select={DECAY: [0.1, 0.0], RATE: [1e-2, 1e-3]})
    assert set(keys(one.selecting())) == set(keys(other.selecting()))


def test_more_tested_seeds_change_no_selecting_run() -> None:
    few, many = (plan_of(select={RATE: [1e-3, 1e-2]}, seeds=seeds) for seeds in (1, [0, 1, 2, 99]))
    assert keys(few.selecting()) == keys(many.selecting())
    records = scored(few, lambda c: c.train.learning_rate)
    assert set(keys(few.testing(records))) < set(keys(many.testing(records)))


def test_more_selection_seeds_keep_the_runs_of_the_first() -> None:
    one, two = (plan_of(select={RATE: [1e-3, 1e-2]}, selection_seeds=count) for count in (1, 2))
    assert two.selecting()[: len(one.selecting())] == one.selecting()


# What is chosen


def test_each_task_may_have_a_number_of_selection_seeds_of_its_own() -> None:
    plan = plan_of(tasks=["vit-digits", "text-order"], select={RATE: [1e-3, 1e-2]}, selection_seeds={"text-order": 3})
    seeds = [(c.seed - SELECTION_SEED, c.task) for c in plan.selecting()]
    assert list(dict.fromkeys(seeds)) == [(0, "vit-digits"), (0, "text-order"), (1, "text-order"), (2, "text-order")]
    records = scored(plan, lambda c: 1.0 if c.train.learning_rate == 1e-3 else float(c.seed > SELECTION_SEED) * 9)
    assert {(c.task, c.train.learning_rate) for c in plan.testing(records)} == {
        ("vit-digits", 1e-2), ("text-order", 1e-3),
    }  # fmt: skip
    assert plan.suite.part(["vit-digits"]).selection_seeds == {}


def test_the_lowest_mean_over_the_selection_seeds_is_chosen() -> None:
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2, 1e-1]}, selection_seeds=2)
    losses = {1e-3: (0.1, 0.9), 1e-2: (0.4, 0.4), 1e-1: (0.9, 0.05)}  # means 0.5, 0.4, 0.475
    chosen = plan.chosen(plan.kinds[0], scored(plan, lambda c: losses[c.train.learning_rate][not first_seed(c)]))
    assert chosen is not None
    assert chosen.train.learning_rate == 1e-2


def test_the_headline_metric_chooses_where_it_is_told_to() -> None:
    found = {1e-3: 0.7, 1e-2: 0.9, 1e-1: 0.8}
    for task, metric, best in (("vit-digits", "val/accuracy", 1e-2), ("lm-grammar", "val/bits_per_byte", 1e-3)):
        settings = {"train.monitor": "metric"}
        plan = plan_of(tasks=[task], encodings=["add"], settings=settings, select={RATE: [*found]})
        records = {
            c.key: Record(c, metrics={metric: found[c.train.learning_rate], "val/loss": -c.train.learning_rate})
            for c in plan.selecting()
        }
        assert {config.train.learning_rate for config in plan.testing(records)} == {best}
    with pytest.raises(UserError, match=r"train\.monitor cannot be selected"):
        plan_of(select={"train.monitor": ["loss", "metric"]})


def test_a_setting_may_be_one_of_a_task_alone() -> None:
    settings = {"train.max_steps": {"lm-grammar": 7}, "encoding.base": {"vit-digits": 50.0}, "train.clip": 2.0}
    suite = Suite("mine", "?", ["vit-digits", "lm-grammar"], ["add"], 1, "smoke", settings)
    for part in (suite, suite.part(["lm-grammar"])):
        found = {kind.task: (kind.train.max_steps, kind.train.clip, dict(kind.encoding_args)) for kind in part.kinds()}
        assert found["lm-grammar"] == (7, 2.0, {})
    assert {kind.task: dict(kind.encoding_args) for kind in suite.kinds()}["vit-digits"] == {"base": 50.0}
    varied = replace(suite.part(["vit-digits"]), vary={"train.max_steps": [5, 6]})  # which nothing sets there
    assert {kind.train.max_steps for kind in varied.kinds()} == {5, 6}
    with pytest.raises(UserError, match=r"unknown task to set train\.clip on 'lm-gramar'"):
        replace(suite, settings={"train.clip": {"lm-gramar": 1.0}}).kinds()


def test_every_kind_of_run_chooses_for_itself() -> None:
    plan = plan_of(tasks=["vit-digits", "lm-grammar"], select={RATE: [1e-3, 1e-2]})
    best = {("vit-digits", "add"): 1e-3, ("vit-digits", "rope"): 1e-2, ("lm-grammar", "add"): 1e-2}
    best["lm-grammar", "rope"] = 1e-3
    records = scored(plan, lambda c: float(c.train.learning_rate != best[c.task, c.encoding]))
    assert {(c.task, c.encoding): c.train.learning_rate for c in plan.testing(records)} == best


def test_what_is_chosen_is_its_kind_with_the_values_and_says_what_was_selected() -> None:
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2], DECAY: [0.0, 0.1]})
    kind = plan.kinds[0]
    chosen = plan.chosen(kind, scored(plan, lambda c: abs(c.train.learning_rate - 0.01) + c.train.weight_decay))
    train = replace(kind.train, learning_rate=0.01, weight_decay=0.0)
    assert chosen == replace(kind, train=train, selected=(RATE, DECAY), stage="test")


def test_the_chosen_row_is_not_the_row_that_has_the_value_anyway() -> None:
    usual = plan_of(encodings=["add"])
    plan = plan_of(encodings=["add"], select={RATE: [usual.kinds[0].train.learning_rate]})
    assert set(keys(plan.testing(scored(plan, lambda c: 1.0)))).isdisjoint(keys(usual.testing({})))


@pytest.mark.parametrize("rates", [[1e-3, 1e-2, 1e-1], [1e-1, 1e-2, 1e-3]])
def test_the_lowest_value_wins_a_tie_as_on_the_page(rates: list[float]) -> None:
    plan = plan_of(select={RATE: rates})
    records = scored(plan, lambda c: 1.0 if c.train.learning_rate == 1e-2 else 0.5)
    assert {config.train.learning_rate for config in plan.testing(records)} == {1e-3}


def test_equal_totals_over_seeds_are_a_tie_in_single_precision() -> None:
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2]}, selection_seeds=3)
    counts = {1e-3: [1777, 1500, 1673], 1e-2: [1605, 1655, 1690]}
    losses = {rate: [1 - torch.tensor(right / 2000).item() for right in found] for rate, found in counts.items()}
    assert sum(losses[1e-2]) < sum(losses[1e-3])
    records = scored(plan, lambda c: losses[c.train.learning_rate][c.seed - SELECTION_SEED])
    assert {config.train.learning_rate for config in plan.testing(records)} == {1e-3}


@pytest.mark.parametrize("which", [0, 1])
def test_a_value_that_diverges_with_some_seed_is_no_choice(which: int) -> None:
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2]}, selection_seeds=2)
    records = scored(plan, lambda c: c.train.learning_rate)
    (victim,) = [c for c in plan.selecting() if c.train.learning_rate == 1e-3 and c.seed == SELECTION_SEED + which]
    records[victim.key] = record(victim, None)
    assert [config.train.learning_rate for config in plan.testing(records)] == [1e-2, 1e-2]
    (other,) = [c for c in plan.selecting() if c.train.learning_rate == 1e-3 and c != victim]
    del records[other.key]  # of a value that is out
    assert [config.train.learning_rate for config in plan.testing(records)] == [1e-2, 1e-2]


@pytest.mark.parametrize("lost", ["missing", "killed", "out of memory", "exception", "time limit"])
@pytest.mark.parametrize("rate", [1e-3, 1e-2])
@pytest.mark.parametrize("which", [0, 1])
def test_nothing_is_chosen_while_a_value_might_have_been_the_best(which: int, rate: float, lost: str) -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2]}, selection_seeds=2)
    records = scored(plan, lambda c: c.train.learning_rate)
    (victim,) = [
        c for c in plan.selecting()
        if (c.encoding, c.train.learning_rate, c.seed) == ("add", rate, SELECTION_SEED + which)
    ]  # fmt: skip
    if lost == "missing":
        del records[victim.key]
    else:
        records[victim.key] = Record(victim, status="failed", error={"kind": lost, "reason": "?", "log": ""})
    assert [plan.chosen(kind, records) is None for kind in plan.kinds] == [True, False]
    assert {config.encoding for config in plan.testing(records)} == {"rope"}


def test_a_loss_that_is_no_number_is_no_choice() -> None:
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2]})
    records = scored(plan, lambda c: math.nan if c.train.learning_rate == 1e-3 else 5.0)
    assert {config.train.learning_rate for config in plan.testing(records)} == {1e-2}


def test_a_kind_of_run_without_a_choice_is_left_out() -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2]}, seeds=3)
    records = scored(plan, lambda c: None if c.encoding == "rope" else 1.0)
    assert [plan.chosen(kind, records) is None for kind in plan.kinds] == [False, True]
    assert [(config.encoding, config.seed) for config in plan.testing(records)] == [("add", 0), ("add", 1), ("add", 2)]
    assert plan.testing({}) == []


def test_records_of_other_runs_do_not_matter() -> None:
    plan, other = plan_of(select={RATE: [1e-3, 1e-2]}), plan_of(select={RATE: [1e-4]})
    records = scored(plan, lambda c: c.train.learning_rate)
    assert plan.testing(records | scored(other, lambda c: 0.0)) == plan.testing(records)


def test_what_is_tested_goes_seed_by_seed() -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2]}, seeds=[4, 2, 4])
    testing = plan.testing(scored(plan, lambda c: 1.0))
    assert [(c.seed, c.encoding) for c in testing] == [(4, "add"), (4, "rope"), (2, "add"), (2, "rope")]


@pytest.mark.parametrize("select", [{}, {RATE: [1e-3]}, {RATE: [1e-3, 1e-2], DECAY: [0, 0.1, 0.2]}])
@pytest.mark.parametrize("seeds", [1, 3, [5], [5, 6, 5]])
def test_what_comes_later_is_what_will_be_tested(seeds: int | list[int], select: dict[str, list[float]]) -> None:
    plan = plan_of(seeds=seeds, select=select, selection_seeds=2)
    every = scored(plan, lambda c: 1.0)
    assert plan.undecided({}) == (len(plan.testing(every)) if select else 0)
    assert plan.undecided(every) == 0


def test_a_row_that_diverged_with_every_value_does_not_come_later() -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2]}, seeds=3)
    records = scored(plan, lambda c: None if c.encoding == "rope" else 1.0)
    assert {c.encoding for c in plan.testing(records)} == {"add"}
    assert plan.undecided(records) == 0
    missing = {key: found for key, found in records.items() if found.config.encoding == "add"}
    assert plan.undecided(missing) == 3


# What is asked on the command line


def test_values_given_as_text_make_the_runs_that_typed_ones_do() -> None:
    typed = {RATE: [1e-3, 0.02], "model.num_layers": [1, 2], "train.precision": ["32-true", "64-true"]}
    text = ["train.learning_rate=0.001,2e-2", "model.num_layers=1,2", "train.precision=32-true,64-true"]
    one = plan_of(select=typed, seeds=3)
    other = asked("--pe", "add", "--pe", "rope", *(word for item in text for word in ("--select", item)))
    assert keys(one.selecting()) == keys(other.selecting())
    records = scored(one, lambda c: c.train.learning_rate * c.model.num_layers)
    assert keys(one.testing(records)) == keys(other.testing(records))
    values = other.candidates(other.kinds[0])[0].values_of(typed)
    assert {name: type(value) for name, value in values.items()} == {RATE: float} | {
        "model.num_layers": int, "train.precision": str,
    }  # fmt: skip


@matched_regimes
def test_a_regime_given_as_text_makes_the_runs_of_the_suite(regime: str) -> None:
    assert keys(asked("--pe", "add", "--pe", "learned", "--seeds", "2", "--regime", regime).testing({})) == keys(
        plan_of(encodings=["add", "learned"], regime=regime).testing({})
    )


def test_what_a_suite_sets_can_be_selected_but_not_set_as_well(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    text = "import pebench\nSUITE = pebench.Suite('mine', '?', ['vit-digits'], ['add'], settings={'train.clip': 2.0})\n"
    path.write_text(text)
    select = ["run", "--suite", str(path), "--select", "train.clip=0.5,9"]
    assert [c.train.clip for c in requested_plan(parser().parse_args(select)).selecting()] == [0.5, 9.0]
    with pytest.raises(UserError, match=r"train\.clip cannot be set and selected"):
        requested_plan(parser().parse_args([*select, "--set", "train.clip=3"]))


def test_a_suites_selection_can_be_changed_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import pebench\nSUITE = pebench.Suite('mine', '?', ['vit-digits'], ['add'], tier='smoke',"
        " select={'train.learning_rate': [1e-3, 1e-2], 'train.clip': [9.0]})\n"
    )
    words = ["--select", "train.learning_rate=0.5", "--select", "train.weight_decay=0,0.1"]
    plan = requested_plan(parser().parse_args(["run", "--suite", str(path), *words]))
    found = [(c.train.learning_rate, c.train.clip, c.train.weight_decay) for c in plan.selecting()]
    assert found == [(0.5, 9.0, 0.0), (0.5, 9.0, 0.1)]


# What is refused


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


# What is equal between rows

TOO_COSTLY = ("deberta",)
"""What costs more than `add`'s model even with a feed-forward layer of one channel, on some embedded task."""


@matched_regimes
@pytest.mark.parametrize("task", EMBEDDED)
def test_every_row_of_a_matched_suite_costs_what_add_does(task: str, regime: str) -> None:
    served = [name for name in encoding_cards() if serves(task, name) and name not in TOO_COSTLY]
    encodings = [*served, ("concat", {"d_p": 8}), ("learned", {"ratio": 0.5})]
    kinds = plan_of(tasks=[task], encodings=encodings, tier="quick", regime=regime).kinds
    target = cost(configure(task, "add", tier="quick")).of(regime)
    assert len(kinds) == len(encodings)
    assert [cost(kind).of(regime) for kind in kinds] == pytest.approx([target] * len(kinds), rel=0.01)
    for kind in kinds:
        usual = configure(task, kind.encoding, 0, "quick", None, kind.encoding_args)
        assert replace(kind, model=usual.model) == replace(usual, regime=regime)  # no more than the model has moved
        assert replace(kind.model, d_ff=None) == usual.model  # and there no more than d_ff


def test_a_suite_may_leave_out_what_cannot_serve() -> None:
    names = ["add", "cope", "rope-mixed", ("xpos", {"scale_base": 100.0})]
    kinds = plan_of(tasks=EMBEDDED, encodings=names, where_served=True).kinds
    found = {task: [kind.encoding for kind in kinds if kind.task == task] for task in EMBEDDED}
    assert found == {
        "vit-digits": ["add", "rope-mixed"], "text-order": ["add"], "lm-grammar": ["add", "cope", "xpos"],
    }  # fmt: skip
    with pytest.raises(UserError, match=r"text-order with cope: .*serves causal models alone"):
        check_costs(plan_of(tasks=["text-order"], encodings=names).kinds)


@matched_regimes
def test_the_reference_of_a_matched_suite_is_add_wherever_it_stands(regime: str) -> None:
    names = ["learned", "concat", "add"]
    kinds = plan_of(encodings=names, tier="quick", regime=regime).kinds
    assert kinds[2] == replace(configure("vit-digits", "add", tier="quick"), regime=regime)
    turned = plan_of(encodings=names[::-1], tier="quick", regime=regime).kinds
    assert {kind.encoding: kind for kind in kinds} == {kind.encoding: kind for kind in turned}


def test_every_task_of_a_matched_suite_has_its_own_reference() -> None:
    plan = plan_of(tasks=EMBEDDED, encodings=["add", "learned"], tier="quick", regime="parameters")
    for task in EMBEDDED:
        alone = plan_of(tasks=[task], encodings=["add", "learned"], tier="quick", regime="parameters")
        assert [kind for kind in plan.kinds if kind.task == task] == alone.kinds


def test_nothing_is_matched_where_nothing_is_asked() -> None:
    assert plan_of(encodings=["add", "learned"]).kinds == [
        configure("vit-digits", name, tier="smoke") for name in ("add", "learned")
    ]


def test_regimes_are_different_runs_even_where_they_have_the_same_model() -> None:
    found = {plan_of(encodings=["add"], regime=regime).kinds[0].key for regime in ("width", "parameters", "FLOPs")}
    assert len(found) == 3


def test_what_selects_is_as_costly_as_what_is_tested() -> None:
    plan = plan_of(encodings=["add", "learned"], tier="quick", regime="parameters", select={RATE: [1e-3, 1e-2]})
    widths = {kind.encoding: kind.model.d_ff for kind in plan.kinds}
    assert widths["learned"] != widths["add"]
    runs = [*plan.selecting(), *plan.testing(scored(plan, lambda c: 1.0))]
    assert {(c.encoding, c.model.d_ff, c.regime) for c in runs} == {(*item, "parameters") for item in widths.items()}


@pytest.mark.parametrize("task", ["lm-grammar", "text-order"])
def test_a_row_that_cannot_be_matched_is_refused_with_its_numbers(task: str) -> None:
    add, learned = (configure(task, name, tier="quick", settings=NARROW) for name in ("add", "learned"))
    thinnest = replace(learned, model=replace(learned.model, d_ff=1))
    assert cost(thinnest).parameters > 1.01 * cost(add).parameters
    with pytest.raises(UserError) as caught:
        plan_of(tasks=[task], encodings=["add", "learned", "none"], tier="quick", settings=NARROW, regime="parameters")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{task} with learned: ")
    assert f"{cost(add).parameters:,} within 1%" in line
    assert f"the nearest has {cost(thinnest).parameters:,}" in line


def test_all_rows_that_cannot_be_matched_are_named_at_once() -> None:
    with pytest.raises(UserError) as caught:
        plan_of(
            tasks=["lm-grammar", "text-order"], encodings=["add", "none", "learned", ("learned", {"ratio": 2.0})],
            tier="quick", settings=NARROW, regime="parameters",
        )  # fmt: skip
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["lm-grammar with learned", "text-order with learned"]


def test_an_encoding_that_cannot_serve_the_model_is_told_where_it_is_matched() -> None:
    with pytest.raises(UserError, match=r"vit-digits with rope: .*multiple of 4"):
        plan_of(settings={"model.d_model": 8, "model.num_heads": 4}, regime="parameters")


# What is done


def place(config: RunConfig, out: Path) -> Path:
    folder = out / config.directory
    folder.mkdir(parents=True)
    return folder


def test_a_state_is_read_from_a_runs_files(tmp_path: Path) -> None:
    done, failed, running, begun, new = plan = plan_of(encodings=["add"], seeds=5).testing({})
    for config, name in ((done, FILE_NAME), (failed, FAILURE), (begun, "log.txt")):
        (place(config, tmp_path) / name).touch()
    with claim(place(running, tmp_path)):
        assert run_states(plan, tmp_path) == ["done", "failed", "running", "to do", "to do"]
        assert run_states([new, running, done], tmp_path) == ["to do", "running", "done"]
    assert run_states([running], tmp_path) == ["to do"]


@pytest.mark.parametrize(
    ("name", "held", "state"), [(FILE_NAME, True, "done"), (FAILURE, True, "running"), (FAILURE, False, "failed")]
)
def test_a_finished_run_stays_done_and_a_failed_one_may_run_again(
    name: str, held: bool, state: str, tmp_path: Path
) -> None:
    (config,) = plan_of(encodings=["add"], seeds=1).testing({})
    folder = place(config, tmp_path)
    (folder / name).touch()
    with claim(folder) as lease:
        if not held and lease:
            lease.release()
        assert run_states([config], tmp_path) == [state]


def test_nothing_is_done_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    plan = plan_of().testing({})
    assert run_states(plan, tmp_path / "nowhere") == ["to do"] * len(plan)
    assert load_records(plan, tmp_path / "nowhere") == {}
    assert not (tmp_path / "nowhere").exists()


def test_what_is_there_is_loaded_by_key(tmp_path: Path) -> None:
    first, second, *_ = plan = plan_of().testing({})
    records = [record(first, 0.5), record(second, None)]
    for found in records:
        write_record(found, tmp_path)
    assert load_records(plan, tmp_path) == {found.config.key: found for found in records}


# What the rest will take


def took(seconds: float, out: Path, encoding: str = "add", seed: int = 0, **settings: Any) -> Record:
    """Leave the record of a run of this duration."""
    dotted = {name.replace("_", ".", 1): value for name, value in settings.items()}
    config = configure("vit-digits", encoding, seed, "smoke", dotted)
    found = replace(record(config, 0.5), duration_s=seconds)
    write_record(found, out)
    return found


def to_come(encoding: str = "add", seeds: int = 1, **settings: Any) -> list[RunConfig]:
    dotted = {name.replace("_", ".", 1): value for name, value in settings.items()}
    return [configure("vit-digits", encoding, 100 + seed, "smoke", dotted) for seed in range(seeds)]


def test_a_run_takes_as_long_as_earlier_ones_of_its_kind(tmp_path: Path) -> None:
    took(10.0, tmp_path, seed=0)
    took(20.0, tmp_path, seed=1)
    took(70.0, tmp_path, "rope")
    found = forecast([*to_come("add", 3), *to_come("rope")], tmp_path)
    assert (found.seconds, found.unknown, found.sampled) == (pytest.approx(3 * 15 + 70), 0, 3)


def test_other_steps_are_scaled(tmp_path: Path) -> None:
    took(10.0, tmp_path, train_max_steps=2)
    found = forecast([*to_come(train_max_steps=2), *to_come(train_max_steps=6)], tmp_path)
    assert (found.seconds, found.unknown) == (pytest.approx(10 + 30), 0)


def test_starting_and_testing_are_not_scaled(tmp_path: Path) -> None:
    """Of 10 s four steps of 8 images took 2, at 16 images a second."""
    found = took(10.0, tmp_path, train_max_steps=4, train_batch_size=8)
    write_record(replace(found, throughput=16.0), tmp_path)
    assert forecast(to_come(train_max_steps=400, train_batch_size=8), tmp_path).seconds == pytest.approx(8 + 200)


def test_a_new_encoding_takes_as_long_a_step_as_others_of_its_task(tmp_path: Path) -> None:
    took(10.0, tmp_path, "add")
    took(30.0, tmp_path, "rope")
    new = to_come("none", train_max_steps=4)
    assert forecast([*to_come("add"), *to_come("rope"), *new], tmp_path).seconds == pytest.approx(10 + 30 + 2 * 20)
    assert forecast(new, tmp_path).seconds == pytest.approx(2 * 20)


def test_rows_of_equal_size_take_as_long_as_their_reference(tmp_path: Path) -> None:
    """What matching changes is the width of feed-forward layers."""
    took(10.0, tmp_path)
    assert forecast(to_come("concat", model_d_ff=50), tmp_path).seconds == pytest.approx(10)


def test_what_selects_takes_as_long_as_what_is_tested(tmp_path: Path) -> None:
    took(10.0, tmp_path)
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2]})
    assert forecast(plan.selecting(), tmp_path).seconds == pytest.approx(20)


@pytest.mark.parametrize(
    "settings", [{"model_num_layers": 2}, {"data_patch_size": 4}, {"train_batch_size": 8}], ids=lambda s: next(iter(s))
)
def test_what_resembles_nothing_is_unknown(settings: dict[str, Any], tmp_path: Path) -> None:
    took(10.0, tmp_path)
    found = forecast([*to_come(), *to_come(seeds=2, **settings)], tmp_path)
    assert (found.seconds, found.unknown) == (pytest.approx(10), 2)


def test_another_task_tells_nothing(tmp_path: Path) -> None:
    took(10.0, tmp_path)
    found = forecast([configure("lm-grammar", "add", tier="smoke")], tmp_path)
    assert (found.seconds, found.unknown, found.sampled) == (0, 1, 0)


def test_failed_and_damaged_runs_tell_nothing(tmp_path: Path) -> None:
    write_record(replace(record(to_come()[0], None), duration_s=1.0), tmp_path)
    (tmp_path / took(10.0, tmp_path, seed=5).config.directory / FILE_NAME).write_text("{")
    found = forecast(to_come(), tmp_path)
    assert (found.seconds, found.unknown, found.bytes_per_run, found.sampled) == (0, 1, None, 0)


def test_no_more_than_a_few_runs_are_looked_at(tmp_path: Path) -> None:
    for seed in range(SAMPLE + 2):
        took(10.0, tmp_path, seed=seed)
    assert forecast(to_come(), tmp_path).sampled == SAMPLE


def test_the_bytes_of_a_run_are_those_of_all_its_files(tmp_path: Path) -> None:
    sizes = []
    for seed, extra in enumerate((1000, 3000)):
        folder = tmp_path / took(10.0, tmp_path, seed=seed).config.directory
        (folder / "curves").mkdir()
        (folder / "curves" / "events").write_bytes(b"x" * extra)
        sizes.append((folder / FILE_NAME).stat().st_size + extra)
    assert forecast(to_come(), tmp_path).bytes_per_run == pytest.approx(sum(sizes) / 2)


# What was planned


def test_a_noted_plan_reads_back(tmp_path: Path) -> None:
    plan = plan_of(select={RATE: [1e-3]})
    out = tmp_path / "not" / "yet"
    write_plan(plan.selecting(), out)
    assert planned_runs(out) == [config.directory for config in plan.selecting()]
    assert len([*(out / PLANS).iterdir()]) == 1  # nothing temporary stays


def test_plans_add_up_and_each_run_counts_once(tmp_path: Path) -> None:
    few, many = (plan_of(seeds=seeds).testing({}) for seeds in (1, 2))
    for time, plan in enumerate((few, many, few)):
        write_plan(plan, tmp_path)
        for path in (tmp_path / PLANS).iterdir():
            os.utime(path, (time, time))
    assert len([*(tmp_path / PLANS).iterdir()]) == 2
    assert sorted(planned_runs(tmp_path)) == sorted(config.directory for config in many)


def test_earlier_plans_come_first(tmp_path: Path) -> None:
    plans = [plan_of(seeds=[seed]).testing({}) for seed in range(4)]
    for plan in plans:
        write_plan(plan, tmp_path)
    for path in (tmp_path / PLANS).iterdir():
        (age,) = [i for i, plan in enumerate(plans) if plan[0].directory in path.read_text()]
        os.utime(path, (1000 - age, 1000 - age))
    assert planned_runs(tmp_path) == [config.directory for plan in plans[::-1] for config in plan]


def test_nothing_is_planned_where_nothing_was_noted(tmp_path: Path) -> None:
    assert planned_runs(tmp_path) == planned_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b"hello"])
def test_a_damaged_plan_is_ignored(content: bytes, tmp_path: Path) -> None:
    plan = plan_of().testing({})
    write_plan(plan, tmp_path)
    (tmp_path / PLANS / "0123456789ab.json").write_bytes(content)
    assert planned_runs(tmp_path) == [config.directory for config in plan]


def test_an_estimate_is_plain_numbers(tmp_path: Path) -> None:
    took(10.0, tmp_path)
    assert json.loads(json.dumps(asdict(forecast(to_come(), tmp_path))))["seconds"] == 10.0


@pytest.mark.parametrize("content", ["[]", "3", '{"runs": 3}', '{"runs": null}'])
def test_a_plan_file_that_is_no_plan_is_ignored(content: str, tmp_path: Path) -> None:
    (tmp_path / PLANS).mkdir()
    (tmp_path / PLANS / "0123456789ab.json").write_text(content)
    assert planned_runs(tmp_path) == []


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
        ({"seeds": [SELECTION_SEED]}, "select and cannot be tested"),
    ],
    ids=str,
)
def test_a_selection_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(**({"select": {RATE: [1e-3, 1e-2]}} | changes)).testing({})


def test_each_task_may_have_values_of_its_own_to_select_from() -> None:
    rates = {"vit-digits": [1e-3, 1e-2], "text-order": [1e-2, 3e-2, 1e-1]}
    plan = plan_of(tasks=[*rates], select={RATE: rates})
    tried = {task: sorted({c.train.learning_rate for c in plan.selecting() if c.task == task}) for task in rates}
    assert tried == rates
    records = scored(plan, lambda c: -c.train.learning_rate)
    assert {(c.task, c.train.learning_rate) for c in plan.testing(records)} == {
        ("vit-digits", 1e-2),
        ("text-order", 1e-1),
    }
    part = plan.suite.part(["text-order"])
    assert {c.train.learning_rate for c in Plan(part, part.kinds()).selecting()} == {1e-2, 3e-2, 1e-1}


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


def test_a_matched_suite_needs_its_reference() -> None:
    with pytest.raises(UserError, match="add"):
        plan_of(encodings=["rope", "learned"], regime="parameters")


# What varies between tables


def test_each_value_of_a_setting_that_varies_makes_runs_of_its_own() -> None:
    plan = plan_of(encodings=["add", "learned"], vary={"model.num_layers": [1, 3], "model.d_model": [16, 32]})
    shapes = [(c.model.num_layers, c.model.d_model, c.encoding) for c in plan.kinds]
    assert sorted(shapes) == sorted(itertools.product([1, 3], [16, 32], ["add", "learned"]))
    text = asked("--pe", "add", "--pe", "learned", "--vary", "model.num_layers=1,3", "--vary", "model.d_model=16,32")
    assert {c.kind_key for c in text.kinds} == {c.kind_key for c in plan.kinds}


@matched_regimes
def test_rows_are_matched_at_the_value_that_they_have(regime: str) -> None:
    both = plan_of(encodings=["add", "learned"], regime=regime, vary={"model.num_layers": [1, 3]})
    for layers in (1, 3):
        alone = plan_of(encodings=["add", "learned"], regime=regime, settings={"model.num_layers": layers})
        assert {c.kind_key for c in alone.kinds} <= {c.kind_key for c in both.kinds}


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
    ],
)
def test_what_cannot_vary_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        plan_of(**options)
