"""Pages of a suite: what they say, what they never hide, and every format that they are written in."""

import csv
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy.stats import ttest_1samp

from pebench.cli import main
from pebench.config import SELECTION_SEED
from pebench.errors import UserError
from pebench.results.contrasts import Change
from pebench.results.figures import along
from pebench.results.grids import differences, pairs, side_by_side
from pebench.results.missing import absence_counts
from pebench.results.page import Page
from pebench.results.provenance import warnings
from pebench.results.publish import FORMATS, publish, written
from pebench.results.stats import Difference, Estimate, equivalence, holm, paired_difference
from pebench.results.writers.csv import to_csv
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.runs.suite import Suite
from pebench.tasks import configure

TASKS = ["text-order", "vit-digits"]
NOISE = [0.001, -0.001, 0.002, -0.002, 0.0005, -0.0005, 0.0015, -0.0015]
MEANS = {"add": 0.6, "concat": 0.6005, "rope": 0.7}
SUITE = Suite(
    "mine", "Does it turn?", TASKS, [*MEANS], seeds=8, tier="smoke", expect="rope ahead", margin={"vit-digits": 0.01}
)


def run(task: str, encoding: str, seed: int, value: float | None, **settings: Any) -> Record:
    """A record of a run that finished with this accuracy, or failed if it is None."""
    config = configure(task, encoding, seed, "smoke", settings)
    if value is None:
        return Record(config, status="failed", error={"kind": "diverged", "reason": "loss is nan"})
    return Record(config, metrics={"test/accuracy": value}, dataset={"fingerprint": "f" * 64})


def runs(seeds: int = 8, tasks: Sequence[str] = TASKS, **values: float) -> list[Record]:
    """Records of the suite; encodings differ by a constant and a little noise of their own."""
    return [
        run(task, encoding, seed, mean + 0.02 * seed + NOISE[(seed + number) % 8])
        for task in tasks
        for number, (encoding, mean) in enumerate((MEANS | values).items())
        for seed in range(seeds)
    ]


def without(records: list[Record], task: str, encoding: str, *seeds: int) -> list[Record]:
    return [r for r in records if (r.config.task, r.config.encoding) != (task, encoding) or r.config.seed not in seeds]


def page(records: list[Record], suite: Suite | None = SUITE) -> Page:
    return Page.of(records, suite)


def heads(text: str) -> list[str]:
    return re.findall(r"^## ([\w-]+)", text, re.MULTILINE)


# What a page says


def test_a_page_has_its_parts_in_order() -> None:
    text = markdown(page(runs(3)))
    assert text.startswith("# mine\n")
    assert [text.index(f"**{word}.**") for word in ("Question", "Finding", "Expected", "Decision rule")] == sorted(
        text.index(f"**{word}.**") for word in ("Question", "Finding", "Expected", "Decision rule")
    )
    parts = ["Overview", "What", "What", *TASKS, "Across", "Gates", "Reproduce", "Provenance", "Failed", "Limits"]
    assert heads(text) == [*parts, "Notes"]


def test_a_page_states_what_its_suite_declares() -> None:
    text = markdown(page(runs()))
    assert "**Question.** Does it turn?" in text
    assert "**Expected.** Rope ahead." in text
    assert "Margins: 0.5 points (text-order); 1 points (vit-digits)." in text
    assert "pebench run --suite mine\n" in text
    assert "**Decision rule.** By eye." in markdown(page(runs(), replace(SUITE, decision="By eye.")))
    changed = page(runs(), replace(SUITE, remarks=("A seed more.", "It was dark.")))
    assert "\n\n**Since it was declared:**\n\n- A seed more.\n- It was dark.\n\n## " in markdown(changed)
    assert "<b>Since it was declared:</b></p>\n<ul>\n<li>A seed more.</li>\n<li>It was dark.</li>" in html(changed)
    assert "Since it was declared" not in markdown(page(runs())) + html(page(runs()))
    assert json.loads(to_json(changed))["suite"]["remarks"] == ["A seed more.", "It was dark."]


def test_another_reference_than_the_declared_one_is_told() -> None:
    text = markdown(Page.of(runs(), SUITE, reference="rope"))
    assert "**Not as declared.** These differences are to `rope`; those that the suite declared are to `add`." in text
    assert "**Decision rule.** An encoding differs from `add`" in text
    assert "Not as declared" not in markdown(page(runs())) + markdown(Page.of(runs(), None, reference="rope"))


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


