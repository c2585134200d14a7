"""Plans: the runs that select settings, the values that are chosen, and the runs that are tested with them."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.config import SELECTION_SEED
from pebench.errors import UserError
from pebench.runs.plan import Plan
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from tests.runs.plans import DECAY, RATE, asked, first_seed, keys, plan_of, record, scored


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


def test_a_value_whose_run_has_no_validation_metric_is_not_chosen() -> None:
    plan = plan_of(select={RATE: [1e-3, 1e-2]})
    records = scored(plan, lambda c: 5.0)
    lacking = {key: replace(run, metrics={}) for key, run in records.items() if run.config.train.learning_rate == 1e-3}
    assert {config.train.learning_rate for config in plan.testing(records | lacking)} == {1e-2}


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


def test_values_given_as_text_make_the_runs_that_typed_ones_do() -> None:
    typed = {RATE: [1e-3, 0.02], "model.num_layers": [1, 2], "train.precision": ["32-true", "64-true"]}
    text = ["train.learning_rate=0.001,2e-2", "model.num_layers=1,2", "train.precision=32-true,64-true"]
    one = plan_of(select=typed, seeds=3)
    other = asked("--pe", "add", "--pe", "rope", *(word for item in text for word in ("--select", item)))
    assert keys(one.selecting()) == keys(other.selecting())
    records = scored(one, lambda c: c.train.learning_rate * c.model.num_layers)
    assert keys(one.testing(records)) == keys(other.testing(records))
    values = other.suite.candidates(other.kinds[0])[0].values_of(typed)
    assert {name: type(value) for name, value in values.items()} == {RATE: float} | {
        "model.num_layers": int, "train.precision": str,
    }  # fmt: skip


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
