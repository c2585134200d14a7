"""The table of failures names tests that there are, and every kind of the published page."""

import re
from pathlib import Path

import pytest

from pebench.benchmarks.reliability import Case, page, read_cases
from tests.reliability.failures import FAILURES

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", FAILURES)
def test_every_test_of_a_failure_is_there(name: str) -> None:
    for test in FAILURES[name].tests:
        file, _, function = test.partition("::")
        assert re.search(rf"^    def {function}\(|^def {function}\(", (TESTS / file).read_text(), re.MULTILINE), test


def test_cases_are_read_and_counted(tmp_path: Path) -> None:
    test = "tests.runs.test_plan"
    (tmp_path / "junit.xml").write_text(
        "<testsuites><testsuite>"
        f'<testcase classname="{test}" name="test_a_damaged_plan_is_ignored[a]"/>'
        f'<testcase classname="{test}" name="test_a_damaged_plan_is_ignored[b]"><failure/></testcase>'
        f'<testcase classname="{test}" name="test_other"><skipped/></testcase>'
        f'<testcase classname="{test}" name="test_many"><properties><property name="injections" value="60"/>'
        "</properties></testcase></testsuite></testsuites>"
    )
    cases = read_cases(tmp_path / "junit.xml")
    assert cases[f"{test}.test_many"] == [Case(60, "survived")]
    assert [case.outcome for case in cases[f"{test}.test_a_damaged_plan_is_ignored"]] == ["survived", "lost"]
    text = page(cases, "it")
    assert "| F10" in text
    assert "**1 not survived**" in text
    assert "in 1 of these was anything lost" in text
    assert "not measured" in text  # of all the others no case was run