def test_a_page_says_how_many_runs_had_begun_when_its_suite_was_declared() -> None:
    times = ["2026-01-02T03:03:59+00:00", "2026-01-02T03:04:00+00:00", "2026-01-02T04:03:59+01:00"]
    records = [replace(record, started=times[record.config.seed % 3]) for record in runs(3)]
    declared = replace(SUITE, declared="2026-01-02 03:04")
    told = "**Declared.** 2026-01-02 03:04 UTC, when 12 of 18 runs here had begun."
    assert f"{told}\n" in markdown(page(records, declared))
    changed = replace(declared, remarks=("A seed more.",))
    assert f"{told} What has come up since is told next.\n" in markdown(page(records, changed))
    assert json.loads(to_json(page(records, declared)))["suite"]["declared"] == "2026-01-02T03:04:00+00:00"
    earlier = replace(SUITE, declared="2026-01-01 12:00")
    assert "2026-01-01 12:00 UTC, before any of 18 runs here had begun." in markdown(page(records, earlier))
    assert "**Declared.**" not in markdown(page(records))
    with pytest.raises(UserError, match="declared must be a date and time, UTC"):
        replace(SUITE, declared="last week").kinds()


def section(text: str, task: str, header: str) -> list[str]:
    """The lines of a table of a task that has a column of this name."""
    lines = text[text.index(f"## {task}") :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| Encoding") and f" {header} " in line)
    return lines[first : lines.index("", first)]


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
    assert "Declared contrasts" not in markdown(page(runs()))
    with pytest.raises(UserError, match="unknown encoding of a contrast 'rop'"):
        replace(asked, contrasts=[("rop", "add")]).kinds()


def test_what_is_to_be_cited_stands_by_every_table() -> None:
    texts = {"markdown": markdown(page(runs())), "html": html(page(runs())), "latex": latex(page(runs()))}
    assert texts["markdown"].count("\nCite: ") == 1 + len(TASKS) + 1  # overview, tables, across
    assert texts["html"].count(">Cite: ") == 1 + len(TASKS) + 1
    assert texts["html"].count('"https://arxiv.org/abs/1706.03762" title="Attention Is All You Need"') == 4
    assert texts["latex"].count(r"Sources: \cite{") == texts["latex"].count(r"\begin{table}")
    assert "`pebench cite pebench text-order vit-digits add concat rope`" in texts["markdown"]  # of both


def test_how_to_read_each_kind_of_picture_is_told_where_there_are_some() -> None:
    assert "## Pictures" not in markdown(page(runs()))
    text = markdown(page(runs()), "figures")
    kinds = {title.partition(",")[0] for title in re.findall(r"!\[(.*?)\]", text)}
    told = text.partition("## Pictures\n")[2].partition("\n## ")[0]
    assert kinds == set(re.findall(r"^- (.*?)\. ", told, re.MULTILINE))


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

    def text(left_out: int | None = None) -> str:
        records = [
            run("vit-digits", encoding, seed, value)
            for encoding, row in every.items()
            for seed, value in enumerate(row)
            if seed != left_out
        ]
        return markdown(page(records, None))

    called = [re.search(r"^\| concat .*\| better ", text(seed), re.MULTILINE) for seed in (None, *range(5))]
    assert called[0]
    assert called.count(None) == seeds
    told = [
        (label, seeds)
        for seeds, label in re.findall(
            r"Without a single seed, for (\d) of the 5 that one could leave out, (\w+) would not be called better",
            text(),
        )
    ]
    assert told == [("concat", str(seeds))] * bool(seeds)


def test_a_run_that_failed_early_says_nothing_of_machine_and_code() -> None:
    """It has no environment."""
    here = {"device": "cpu: A", "threads": 1, "commit": "one", "versions": {"torch": "2"}}
    records = [replace(r, environment=here) for r in runs(2)]
    assert "Rows were not measured" not in markdown(page([*records, run("vit-digits", "none", 0, None)], None))
    other = replace(run("vit-digits", "none", 0, 0.5), environment=here | {"device": "cpu: B", "commit": "two"})
    text = markdown(page([*records, other], None))
    assert "Rows were not measured on the same device" in text
    assert "Rows were not measured with the same code" in text


def test_it_is_told_what_ran_where() -> None:
    def told(**places: list[tuple[str, int]]) -> str:
        (table,) = page(
            [
                replace(
                    run("vit-digits", name, seed, 0.5), environment={"device": f"cpu: {device}", "threads": threads}
                )
                for name, found in places.items()
                for seed, (device, threads) in enumerate(found)
            ],
            None,
        ).tables
        return " ".join(warning for warning in warnings(table) if "device" in warning)

    assert told(add=[("A", 1)] * 2, rope=[("A", 1)] * 2) == ""
    rows = told(add=[("A", 1), ("A", 1)], concat=[("B", 1), ("A", 1)], rope=[("B", 1), ("B", 1)], none=[("A", 1)] * 2)
    assert rows.startswith("Rows were not measured on the same device, which may round otherwise; pairing by seed")
    assert rows.endswith(" cpu: B ran concat (seed 0), rope; cpu: A ran all else.")
    seeds = told(add=[("A", 1), ("B", 1), ("B", 2)], rope=[("A", 1), ("B", 1), ("B", 2)])
    assert seeds.startswith("Seeds were not all run on the same device; of each seed, all rows were.")
    assert "cpu: A, threads 1, ran add (seed 0), rope (seed 0); " in seeds


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


def test_without_a_suite_nothing_is_asked_and_nothing_called_equivalent() -> None:
    text = markdown(page(runs(), None))
    assert text.startswith("# Results\n")
    assert "**Question.**" not in text
    assert "; equivalent" not in text


def test_the_finding_counts_and_names() -> None:
    assert page(runs()).finding == (
        "Of 4 comparisons with add: 2 better (text-order: rope; vit-digits: rope); 2 not separable; "
        "2 of all equivalent within the margin (text-order: concat; vit-digits: concat)."
    )
    assert page(runs(1)).finding == "Of 4 comparisons with add: 4 not tested; 42 tested runs missing."
    alone = [r for r in runs(2) if r.config.encoding == "rope"]
    assert page(alone, None).finding.startswith("Nothing is compared")


def test_equivalence_is_said_beside_the_verdict_from_eight_pairs_on() -> None:
    said = "not separable at 8 seeds; equivalent within 1 points"
    assert said in markdown(page(runs()))
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


def test_what_tables_share_is_told_once() -> None:
    text = markdown(page(runs())).partition("## Provenance")[2]
    assert text.count("Weights chosen by") == 1
    assert text.count("Splits:") == 2


# What is absent


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (without(runs(), "vit-digits", "rope", 3), "- Missing: rope seed 3\n"),
        ([*without(runs(), "vit-digits", "rope", 3), run("vit-digits", "rope", 3, None)], "Failed: rope seed 3: `loss"),
        (without(runs(), "vit-digits", "rope", *range(8)), "- Missing: rope seeds 0 to 7\n"),
        (runs(7), "- Missing: add seed 7\n"),
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
    page(runs()).check_complete()
    assert "None: every run finished (48)." in markdown(page(runs()))


def test_failed_runs_are_marked_across_tasks_with_and_without_them() -> None:
    text = markdown(page([*without(runs(), "vit-digits", "rope", 3), run("vit-digits", "rope", 3, None)]))
    row = next(line for line in text.partition("## Across")[2].splitlines() if line.startswith("| rope"))
    assert "| 1 † |" in re.sub(" +", " ", row)
    assert "excluding failed" in text
    assert "excluding failed" not in markdown(page(runs()))


def test_what_the_suite_did_not_plan_is_told() -> None:
    text = markdown(page([*runs(), run("vit-digits", "none", 0, 0.5), *(
        run("vit-digits", "add", 0, 0.5, **{"train.max_steps": 3}),)]))  # fmt: skip
    assert "Not planned by the suite: vit-digits (other settings), vit-digits none." in text


def test_records_of_another_suite_are_refused() -> None:
    with pytest.raises(UserError, match=r"expected records of the suite 'mine', .* vit-digits \(quick\)"):
        page([Record(configure("vit-digits", "add", 0, "quick"), metrics={"test/accuracy": 0.5})])


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


def test_ranks_are_not_told_apart_with_few_tasks_and_the_page_says_why() -> None:
    assert "that takes 5 tasks and 3 encodings; there are 2 and 3." in markdown(page(runs()))


# Files


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_records_does_not_change_a_byte(write: Callable[[Page], str], seed: int) -> None:
    records = [*runs(), run("vit-digits", "none", 0, None)]
    assert write(page(random.Random(seed).sample(records, len(records)))) == write(page(records))


def test_every_format_and_the_records_are_written(tmp_path: Path) -> None:
    files = publish(page(runs()), runs(), tmp_path / "new" / "v1.2")
    texts = [path.name for path in files if path.parent == tmp_path / "new"]
    assert texts == ["v1.2.md", "v1.2.html", "v1.2.tex", "v1.2.csv", "v1.2.json", "v1.2.jsonl"]
    assert {path.parent.name for path in files if path.name not in texts} == {"v1.2-figures"}
    assert all(path.is_file() for path in files)
    again = page(read_records(tmp_path / "new" / "v1.2.jsonl"))
    for ending, text in written(again, "v1.2").items():
        assert (tmp_path / "new" / f"v1.2{ending}").read_text(encoding="utf-8") == text
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", (tmp_path / "new" / "v1.2.md").read_text(encoding="utf-8"))
    assert len(pictures) == len(set(pictures)) >= len(TASKS)
    assert all((tmp_path / "new" / picture).is_file() for picture in pictures)


def test_pictures_that_a_page_no_longer_has_are_taken_away(tmp_path: Path) -> None:
    def drawn(records: list[Record]) -> set[str]:
        publish(page(records), records, tmp_path / "v1.2")
        return {path.name for path in (tmp_path / "v1.2-figures").iterdir()}

    before, fewer = drawn(runs()), [record for record in runs() if record.config.task == "vit-digits"]
    (tmp_path / "v1.2-figures" / "notes.txt").touch()  # no picture
    after = drawn(fewer)
    assert "notes.txt" in after
    assert after - {"notes.txt"} < before
    assert {name.rpartition(".")[2] for name in before - after} == {"svg", "png"}


def test_the_command_line_writes_a_suites_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "mine.py"
    suite.write_text("from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['vit-digits'], ['add'], 2, 'smoke')\n")
    records = [run("vit-digits", "add", 0, 0.5)]
    write_jsonl(records, tmp_path / "page.jsonl")
    before = (tmp_path / "page.jsonl").stat().st_mtime_ns
    words = ["report", str(tmp_path / "page.jsonl"), "--suite", str(suite)]
    assert main([*words, "--output", str(tmp_path / "page")]) == 0
    assert "**Question.** Why?" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (tmp_path / "page.jsonl").stat().st_mtime_ns == before  # what was read is left as it is
    capsys.readouterr()
    assert main([*words, "--strict", "--output", str(tmp_path / "strict")]) == 2
    assert "vit-digits: Missing: add seed 1" in capsys.readouterr().err
    assert not (tmp_path / "strict.md").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--format", "csv", "--output", "x"], "either --format"),
        (["--format", "latexx"], "latexx"),
        (["--output", "."], "--output expects how files' names begin"),
        (["--output", "out/core.md"], "begin, out/core, got one of them: out/core.md."),
        (["--output", "core.jsonl"], "begin, core, got one of them: core.jsonl."),
        (["--suite", "nonsense"], "nonsense"),
        (["--suite", "core"], "expected records of the suite 'core'"),
    ],
)
def test_what_cannot_be_written_is_told(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(runs(1), tmp_path / "all.jsonl")
    assert main(["report", str(tmp_path / "all.jsonl"), *words]) == 2
    assert expected in capsys.readouterr().err


def test_latex_has_a_float_for_each_table_and_no_bare_special_character() -> None:
    text = latex(page(runs()))
    assert text.count(r"\begin{table}") == text.count(r"\end{tabular}") == 2 + 2 * 3 + 1
    assert len(set(re.findall(r"\\label{(.*?)}", text))) == 9
    assert text.count(r"\toprule") == 9
    body = re.sub("(?m)^%.*", "", text)
    assert not re.search(r"(?<!\\)[%#]|[±Δ↑↓†–_]", body.replace(r"\_", ""))
    assert r"accuracy \% $\uparrow$" in text


def test_latex_and_csv_have_the_numbers_of_the_page() -> None:
    rows = {(row["task"], row["encoding"]): row for row in csv.DictReader(io.StringIO(to_csv(page(runs()))))}
    assert {key: float(row["mean"]) for key, row in rows.items()} == {
        (table.task.name, row.config.encoding): fmean(row.values.values())
        for table in page(runs()).tables
        for row in table.rows
    }
    for value in re.findall(r"\d\d\.\d\d ± \d+\.\d\d", markdown(page(runs()))):
        assert value.replace("±", r"$\pm$") in latex(page(runs()))


def test_json_has_what_the_suite_declares_and_the_figures_across_tasks() -> None:
    values = json.loads(to_json(page(runs())))
    assert values["suite"]["margin"] == {"text-order": 0.005, "vit-digits": 0.01}
    assert values["finding"] == page(runs()).finding
    (across,) = values["across"]
    assert across["tasks"] == {"text-order": 8, "vit-digits": 8}
    assert across["rows"][0]["encoding"] == "rope"
    assert across["rows"][0]["rank"] == {"mean": 1.0, "low": 1.0, "high": 1.0}


def test_pages_are_made_without_torch(tmp_path: Path) -> None:
    write_jsonl([r for r in runs(2) if r.config.seed != SELECTION_SEED], tmp_path / "all.jsonl")
    suite = tmp_path / "mine.py"
    suite.write_text(
        "from pebench import Suite\n"
        f"SUITE = Suite('mine', 'Why?', {TASKS}, ['add', 'concat', 'rope'], 2, 'smoke', regime='width')\n"
    )
    code = (
        "import sys; from pebench.cli import main; "
        f"assert main(['report', {str(tmp_path)!r} + '/all.jsonl', '--suite', {str(suite)!r}, "
        f"'--output', {str(tmp_path)!r} + '/page']) == 0; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("False\n")


# A setting that varies


DEPTHS = replace(SUITE, tasks=["vit-digits"], vary={"model.num_layers": [1, 4]})


def by_depth(shallow: float = 0.5, deep: float = 0.6, task: str = "vit-digits") -> list[Record]:
    return [
        run(task, encoding, seed, mean + (0.01 if encoding == "rope" else 0) + 0.001 * seed, **settings)
        for settings, mean in (({}, shallow), ({"model.num_layers": 4}, deep))
        for encoding in MEANS
        for seed in range(8)
    ]


def test_a_setting_that_varies_has_a_table_and_a_picture_of_its_own(tmp_path: Path) -> None:
    made = page(by_depth(), DEPTHS)
    assert [*made.absent] == []
    (series,) = made.series
    grid = side_by_side(series.ordered, made, "model.num_layers")
    assert [*grid] == ["Encoding", "num_layers 1\naccuracy % ↑, n=8", "num_layers 4\naccuracy % ↑, n=8"]
    assert [cell.split()[0] for cell in grid["num_layers 4\naccuracy % ↑, n=8"].texts] == ["60.35", "60.35", "61.35"]
    gaps = differences(series.ordered, made, "model.num_layers")
    assert gaps["Encoding"].texts == ["concat", "rope"]
    assert gaps["num_layers 1\npoints ↑"].texts[1].startswith("+1.00 ")
    assert gaps["num_layers 1\npoints ↑"].texts[1].endswith(" better")
    assert "## vit-digits by model.num_layers" in markdown(made)
    assert [line.split(", ")[1] for line in markdown(made).splitlines() if line.startswith("## vit-digits (")] == [
        "model.num_layers=1", "model.num_layers=4",
    ]  # fmt: skip
    assert markdown(made).count("\nCite: ") == html(made).count(">Cite: ")
    assert r"vit-digits by model.num\_layers (protocol 0.2): mean" in latex(made)
    files = {path.name for path in publish(made, by_depth(), tmp_path / "mine")}
    assert {"vit-digits-by-num_layers-0.2.svg", "vit-digits-by-num_layers-0.2.png"} <= files
    assert "vit-digits-smoke-num_layers-4-differences.svg" in files
    axes = along.draw(series).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "4"]
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([50.35, 60.35])


def test_an_overview_is_named_by_what_all_its_tables_have_in_common() -> None:
    made = page(
        [*by_depth(), *(record for record in by_depth(task="text-order") if record.config.model.num_layers != 4)]
    )
    assert [[table.task.name for table in group] for group in made.overviews] == [["text-order", "vit-digits"]]
    assert "## Overview (tier smoke)\n" in markdown(made)
    assert "## text-order (tier smoke, protocol 0.2)\n" in markdown(made)
    assert "## vit-digits (tier smoke, model.num_layers=1, protocol 0.2)\n" in markdown(made)


def test_a_page_tells_how_differences_change_along_a_setting() -> None:
    gaps = {("none", 1): [3.0, 5.0, 4.0], ("none", 4): [1.0, 2.0, 3.0], ("rope", 1): [-1.0, -2.0, -1.5]}
    gaps[("rope", 4)] = [-3.0, -5.0, -4.0]  # changes: -2, -3, -1 and -2, -3, -2.5
    records = [
        run("vit-digits", encoding, seed, 0.5 + gaps.get((encoding, layers), [0.0] * 3)[seed] / 100, **settings)
        for layers, settings in ((1, {}), (4, {"model.num_layers": 4}))
        for encoding in ("add", "none", "rope")
        for seed in range(3)
    ]
    suite = replace(DEPTHS, encodings=["add", "none", "rope"], seeds=3, contrasts=[("none", "rope"), ("rope", "add")])
    made = page(records, suite)
    ((none, rope, apart),) = [made.changes(series) for series in made.series]
    assert [(change.first, change.second) for change in (none, rope, apart)] == [
        ("none", "add"), ("rope", "add"), ("none", "rope"),
    ]  # fmt: skip
    assert [end.mean for end in none.ends] == pytest.approx([0.04, 0.02])
    assert none.difference.mean == pytest.approx(-0.02)
    assert none.difference.half_width == pytest.approx(0.01 * 4.302653 / 3**0.5)  # s = 0.01
    p = {change: ttest_1samp(values, 0).pvalue for change, values in ((none, [2, 3, 1]), (rope, [2, 3, 2.5]))}
    assert rope.p_adjusted == pytest.approx(3 * p[rope])
    assert none.p_adjusted == pytest.approx(2 * p[none])
    assert (none.verdict.text, rope.verdict.text, apart.verdict.text) == (
        "not separable at 3 seeds",
        "wider",
        "not separable at 3 seeds",
    )
    for write in (markdown, html, latex):
        assert "none - add" in write(made)
    assert "-2.00 ± 2.48 |   3 | not separable at 3 seeds" in markdown(made)
    (told,) = json.loads(to_json(made))["series"]
    assert (told["setting"], told["values"]) == ("model.num_layers", [1, 4])
    assert [(row["first"], row["verdict"]) for row in told["changes"]] == [
        ("none", none.verdict.text), ("rope", "wider"), ("none", apart.verdict.text),
    ]  # fmt: skip


def test_a_difference_that_shrinks_is_narrower_whichever_way_it_points() -> None:
    ends = [Estimate(mean, 0.1, 8) for mean in (-9.0, -7.0, 6.0)]
    for (before, after), word in {(0, 1): "narrower", (1, 0): "wider", (1, 2): "turned", (2, 1): "turned"}.items():
        difference = Difference(ends[after].mean - ends[before].mean, 0.1, 8, 0.001)
        assert Change("none", "add", (ends[before], ends[after]), difference, 0.002).verdict.text == word


def test_a_change_is_told_at_the_seeds_that_both_ends_have_and_contrasts_may_be_lists() -> None:
    gaps = {1: [0.0, 0.02, 0.04, -0.9], 4: [0.1, 0.13, 0.12, None]}
    records = [
        run("vit-digits", encoding, seed, 0.5 + (encoding == "rope") * gap, **{"model.num_layers": layers})
        for layers, row in gaps.items()
        for seed, gap in enumerate(row)
        if gap is not None
        for encoding in ("add", "rope")
    ]
    suite = replace(DEPTHS, encodings=["add", "rope"], seeds=4, contrasts=[["rope", "add"]])
    made = page(records, suite)
    (change,) = made.changes(made.series[0])
    assert [end.mean for end in change.ends] == pytest.approx([0.02, 0.35 / 3])
    assert change.difference.mean == pytest.approx(0.35 / 3 - 0.02)


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


def test_ends_of_a_series_that_were_not_run_alike_are_told() -> None:
    assert "in rounding" not in markdown(page(by_depth(), DEPTHS))
    moved = [
        replace(r, environment=r.environment | {"device": f"cpu of {r.config.model.num_layers}"}) for r in by_depth()
    ]
    for write in (markdown, html):
        assert "The two ends differ in device, and so in rounding" in write(page(moved, DEPTHS))


def test_tables_along_a_setting_are_not_shown_side_by_side_again() -> None:
    suite = replace(DEPTHS, tasks=TASKS)
    records = [r for task in TASKS for r in by_depth(task=task)]
    both = page(records, suite)
    assert (len(both.series), len(both.summaries), both.overviews) == (2, 2, [])
    one = page([r for r in records if (r.config.task, r.config.model.num_layers) != ("text-order", 4)], suite)
    assert [[table.task.name for table in group] for group in one.overviews] == [TASKS]  # of one layer
    for write in (markdown, html, latex):
        assert "Overview" not in write(both)
        assert "Overview" in write(one)


def test_a_row_that_one_end_lacks_has_no_change() -> None:
    records = [r for r in by_depth() if (r.config.encoding, r.config.model.num_layers) != ("rope", 4)]
    made = page(records, DEPTHS)
    assert [change.first for series in made.series for change in made.changes(series)] == ["concat"]


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


def test_pairs_of_fewer_runs_than_the_rest_say_so() -> None:
    kept = [r for r in runs(tasks=["vit-digits"]) if r.config.encoding != "rope" or r.config.seed > 5]
    grid = pairs(page(kept).tables[0])
    assert [("n=" in cell, cell.endswith(" (n=2)")) for cell in grid["- concat"].texts] == [
        (False, False),
        (True, True),
    ]


def test_the_overview_marks_what_is_of_fewer_runs_than_the_rest() -> None:
    records = [r for r in runs(tasks=["vit-digits"], none=0.5) if r.config.encoding not in ("concat", "none")]
    records = without(records, "vit-digits", "rope", 7)
    records = [run("vit-digits", "add", 2, None) if r.config.seed == 2 and r in records[:8] else r for r in records]
    records += [run("vit-digits", "none", seed, None) for seed in range(2)]
    made = page([*records, *runs(2, ["text-order"])], replace(SUITE, encodings=["add", "concat", "learned", "rope"]))
    overview = side_by_side(made.tables, made)
    assert overview["Encoding"].texts == ["add", "concat", "learned", "none", "rope"]
    assert [re.sub(r"\d+\.\d+", "", cell) for cell in overview["vit-digits\naccuracy % ↑, n=7"].texts] == [
        " ±  (1 failed)", "missing", "missing", "failed", " ± ",
    ]  # fmt: skip
    assert overview["text-order\naccuracy % ↑, n=2"].texts[3] == "–"  # nobody asked for it
    gaps = differences(made.tables, made)
    assert gaps["Encoding"].texts == ["concat", "learned", "none", "rope"]
    assert gaps["vit-digits\npoints ↑"].texts[:3] == ["missing", "missing", "failed"]
    fewer = page(without(runs(tasks=["vit-digits"]), "vit-digits", "rope", 0, 1))
    assert differences(fewer.tables, fewer)["vit-digits\npoints ↑"].texts[1].endswith(" better (n=6)")


def test_a_finding_tells_the_tables_of_a_task_apart() -> None:
    records = [
        replace(r, metrics={**r.metrics, "test/accuracy": r.metrics["test/accuracy"] - 0.2})
        if (r.config.encoding, r.config.model.num_layers) == ("rope", 4) else r
        for r in by_depth()
    ]  # fmt: skip
    finding = page(records, DEPTHS).finding
    assert "vit-digits (model.num_layers=1): rope" in finding.partition("worse")[0]
    assert "vit-digits (model.num_layers=4): " in finding.partition("worse")[2]


def test_metrics_of_different_protocols_are_not_along_one_setting() -> None:
    records = [replace(r, protocol="0.1") if r.config.model.num_layers == 4 else r for r in by_depth()]
    assert not page(records, DEPTHS).series


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
    assert "3 selecting runs missing" in some.finding
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
