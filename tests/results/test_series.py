"""Pages along a setting that a suite varies."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import ttest_1samp

from pebench.results.contrasts import Change
from pebench.results.figures import along
from pebench.results.finding import finding
from pebench.results.grids import differences, side_by_side
from pebench.results.publish import publish
from pebench.results.stats import Difference, Estimate
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from tests.results.page_records import (
    DEPTHS,
    MEANS,
    NOISE,
    TASKS,
    by_depth,
    page,
    run,
)


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
    assert [line for line in markdown(made).splitlines() if line.startswith("## vit-digits, ")] == [
        "## vit-digits, model.num_layers=1", "## vit-digits, model.num_layers=4",
    ]  # fmt: skip
    assert markdown(made).count("\nCite: ") == html(made).count(">Cite: ")
    assert r"vit-digits by model.num\_layers (protocol 0.2): mean" in latex(made)
    files = {path.name for path in publish(made, by_depth(), tmp_path / "mine")}
    assert {"vit-digits-by-num_layers-0.2.svg", "vit-digits-by-num_layers-0.2.png"} <= files
    assert "vit-digits-smoke-num_layers-4-differences.svg" in files
    axes = along.draw(series).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "4"]
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([50.35, 60.35])


def test_names_have_no_order_and_are_drawn_side_by_side_without_a_line() -> None:
    precisions = ["64-true", "32-true"]
    records = [
        run("vit-digits", encoding, seed, 0.6, **{"train.precision": precision})
        for precision in precisions
        for encoding in MEANS
        for seed in range(2)
    ]
    (series,) = page(records, replace(DEPTHS, vary={"train.precision": precisions})).series
    axes = along.draw(series).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["32-true", "64-true"]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}
    places = [[-0.2, 0.8], [0.0, 1.0], [0.2, 1.2]]
    assert [line.get_xdata() for line in axes.lines] == [pytest.approx(place) for place in places]
    assert "bars:" in along.caption(series)
    assert "Lines:" in along.caption(page(by_depth(), DEPTHS).series[0])


def heads_of(text: str) -> list[str]:
    return re.findall("^## (.*)", text, re.MULTILINE)


def test_an_overview_is_named_by_what_all_its_tables_have_in_common() -> None:
    made = page(
        [*by_depth(), *(record for record in by_depth(task="text-order") if record.config.model.num_layers != 4)]
    )
    assert [[table.task.name for table in group] for group in made.overviews] == [["text-order", "vit-digits"]]
    text = markdown(made)
    assert [title for title in heads_of(text) if title.startswith(("Overview", "text", "vit"))] == [
        "Overview", "text-order", "vit-digits, model.num_layers=1", "vit-digits, model.num_layers=4",
    ]  # fmt: skip
    assert {"Tier smoke.", "Tier smoke, model.num_layers=1."} < {*re.findall(r"Tier .*\.$", text, re.MULTILINE)}
    assert "protocol 0.2" not in text.partition("## Provenance")[0]


@pytest.mark.usefixtures("no_pictures")
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
    changed = next(line for line in markdown(made).splitlines() if line.startswith("| none - add"))
    assert [cell.strip() for cell in changed.split("|")[2:7]] == [
        "not separable at 3 seeds", "+4.00 ± 2.48", "+2.00 ± 2.48", "-2.00 ± 2.48", "3",
    ]  # fmt: skip
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


def test_a_difference_that_may_be_zero_at_one_end_has_not_turned() -> None:
    ends = (Estimate(0.1, 0.5, 8), Estimate(-4.0, 2.0, 8))
    for before, after in (ends, ends[::-1]):
        difference = Difference(after.mean - before.mean, 2.0, 8, 0.001)
        assert Change("none", "add", (before, after), difference, 0.002).verdict.text == "changed"


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


@pytest.mark.usefixtures("no_pictures")
def test_ends_of_a_series_that_were_not_run_alike_are_told() -> None:
    assert "in rounding" not in markdown(page(by_depth(), DEPTHS))
    moved = [
        replace(r, environment=r.environment | {"device": f"cpu of {r.config.model.num_layers}"}) for r in by_depth()
    ]
    for write in (markdown, html):
        assert "The two ends differ in device, and so in rounding" in write(page(moved, DEPTHS))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
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


def test_a_row_that_one_end_alone_has_is_no_comparison_to_correct_for() -> None:
    records = [
        replace(r, metrics={"test/accuracy": r.metrics["test/accuracy"] + (r.config.encoding == "rope") * noise})
        for r in by_depth()
        for noise in [r.config.model.num_layers * (0.001 + NOISE[r.config.seed])]
    ]
    more = [run("vit-digits", "none", seed, 0.5, **{"model.num_layers": 4}) for seed in range(8)]
    alone, beside = (made.changes(made.series[0]) for made in (page(records, DEPTHS), page([*records, *more], DEPTHS)))
    assert [change.p_adjusted for change in alone if change.p_adjusted < 1]
    assert alone == beside


def test_a_finding_tells_the_tables_of_a_task_apart() -> None:
    records = [
        replace(r, metrics={**r.metrics, "test/accuracy": r.metrics["test/accuracy"] - 0.2})
        if (r.config.encoding, r.config.model.num_layers) == ("rope", 4) else r
        for r in by_depth()
    ]  # fmt: skip
    found = finding(page(records, DEPTHS))
    assert "vit-digits (model.num_layers=1): rope" in found.partition("worse")[0]
    assert "vit-digits (model.num_layers=4): " in found.partition("worse")[2]


def test_metrics_of_different_protocols_are_not_along_one_setting() -> None:
    records = [replace(r, protocol="0.1") if r.config.model.num_layers == 4 else r for r in by_depth()]
    assert not page(records, DEPTHS).series
