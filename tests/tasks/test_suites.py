"""Suites: planned as declared, and refused with the reason."""

import math
from collections import Counter
from itertools import product

import pytest

from pebench.config import CORE_ENCODINGS, RunConfig
from pebench.data import datamodule_of
from pebench.errors import UserError
from pebench.runs.plan import Plan
from pebench.runs.suite import Suite, load_suite, serves, suite_files
from pebench.tasks import TASKS, configure

EMBEDDED = ["vit-digits", "text-order", "lm-grammar"]


# Suites


def planned(suite: Suite) -> list[RunConfig]:
    return Plan(suite, suite.kinds()).testing({})


@pytest.mark.parametrize("name", suite_files())
def test_every_suite_can_be_planned(name):
    suite = load_suite(name)
    plan = Plan(suite, suite.kinds())
    runs = [*plan.selecting(), *plan.testing({})]
    assert suite.name == name
    assert suite.question
    assert suite.expect
    assert f"{len(runs) + plan.undecided({})} runs" in suite.cost
    left_out = [pair for pair in product(suite.tasks, suite.encodings) if suite.where_served and not serves(*pair)]
    varied = math.prod(len(values) for values in suite.vary.values())
    assert len(plan.kinds) == (len(suite.tasks) * len(suite.encodings) - len(left_out)) * varied
    assert len({config.key for config in runs}) == len(runs) > 0
    assert len(runs) == len(plan.selecting()) + (0 if suite.select else len(suite.tested_seeds) * len(plan.kinds))


def test_quickstart_is_an_embedded_task_of_each_modality_with_the_core_encodings():
    suite = load_suite("quickstart")
    rows = list(product(EMBEDDED, range(suite.seeds), CORE_ENCODINGS))
    assert [(config.task, config.seed, config.encoding) for config in planned(suite)] == rows
    assert {config.tier for config in planned(suite)} == {"minute"}
    assert len(suite.tested_seeds) == 3


def test_a_plan_goes_task_by_task_and_in_each_seed_by_seed():
    plan = planned(Suite("s", "?", ["vit-digits", "text-order"], ["add", "none"], seeds=[4, 2]))
    assert [config.task for config in plan] == ["vit-digits"] * 4 + ["text-order"] * 4
    assert [config.seed for config in plan] == [4, 4, 2, 2] * 2
    assert Counter(config.encoding for config in plan) == {"add": 4, "none": 4}


def test_a_number_of_seeds_counts_from_zero():
    assert [config.seed for config in planned(Suite("s", "?", ["vit-digits"], ["add"], seeds=3))] == [0, 1, 2]


def test_an_encoding_can_bring_options():
    suite = Suite("s", "?", ["vit-digits"], ["rope", ("rope", {"theta": 10.0}), ("concat", {"d_p": 8})], seeds=1)
    plan = planned(suite)
    assert [dict(config.encoding_args) for config in plan] == [{}, {"theta": 10.0}, {"d_p": 8}]
    assert len({config.key for config in plan}) == 3


def test_a_suites_settings_reach_every_run():
    suite = Suite("s", "?", ["vit-digits"], ["add", "rope"], 1, settings={"train.max_steps": "7", "model.dropout": 0.5})
    assert [(c.train.max_steps, c.model.dropout) for c in planned(suite)] == [(7, 0.5)] * 2


def test_an_encoding_setting_reaches_the_encodings_that_know_it():
    settings = {"encoding.ratio": "0.5"}
    suite = Suite("s", "?", ["vit-digits"], ["add", "none", ("learned", {"ratio": 2.0})], 1, settings=settings)
    assert [dict(config.encoding_args) for config in planned(suite)] == [{"ratio": 0.5}, {}, {"ratio": 2.0}]


