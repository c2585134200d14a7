"""Comparisons on a page: pairs, contrasts, equivalence, and what they are corrected for."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from pebench.errors import UserError
from pebench.results.grids import pairs
from pebench.results.page import Page
from pebench.results.stats import equivalence, holm, paired_difference
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from tests.results.page_records import MEANS, SUITE, page, run, runs, section, whole_text

pytestmark = pytest.mark.usefixtures("no_pictures")  # they take long, and words do without


def test_every_two_rows_are_compared_and_corrected_for_their_number() -> None:
    changed = page(runs(none=0.61))
    table = changed.tables[1]
    values = {row.label: row.values for row in table.rows}
    labels = ["add", "concat", "none", "rope"]
    assert [*table.pairs] == [(b, a) for i, a in enumerate(labels) for b in labels[i + 1 :]]
    differences = [paired_difference(values[b], values[a]) for b, a in table.pairs]
    assert [d for d, _ in table.pairs.values()] == differences
    assert [p for _, p in table.pairs.values()] == holm([d.p_value for d in differences])
    rope = next(line for line in section(markdown(changed), "vit-digits", "- concat") if line.startswith("| rope"))
    assert [cell.split()[0] for cell in rope.split("|")[2:-1]] == ["+10.00", "+9.95", "+9.00"]
    assert rope.count(" better ") == 3
    told = json.loads(to_json(changed))["tables"][1]["pairs"]
    assert [(pair["first"], pair["second"]) for pair in told] == [*table.pairs]
    assert [pair["mean"] for pair in told] == [d.mean for d in differences]
    assert "the row minus the column" in latex(changed)
    assert "Every two rows" in html(changed)


def test_pairs_of_two_rows_are_not_told_and_those_of_many_in_json_alone() -> None:
    two = [record for record in runs() if record.config.encoding != "rope"]
    many = [run("vit-digits", "concat", seed, 0.5 + 0.01 * seed) for seed in range(3)]
    many += [
        replace(record, config=replace(record.config, encoding_args={"d_p": 4 * width}))
        for width in range(1, 25)
        for record in many[:3]
    ]
    for records, rows, compared in ((two, 2, 0), (many[: 13 * 3], 13, 78), (many[: 24 * 3], 24, 276), (many, 25, 0)):
        made = Page.of(records)
        assert (len(made.tables[-1].rows), len(json.loads(to_json(made))["tables"][-1]["pairs"])) == (rows, compared)
        assert "Every two rows" not in markdown(made)


def test_declared_contrasts_are_tested_and_corrected_among_themselves() -> None:
    asked = replace(
        SUITE, contrasts=[("rope", "concat"), ("concat", "add"), ("concat", "none")], margin={"accuracy": 0.01}
    )
    asked = replace(asked, encodings=[*MEANS, "none"])
    changed = page(runs(), asked)
    table = changed.tables[1]
    values = {row.label: row.values for row in table.rows}
    differences = [paired_difference(values[a], values[b]) for a, b in asked.contrasts[:2]]  # of none there is no run
    found = changed.contrasts(table)
    assert [(c.first, c.second) for c in found] == [*asked.contrasts[:2]]
    assert [c.difference for c in found] == differences
    assert [c.p_adjusted for c in found] == holm([d.p_value for d in differences], 3)
    assert [c.verdict.text for c in found] == ["better", "not separable at 8 seeds"]
    assert [c.equivalent.p_adjusted for c in found] == holm([equivalence(d, 0.01) for d in differences], 3)
    assert [c.equivalent.holds for c in found] == [False, True]
    text = markdown(changed)
    assert "| rope - concat " in text
    assert re.search(r"\| concat - add .*not separable at 8 seeds; equivalent within 1 points", text)
    assert "concat - none" not in text
    assert ">rope - concat<" in html(changed)
    assert "rope - concat" in latex(changed)
    assert [c["first"] for c in json.loads(to_json(changed))["tables"][1]["contrasts"]] == ["rope", "concat"]
    assert "Declared contrasts" not in whole_text(markdown)
    with pytest.raises(UserError, match="unknown encoding of a contrast 'rop'"):
        replace(asked, contrasts=[("rop", "add")]).kinds()


@pytest.mark.parametrize(
    ("values", "seeds"),
    [
        ([0.505, 0.51, 0.51, 0.515, 0.52], 0),
        ([0.503, 0.507, 0.51, 0.503, 0.503], 1),
        ([0.502, 0.507, 0.51, 0.503, 0.502], 5),
    ],
)
def test_differences_that_hang_on_single_seeds_are_told(values: list[float], seeds: int) -> None:
    every = {"add": [0.5] * 5, "concat": values, "rope": [0.6, 0.61, 0.62, 0.61, 0.6]}

    def made(left_out: int | None = None, suite: Suite | None = None) -> Page:
        records = [
            run("vit-digits", encoding, seed, value)
            for encoding, row in every.items()
            for seed, value in enumerate(row)
            if seed != left_out
        ]
        return page(records, suite)

    def text(left_out: int | None = None) -> str:
        return markdown(made(left_out))

    called = [re.search(r"^\| concat .*\| better ", text(seed), re.MULTILINE) for seed in (None, *range(5))]
    assert called[0]
    assert called.count(None) == seeds
    told = [
        (label, seeds)
        for seeds, label in re.findall(
            r"With any one of (\d) of the 5 seeds left out, (\w+) would not be called better",
            text(),
        )
    ]
    assert told == [("concat", str(seeds))] * bool(seeds)
    declared = replace(SUITE, tasks=["vit-digits"], encodings=[*every], seeds=5)  # the rows that are here
    assert made(suite=declared).tables[0].fragile == made().tables[0].fragile


def test_rows_of_two_seeds_count_where_a_seed_is_left_out() -> None:
    """Holm's family is that of the verdict: with two comparisons p = 0.02 to 0.03 without a seed is not enough."""
    values = {"add": [0.5] * 5, "concat": [0.502, 0.505, 0.51, 0.507, 0.503], "rope": [0.9, 0.1]}
    records = [run("vit-digits", name, seed, value) for name, row in values.items() for seed, value in enumerate(row)]
    (table,) = page(records, None).tables
    without = {}
    for seed in range(5):
        (left,) = page([r for r in records if r.config.seed != seed or r.config.encoding == "rope"], None).tables
        without[seed] = left.row("concat").p_adjusted
    expected = sum(p >= 0.05 for p in without.values())
    assert table.row("concat").p_adjusted < 0.05
    assert table.fragile == {"concat": expected} if expected else table.fragile == {}


