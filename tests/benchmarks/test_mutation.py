"""Mutation: the faults that are made, the tests they are given, and the list and page of their outcomes."""

import ast
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import pytest

from pebench.benchmarks import mutation, reached
from pebench.benchmarks.mutants import mutants_of
from pebench.benchmarks.mutation import (
    NOTHING,
    Outcomes,
    all_mutants,
    fails,
    page,
    prepare_worker,
    share,
    try_mutant,
)
from pebench.benchmarks.reached import Reach, seconds_of_tests

SOURCE = '''"""Words 1."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
STEPS: int = 3
def shrink(values: list[int], by: float = 0.5) -> "list[int] | None":
    """Words < more words."""
    if not values and by < STEPS:
        raise ValueError(f"none of {1 + 1}")
    for value in values:
        if value is None:
            continue
        values.append(value * by)
    return values
'''


def test_each_place_of_code_has_its_fault():
    found = mutants_of("a/b.py", SOURCE.encode())
    assert [(mutant.line, mutant.old, mutant.new) for mutant in found] == [
        (5, "3", "4"),
        (6, "0.5", "1.5"),
        (8, "not values and by < STEPS", "(not (not values and by < STEPS))"),
        (8, "not values and by < STEPS", "((not values) or (by < STEPS))"),
        (8, "not values", "(values)"),
        (8, "by < STEPS", "(by) <= (STEPS)"),
        (9, 'raise ValueError(f"none of {1 + 1}")', "pass"),
        (11, "value is None", "(not (value is None))"),
        (11, "value is None", "(value) is not (None)"),
        (12, "continue", "break"),
        (13, "values.append(value * by)", "pass"),
        (13, "value * by", "((value) / (by))"),
        (14, "values", "None"),
    ]
    for mutant in found:
        changed = mutant.applied(SOURCE.encode())
        assert changed != SOURCE.encode()
        ast.parse(changed)


def test_none_is_no_fault_where_nothing_or_false_is_returned():
    text = "def f(x):\n    if x:\n        return None\n    return False\n"
    assert [(mutant.old, mutant.new) for mutant in mutants_of("a.py", text.encode())] == [
        ("x", "(not (x))"), ("False", "True"),
    ]  # fmt: skip


def test_every_mutant_of_the_package_is_python_and_no_two_are_one():
    found = all_mutants()
    assert len({mutant.key for mutant in found}) == len(found) > 10_000
    assert [mutant.key for mutant in found] == [mutant.key for mutant in all_mutants()]
    for mutant in found[:300]:
        ast.parse(mutant.applied((mutation.ROOT / mutation.SOURCE / mutant.file).read_bytes()))


def test_a_mutant_gets_the_tests_of_its_line_fastest_first(monkeypatch):
    mutant = next(one for one in mutants_of("a/b.py", SOURCE.encode()) if one.old == "continue")
    imported = next(one for one in mutants_of("a/b.py", SOURCE.encode()) if one.old == "3")
    reach = Reach.__new__(Reach)
    lines = {5: [""], 12: ["t.py::slow|run", "t.py::fast (call)|", "t.py::gone|run"], 13: ["u.py::other|run"]}
    reach.data = SimpleNamespace(contexts_by_lineno=lambda file: lines)
    reach.seconds = {"t.py::slow": 2.0, "t.py::fast": 1.0, "u.py::other": 0.5, "t.py::beside": 0.5}
    assert reach.tests(mutant) == ["t.py::fast", "t.py::slow", "t.py::beside"]
    assert reach.tests(imported) == [
        "u.py::other",
        "t.py::fast",
        "t.py::slow",
        "t.py::beside",
    ]  # its line runs with the import
    lines[12] += ["tests/a/t.py::near|run", "test_b.py::named|run"]
    reach.seconds |= {"tests/a/t.py::near": 3.0, "test_b.py::named": 4.0}
    assert reach.tests(mutant)[:3] == ["test_b.py::named", "tests/a/t.py::near", "t.py::fast"]
    reach.seconds |= {"tests/a/t.py::beside": 1.0, "tests/b/t.py::elsewhere": 1.0}
    lines.update({12: [""], 13: [""]})  # a file that only declares
    assert reach.tests(imported) == ["tests/a/t.py::beside", "tests/a/t.py::near"]
    lines[12] = ["t.py::slow|run", "t.py::fast (call)|"]
    monkeypatch.setattr(reached, "MOST_S", 1.5)
    assert reach.tests(mutant) == ["t.py::fast", "t.py::beside"]