def test_an_encoding_setting_that_none_knows_is_refused():
    suite = Suite("s", "?", ["vit-digits"], ["add", "none"], 1, settings={"encoding.ratoi": 1})
    with pytest.raises(UserError, match=r"'encoding\.ratoi'\. Did you mean 'encoding\.ratio'\?"):
        suite.kinds()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tasks": ["vit-digit"]}, "Did you mean 'vit-digits'"),
        ({"encodings": ["ad"]}, "Did you mean 'add'"),
        ({"encodings": [("add", {"d_q": 8})]}, "option of encoding 'add': 'd_q'"),
        ({"tier": "core"}, "has no tier 'core'"),
        ({"settings": {"train.steps": 1}}, "unknown setting 'train.steps'"),
        ({"seeds": [-1]}, "a seed must be"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(changed, message):
    values = {"tasks": ["vit-digits"], "encodings": ["add"], "seeds": 1} | changed
    with pytest.raises(UserError, match=message):
        planned(Suite("s", "?", **values))


def test_a_suite_file_of_ones_own_works(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import pebench\n"
        "SUITE = pebench.Suite('mine', 'Is 8 enough?', ['vit-digits'], [('concat', {'d_p': 8}), 'none'], seeds=2)\n"
    )
    plan = planned(load_suite(str(file)))
    assert [(c.encoding, c.seed, dict(c.encoding_args)) for c in plan] == [
        ("concat", 0, {"d_p": 8}), ("none", 0, {}), ("concat", 1, {"d_p": 8}), ("none", 1, {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("SUITE = (", "cannot be read: SyntaxError"),
        ("import no_such_module", "cannot be read: ModuleNotFoundError"),
        ("x = 1\ny = 1 / 0", r"line 2, cannot be read: ZeroDivisionError"),
        ("SUITE = pebench.Suite()", "cannot be read: NameError"),
        ("from pebench import Suite; SUITE = Suite('s', '?')", "cannot be read: TypeError"),
        ("import sys; sys.exit(0)", "cannot be read: SystemExit: 0"),
        ("from pebench import Suite; SUITE = Suite('s', '?', ['vit-digits'], seeds='3')", "seeds must be int"),
        ("", r"must define SUITE = pebench\.Suite\(\.\.\.\), but it defines none"),
        ("SUITE = {}", r"must define SUITE = pebench\.Suite\(\.\.\.\), but SUITE is dict"),
    ],
)
def test_a_suite_file_that_is_wrong_says_why(content, message, tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        load_suite(str(file))
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("tasks", [3], "list[str]"),
        ("seeds", "3", "int | list[int]"),
        ("seeds", 2.5, "int | list[int]"),
        ("seeds", True, "int | list[int]"),
        ("seeds", [0, 0.5], "int | list[int]"),
        ("tier", ["smoke"], "str | None"),
        ("settings", ["train.max_steps"], "dict[str, Any]"),
        ("settings", {3: 4}, "dict[str, Any]"),
        ("vary", ["model.num_layers"], "dict[str, Any]"),
        ("select", ["train.learning_rate"], "dict[str, Any]"),
        ("selection_seeds", "2", "int | dict[str, int]"),
        ("selection_seeds", {"vit-digits": "2"}, "int | dict[str, int]"),
        ("where_served", "no", "bool"),
        ("declared", 20261121, "str"),
        ("remarks", ["One.", 2], "list[str]"),
        ("contrasts", ["add-rope"], "list[tuple[str, str]]"),
        ("margin", 0.01, "dict[str, float]"),
        ("margin", {"accuracy": "0.01"}, "dict[str, float]"),
    ],
)
def test_a_field_of_a_suite_of_another_kind_is_told(field, value, expected):
    with pytest.raises(UserError) as caught:
        Suite(**{"name": "mine", "question": "?", "tasks": ["vit-digits"], field: value})
    assert str(caught.value) == f"{field} must be {expected}, got {value!r}."


@pytest.mark.parametrize("value", [[("rope",)], ["add", ("rope", 3)]])
def test_rows_of_another_kind_are_told_with_the_ways_to_name_them(value):
    with pytest.raises(UserError) as caught:
        Suite("mine", "?", ["vit-digits"], value)
    assert str(caught.value).startswith("encodings expects names, such as 'rope', 'rope(theta=500.0)' or, of a class")
    assert str(caught.value).endswith(f", got {value!r}.")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("tasks", "vit-digits", "tasks expects a list, as in ['vit-digits'], got 'vit-digits'."),
        ("tasks", 3, "tasks expects a list, as in ['vit-digits'], got 3."),
        ("encodings", "rope", "encodings expects a list, as in ['rope'], got 'rope'."),
        ("remarks", "One.", "remarks expects a list, as in ['One.'], got 'One.'."),
    ],
)
def test_a_field_that_takes_a_list_shows_one(field, value, expected):
    with pytest.raises(UserError) as caught:
        Suite(**{"name": "mine", "question": "?", "tasks": ["vit-digits"], field: value})
    assert str(caught.value) == expected


def test_a_suite_takes_what_python_counts_as_the_same():
    suite = Suite(
        "mine", "?", ("vit-digits",), [["rope", {"theta": 5}], "add"], seeds=range(2), margin={"accuracy": 1},
        contrasts=[["rope (theta=5.0)", "add"]],
    )  # fmt: skip
    assert [config.label for config in suite.kinds()] == ["rope (theta=5.0)", "add"]


@pytest.mark.parametrize("seeds", [0, -1, []])
def test_a_suite_without_seeds_is_a_mistake(seeds):
    with pytest.raises(UserError, match="seeds expects a number from 1 on, or a list of seeds, got"):
        Suite("mine", "?", ["vit-digits"], seeds=seeds).kinds()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quickstar", r"unknown suite 'quickstar'\. Did you mean 'quickstart'\?"),
        ("no/such/file.py", "expected a suite file, but 'no/such/file.py' does not exist"),
        (".", r"unknown suite '\.'"),
    ],
)
def test_a_suite_that_is_not_there_is_said(name, message):
    with pytest.raises(UserError, match=message):
        load_suite(name)


@pytest.mark.parametrize("task", [task for task in TASKS.values() if task.source], ids=lambda task: task.name)
def test_prepared_data_need_neither_network_nor_copy(task, tmp_path, monkeypatch):
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("pebench.tasks.sources.reachable", lambda url: False)
    config = configure(task.name, "none")
    with pytest.raises(UserError):
        task.check_available(config.data, None)
    datamodule_of(config).file.touch()
    task.check_available(config.data, None)