def test_equivalence_is_said_beside_the_verdict_from_eight_pairs_on() -> None:
    said = "not separable at 8 seeds; equivalent within 1 points"
    assert said in whole_text(markdown)
    assert "; equivalent within" not in markdown(page(runs(7), replace(SUITE, seeds=7)))
    assert "nothing is called equivalent; the fewest here are 7." in markdown(page(runs(7), replace(SUITE, seeds=7)))


def test_equivalence_is_not_said_outside_the_margin_and_beside_a_real_difference_too() -> None:
    narrow = replace(SUITE, margin={"accuracy": 0.0001})
    assert "; equivalent" not in markdown(page(runs(), narrow))
    assert "better; equivalent within 20 points" in markdown(page(runs(), replace(SUITE, margin={"accuracy": 0.2})))


def test_the_p_values_of_equivalence_are_holms() -> None:
    def rows(records: list[Record], suite: Suite = SUITE) -> list[dict[str, Any]]:
        return json.loads(to_json(page(records, suite)))["tables"][1]["rows"]

    found = {row["encoding"]: row["p_equivalent"] for row in rows(runs())}
    two = [record for record in runs() if record.config.encoding != "rope"]
    _, single = rows(two, replace(SUITE, encodings=["add", "concat"]))
    _, same, missing = rows(two)
    assert (missing["encoding"], missing["n"], missing["p_equivalent"]) == ("rope", 0, None)
    assert same["p_equivalent"] == found["concat"]  # a row that has not run counts too
    assert found["concat"] == pytest.approx(2 * single["p_equivalent"])  # the smaller of two
    assert found["add"] is None
    assert [row["equivalent"] for row in rows(runs())] == [None, True, False]


