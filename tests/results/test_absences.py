"""Failed and missing runs: no page, in no format, hides one."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from pebench.config import SELECTION_SEED
from pebench.errors import UserError
from pebench.results.finding import finding
from pebench.results.grids import differences, side_by_side
from pebench.results.missing import absence_counts
from pebench.results.writers.csv import to_csv
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from tests.results.page_records import (
    DEPTHS,
    MEANS,
    SUITE,
    TASKS,
    by_depth,
    page,
    run,
    runs,
    whole,
    whole_text,
    without,
)

pytestmark = pytest.mark.usefixtures("no_pictures")  # they take long, and words do without


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (without(runs(), "vit-digits", "rope", 3), "- Missing: rope seed 3\n"),
        ([*without(runs(), "vit-digits", "rope", 3), run("vit-digits", "rope", 3, None)], "Failed: rope seed 3: `loss"),
        (without(runs(), "vit-digits", "rope", *range(8)), "- Missing: rope seeds 0 to 7\n"),
        (runs(7), "- Missing: add, concat, rope seed 7\n"),
        (runs(tasks=TASKS[:1]), "Nothing tested: vit-digits."),
    ],
    ids=["a seed", "failed", "an encoding", "a seed of all", "a task"],
)
def test_what_the_suite_planned_and_is_not_there_is_told(records: list[Record], expected: str) -> None:
    assert expected in markdown(page(records)) + "\n"
    with pytest.raises(UserError):
        page(records).check_complete()


def test_strict_names_every_absent_run() -> None:
    records = [*without(runs(), "text-order", "concat", 1, 2), run("text-order", "concat", 2, None)]
    with pytest.raises(UserError) as caught:
        page(records).check_complete()
    assert "2 have failed or are missing" in str(caught.value)
    assert "text-order: Failed: concat seed 2: loss is nan\n" in str(caught.value)
    assert "text-order: Missing: concat seed 1\n" in str(caught.value)


def test_where_all_is_there_strict_says_nothing() -> None:
    whole().check_complete()
    assert "None: every run finished (48)." in whole_text(markdown)


def test_failed_runs_are_marked_across_tasks_with_and_without_them() -> None:
    text = markdown(page([*without(runs(), "vit-digits", "rope", 3), run("vit-digits", "rope", 3, None)]))
    row = next(line for line in text.partition("## Across")[2].splitlines() if line.startswith("| rope"))
    assert "| 1 † |" in re.sub(" +", " ", row)
    assert "excluding failed" in text
    assert "excluding failed" not in whole_text(markdown)


def test_what_the_suite_did_not_plan_is_told() -> None:
    text = markdown(page([*runs(), run("vit-digits", "none", 0, 0.5), *(
        run("vit-digits", "add", 0, 0.5, **{"train.max_steps": 3}),)]))  # fmt: skip
    assert "Not planned by the suite: vit-digits (other settings), vit-digits none." in text


def test_a_suite_that_selects_is_recognised_by_what_it_selects() -> None:
    rate = {"train.learning_rate": [1e-3, 1e-2]}
    records = []
    for record in runs():
        train = replace(record.config.train, learning_rate=1e-2)
        records.append(replace(record, config=replace(record.config, selected=tuple(rate), train=train)))
    absent = page(records, replace(SUITE, select=rate)).absent
    assert {absence.values for absence in absent} == {
        f"train.learning_rate={value}" for value in rate["train.learning_rate"]
    }
    assert len(absent) == len(TASKS) * len(MEANS) * 2  # what selects is not here
    with pytest.raises(UserError, match="records of the suite"):
        page(records)


def test_every_format_tells_what_is_missing_and_what_to_be_warned_of() -> None:
    records = [replace(r, environment={"commit": str(r.config.encoding)}) for r in runs()]
    records = [r for r in records if (r.config.encoding, r.config.seed) != ("rope", 1)]
    made = page([r for r in records if (r.config.task, r.config.encoding) != ("vit-digits", "concat")])
    warned = "Rows were not measured with the same code."
    assert all(warned in write(made) for write in (markdown, html, latex, to_csv, to_json))
    for write in (markdown, html, latex):
        assert "Missing: rope seed 1" in write(made)
        assert "Missing: concat seeds 0 to 7" in write(made)
    told = [*json.loads(to_json(made))["tables"][1]["rows"], *csv.DictReader(io.StringIO(to_csv(made)))]
    found = [(row["n"], row["missing"], bool(row["mean"])) for row in told if row["encoding"] == "concat"]
    assert found == [(0, [*range(8)], False), ("8", "[]", True), ("0", "[0,1,2,3,4,5,6,7]", False)]
    assert [row["missing"] for row in told if row["encoding"] == "rope"] == [[1], "[1]", "[1]"]


def test_every_format_tells_of_values_that_nothing_is_tested_with() -> None:
    made = page(by_depth(), replace(DEPTHS, vary={"model.num_layers": [1, 2, 4]}))
    assert [series.untested for series in made.series] == [(2,)]
    texts = page(by_depth(), replace(DEPTHS, vary={"model.num_layers": ["1", "2", "4"]}))
    assert [series.untested for series in texts.series] == [(2,)]
    for write in (markdown, html):
        assert "Nothing tested yet with model.num_layers 2." in write(made).replace("\\", "")
    for write in (markdown, html, latex):
        assert "Nothing tested: vit-digits (model.num_layers=2)." in write(made).replace("\\", "")
    rows = [row for row in csv.DictReader(io.StringIO(to_csv(made))) if row["n"] == "0"]
    assert [(row["encoding"], json.loads(row["settings"])["model.num_layers"], row["mean"]) for row in rows] == [
        (name, 2, "") for name in ("add", "concat", "rope")
    ]
    assert {row["missing"] for row in rows} == {"[0,1,2,3,4,5,6,7]"}


def test_the_overview_marks_what_is_of_fewer_runs_than_the_rest() -> None:
    records = [r for r in runs(tasks=["vit-digits"], none=0.5) if r.config.encoding not in ("concat", "none")]
    records = without(records, "vit-digits", "rope", 7)
    records = [run("vit-digits", "add", 2, None) if r.config.seed == 2 and r in records[:8] else r for r in records]
    records += [run("vit-digits", "none", seed, None) for seed in range(2)]
    made = page([*records, *runs(2, ["text-order"])], replace(SUITE, encodings=["add", "concat", "learned", "rope"]))
    overview = side_by_side(made.tables, made)
    assert overview["Encoding"].texts == ["add", "concat", "none", "rope"]
    assert [re.sub(r"\d+\.\d+", "", cell) for cell in overview["vit-digits\naccuracy % ↑, n=7"].texts] == [
        " ±  (1 failed)", "missing", "failed", " ± ",
    ]  # fmt: skip
    assert overview["text-order\naccuracy % ↑, n=2"].texts[2] == "–"  # nobody asked for it
    gaps = differences(made.tables, made)
    assert gaps["Encoding"].texts == ["concat", "none", "rope"]
    assert gaps["vit-digits\npoints ↑"].texts[:2] == ["missing", "failed"]
    fewer = page(without(runs(tasks=["vit-digits"]), "vit-digits", "rope", 0, 1))
    assert differences(fewer.tables, fewer)["vit-digits\npoints ↑"].texts[1].endswith(" better (n=6)")


def test_rows_that_nothing_is_tested_of_are_named_below_the_overview() -> None:
    made = page(runs(2), replace(SUITE, encodings=["add", "concat", "learned", "none", "rope"]))
    assert side_by_side(made.tables, made)["Encoding"].texts == ["add", "concat", "rope"]
    for write in (markdown, html, latex):
        assert "Nothing tested yet of learned, none." in write(made)
        assert "Nothing tested yet" not in whole_text(write)


def test_selecting_runs_that_the_suite_asks_for_are_missed() -> None:
    rate = {"train.learning_rate": [1e-3, 1e-2]}
    chosen = {"selected": tuple(rate)}
    tested = [
        replace(r, config=replace(r.config, train=replace(r.config.train, learning_rate=1e-2), **chosen))
        for r in runs(tasks=["vit-digits"])
    ]
    tried = [
        Record(
            replace(
                run("vit-digits", name, seed, 0.5, **{"train.learning_rate": value}).config, stage="select", **chosen
            ),
            metrics={"val/loss": -value},
        )
        for name in MEANS
        for seed in (SELECTION_SEED, SELECTION_SEED + 1)
        for value in (1e-3, 1e-2)
    ]
    suite = replace(SUITE, tasks=["vit-digits"], select=rate, selection_seeds=2)
    assert page(tested + tried, suite).absent == []
    some = page(tested + tried[1:-2], suite)
    assert [(a.label, a.seed, a.values) for a in some.absent] == [
        ("add", SELECTION_SEED, "train.learning_rate=0.001"),
        ("rope", SELECTION_SEED + 1, "train.learning_rate=0.001"),
        ("rope", SELECTION_SEED + 1, "train.learning_rate=0.01"),
    ]
    assert "3 selecting runs missing" in finding(some)
    both = page(tested + tried, replace(suite, tasks=["vit-digits", "text-order"]))  # of which nothing is tested yet
    assert absence_counts(both.absent) == ["24 tested runs missing", "12 selecting runs missing"]
    kinds = [
        run("text-order", c.encoding, c.seed, 0.5, **{"train.learning_rate": c.train.learning_rate}).config
        for c in (record.config for record in tried)
    ]
    there = [Record(replace(kind, stage="select", **chosen), metrics={"val/loss": 1.0}) for kind in kinds]
    both = page([*tested, *tried, *there[1:]], replace(suite, tasks=["vit-digits", "text-order"]))
    assert absence_counts(both.absent) == ["24 tested runs missing", "1 selecting run missing"]
    assert "Nothing tested: text-order." in markdown(both)
    assert "- Missing: rope, 2 runs that select, seed 1000001\n" in markdown(some)
    with pytest.raises(UserError, match="3 have failed or are missing"):
        some.check_complete()


def test_what_lacks_at_a_value_is_told() -> None:
    deep = [r for r in by_depth() if r.config.model.num_layers == 4]
    lost = page(deep, DEPTHS).absent
    assert {(absence.table_name, absence.seed) for absence in lost} == {
        ("vit-digits (model.num_layers=1)", seed) for seed in range(8)
    }
    assert len(lost) == 8 * len(MEANS)
    assert not page(deep, DEPTHS).series
    some = [r for r in by_depth() if (r.config.model.num_layers, r.config.encoding) != (4, "rope")]
    assert {(absence.table_name, absence.label) for absence in page(some, DEPTHS).absent} == {
        ("vit-digits (model.num_layers=4)", "rope")
    }
    (along,) = page([*some, *[r for r in by_depth() if r.config.encoding == "rope"][:1]], DEPTHS).series
    told = side_by_side(along.ordered, page(some, DEPTHS), along.setting)
    assert told["num_layers 4\naccuracy % ↑, n=8"].texts[2] == "missing"