def test_outcomes_are_kept_until_a_line_changes(tmp_path):
    first, second, *_ = mutants = mutants_of("a/b.py", SOURCE.encode())
    outcomes = Outcomes(tmp_path / "list.csv", mutants)
    outcomes.add(first, "survived")
    outcomes.add(second, "noticed")
    outcomes.add(first, "noticed")
    assert Outcomes(tmp_path / "list.csv", mutants).found == {first: "noticed", second: "noticed"}
    moved = mutants_of("a/b.py", SOURCE.replace("STEPS: int = 3", "\nSTEPS: int = 5").encode())
    assert [(one.line, one.old) for one in Outcomes(tmp_path / "list.csv", moved).found] == [(7, "0.5")]


def test_the_page_has_shares_and_every_survivor(tmp_path):
    first, second, third, *_ = mutants = mutants_of("a/b.py", SOURCE.encode())
    outcomes = Outcomes(tmp_path / "list.csv", mutants)
    for mutant, outcome in ((first, "survived"), (second, "noticed"), (third, "no test")):
        outcomes.add(mutant, outcome)
    text = page(outcomes, "`it`")
    assert "3 of 13 mutants have been tried" in text
    assert "33.3 [6.1, 79.2]" in text
    assert "- `a/b.py`: `3` as `4`\n" in text
    assert "(no test)" in text
    assert "## Changes nothing" not in text
    outcomes.add(first, NOTHING)
    text = page(outcomes, "`it`")
    assert "50.0 [9.5, 90.5]" in text  # one of the two that change something
    assert text.endswith("## Changes nothing\n\n- `a/b.py`: `3` as `4`\n")
    assert share(Counter({"noticed": 9, "survived": 1, NOTHING: 5})) == "90.0 [59.6, 98.2]"
    assert share(Counter({NOTHING: 5})) == ""


@pytest.mark.slow
def test_a_mutant_is_noticed_by_a_test_of_its_line_and_by_no_other(tmp_path):
    mutant = next(one for one in all_mutants() if one.new == "(not (len(text) <= most))")
    with ProcessPoolExecutor(1, get_context("spawn"), prepare_worker, (str(tmp_path),)) as pool:
        outcomes = [
            pool.submit(try_mutant, mutant, tests).result()
            for tests in (["src/pebench/formatting.py"], ["src/pebench/encodings/options.py"], [])
        ]
        endless = tmp_path / "test_endless.py"
        endless.write_text("import time\ndef test_it():\n    time.sleep(600)\n")
        assert pool.submit(fails, [str(endless)], 5).result(timeout=60)
    assert outcomes == ["noticed", "survived", "no test"]


def test_times_of_tests_are_those_of_the_last_call(tmp_path):
    case = '<testsuite><testcase classname="tests.benchmarks.test_mutation" name="{}" time="{}"/></testsuite>'
    for number, (name, seconds) in enumerate([("one", 1), ("two", 2), ("one", 3)]):
        (tmp_path / f"{number}.xml").write_text(case.format(name, seconds))
    file = "tests/benchmarks/test_mutation.py"
    assert seconds_of_tests(tmp_path) == {f"{file}::one": 3.0, f"{file}::two": 2.0}


@pytest.mark.slow
def test_what_tests_reach_is_added_to_what_others_reach(tmp_path):
    files = ["src/pebench/formatting.py", "src/pebench/encodings/options.py"]
    for file in files:
        reached.reach(tmp_path, [file])
    known = Reach(tmp_path)
    assert {name.partition("::")[0] for name in known.seconds} == {*files}
    for file in files:
        assert known.data.contexts_by_lineno(str(mutation.ROOT / file))