def test_margins_must_be_of_something_and_positive() -> None:
    with pytest.raises(UserError) as caught:
        replace(SUITE, margin={"accuracyy": 0.1, "vit-digits": 0.0}).kinds()
    assert "accuracyy" in str(caught.value)
    assert "the margin of vit-digits must be positive, got 0.0" in str(caught.value)


def test_a_margin_of_a_task_goes_before_one_of_its_metric() -> None:
    suite = replace(SUITE, margin={"accuracy": 0.02, "vit-digits": 0.03})
    assert [suite.margin_of(task) for task in ("text-order", "vit-digits", "lm-grammar")] == [0.02, 0.03, 0.005]


def test_corrections_count_the_rows_that_a_suite_declares_and_that_have_not_run() -> None:
    asked = replace(SUITE, encodings=[*MEANS, "none", "learned"], margin={"accuracy": 0.01})
    table = page(runs(), asked).tables[1]
    raw = [row.difference.p_value for row in table.rows if row.difference]
    assert [row.p_adjusted for row in table.rows if row.difference] == holm(raw, 4)
    equal = [equivalence(row.difference, 0.01) for row in table.rows if row.difference]
    assert [e.p_adjusted for e in page(runs(), asked).equivalences(table).values()] == holm(equal, 4)
    assert [p for _, p in table.pairs.values()] == holm([d.p_value for d, _ in table.pairs.values()], 10)
    alone = page(runs(), None).tables[1]  # nothing is declared, so nothing is missing
    assert [row.p_adjusted for row in alone.rows if row.difference] == holm(raw)


@pytest.mark.parametrize("value", [0.61, None], ids=["one seed", "failed"])
def test_the_first_run_of_a_row_does_not_make_another_clearer(value: float | None) -> None:
    asked = replace(SUITE, tasks=["vit-digits"], encodings=[*MEANS, "none"], margin={"accuracy": 0.01})
    asked = replace(asked, contrasts=[("rope", "concat"), ("concat", "none")])
    records = [record for record in runs() if record.config.task == "vit-digits"]
    before, after = (page([*records, *more], asked) for more in ([], [run("vit-digits", "none", 0, value)]))
    for told in (before, after):
        (table,) = told.tables
        assert [row.p_adjusted for row in table.rows if row.label in ("concat", "rope")] == holm(
            [row.difference.p_value for row in table.rows if row.label in ("concat", "rope")], 3
        )
    one, two = before.tables[0], after.tables[0]
    assert before.contrasts(one)[0].p_adjusted == after.contrasts(two)[0].p_adjusted
    assert one.pairs["rope", "concat"][1] == two.pairs["rope", "concat"][1]
    assert before.equivalences(one)["concat"] == after.equivalences(two)["concat"]


def test_a_verdict_that_rows_to_come_could_take_back_is_not_given() -> None:
    values = [0.6 + 0.012 + 0.012 * (-1) ** seed for seed in range(8)]  # p = 0.03 to a constant
    records = [run("vit-digits", "add", seed, 0.6) for seed in range(8)]
    records += [run("vit-digits", "rope", seed, value) for seed, value in enumerate(values)]
    few = replace(SUITE, tasks=["vit-digits"], encodings=["add", "rope"])
    verdicts = [
        page(records, suite).tables[0].row("rope").verdict.text
        for suite in (few, replace(few, encodings=["add", "rope", "none", "learned", "concat"]))
    ]
    assert verdicts == ["better", "not separable at 8 seeds"]


def test_pairs_of_fewer_runs_than_the_rest_say_so() -> None:
    kept = [r for r in runs(tasks=["vit-digits"]) if r.config.encoding != "rope" or r.config.seed > 5]
    grid = pairs(page(kept).tables[0])
    assert [("n=" in cell, cell.endswith(" (n=2)")) for cell in grid["- concat"].texts] == [
        (False, False),
        (True, True),
    ]
