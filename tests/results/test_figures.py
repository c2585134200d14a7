"""Pictures: what they show, that they can be read, and that the same records give the same bytes."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from pebench.config import DataConfig, ModelConfig, RunConfig, TrainConfig
from pebench.encodings.registry import encoding_cards
from pebench.results import figures
from pebench.results.across import Interval, Standing, Summary
from pebench.results.contrasts import Equivalence
from pebench.results.figures import cost, curves, differences, overview, ranks, style
from pebench.results.figures.curves import size_ticks
from pebench.results.page import Page
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record
from tests.results.published import published_page

MARKED = sorted(
    (name for name, card in encoding_cards().items() if card.declared["mark"] is not None),
    key=lambda name: encoding_cards()[name].declared["mark"],
)
"""Encodings whose class declares a mark, in the order of their marks."""


def record(encoding: str, seed: int, value: float | None, **args: int) -> Record:
    """A run whose validation accuracy is 0.1 and 0.05 below its test accuracy; it failed if that is None."""
    config = RunConfig("vit-digits", encoding, seed, "quick", args, ModelConfig(), DataConfig(), TrainConfig())
    if value is None:
        return Record(config, status="failed", error={"reason": "loss is nan", "kind": "diverged", "log": ""})
    curve = [{"step": step, "val/accuracy": value - gap} for step, gap in ((10, 0.1), (20, 0.05))]
    return Record(
        config, metrics={"test/accuracy": value}, curve=curve, parameters={"encoding": 0, "total": 1000},
        flops_per_sample=5000, throughput=10.0,
    )  # fmt: skip


def table(**values: list[float | None]) -> Table:
    """Encodings (with an underscore: of an option) to accuracies by seed."""
    return build_tables(
        record(name.partition("_")[0], seed, value, **({"d_p": int(name.partition("_")[2])} if "_" in name else {}))
        for name, accuracies in values.items()
        for seed, value in enumerate(accuracies)
    )[0]


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def linear(colour: str) -> np.ndarray:
    """Linear RGB (3,) of sRGB in hexadecimal."""
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB (3,) of linear RGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ rgb.clip(0, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


BLINDNESS = {  # Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
    "none": np.eye(3),
    "protanopia": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "deuteranopia": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
    "tritanopia": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_differ_to_the_colour_blind_in_light_and_dark(kind: str) -> None:
    every = (*style.COLOURS, *style.OWN_COLOURS)
    for palette in (every, [style.DARK[colour] for colour in every]):
        seen = [lab(BLINDNESS[kind] @ linear(colour)) for colour in palette]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 10


def test_the_colours_of_the_core_encodings_stand_out_from_the_background() -> None:
    for colour in style.COLOURS[:5]:
        assert 1.05 / (luminance(colour) + 0.05) > 3
        assert (luminance(style.DARK[colour]) + 0.05) / (luminance(style.DARK[style.PAPER]) + 0.05) > 3


def test_every_encoding_has_a_mark_that_no_other_has() -> None:
    assert [encoding_cards()[name].declared["mark"] for name in MARKED] == [*range(style.DECLARED)]
    looks = {(mark.colour, mark.marker) for mark in map(style.mark, MARKED)}
    assert len(looks) == len(MARKED)


def test_a_plug_in_has_a_mark_that_none_of_ours_has_and_that_stays() -> None:
    for name in ("my_module:MyEncoding", "mine", "yours"):
        assert style.mark(name).colour in style.OWN_COLOURS
    assert not {style.mark(name).colour for name in encoding_cards()} & {*style.OWN_COLOURS}
    assert style.mark("mine").colour == "#732e00"  # the same in every process


def test_options_of_one_encoding_share_its_colour_and_differ_in_filling() -> None:
    marks = style.marks(["concat", "concat (d_p=16)", "concat (d_p=8)", "rope"])
    assert {marks[name].colour for name in list(marks)[:3]} == {style.mark("concat").colour}
    assert [mark.fill for mark in marks.values()] == ["full", "none", "left", "full"]
    assert len({mark.line for mark in list(marks.values())[:3]}) == 3  # a filling is hardly seen on a curve


def test_curves_show_mean_lowest_and_highest_of_the_seeds_that_finished() -> None:
    (axes,) = drawn(curves.draw(table(add=[0.5, 0.7, 0.9, None]))).axes
    assert axes.lines[0].get_xydata() == pytest.approx(np.array([[10, 60], [20, 65]]))
    ends = axes.collections[0].get_datalim(axes.transData)
    assert (ends.y0, ends.y1) == pytest.approx((40, 85))


def test_many_curves_have_a_panel_each() -> None:
    names = MARKED[: curves.TOGETHER + 1]
    figure = drawn(curves.draw(build_tables(record(name, 0, 0.5) for name in names)[0]))
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == sorted(names)


def test_what_all_curves_span_goes_from_left_to_right_whatever_the_first_one_lacks() -> None:
    whole = record("add", 0, 0.5)
    late = replace(
        whole, curve=[{"step": 10, "val/accuracy": 0.1}, *({"step": s, "val/accuracy": 0.3} for s in (20, 30))]
    )
    lacking = replace(late, curve=[late.curve[0], late.curve[2]])
    others = MARKED[: curves.TOGETHER + 1]
    runs = [lacking, *(replace(late, config=record(name, 0, 0.5).config) for name in others if name != "add")]
    axes = drawn(curves.draw(build_tables(runs)[0])).axes[0]
    (span,) = axes.collections[0].get_paths()
    upper = span.vertices[: len(span.vertices) // 2, 0]
    assert list(upper) == sorted(upper)


def test_differences_are_those_of_the_table_best_first() -> None:
    rows = table(add=[0.5, 0.51, 0.52], rope=[0.6, 0.612, 0.624], none=[0.4, 0.55, 0.52], alibi=[None] * 3)
    (axes,) = drawn(differences.draw(rows)).axes
    assert [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()] == [
        "rope", "add (reference)", "none", "alibi: no run finished"
    ]  # fmt: skip
    points = [container.lines[0] for container in axes.containers]
    assert [point.get_xdata()[0] for point in points] == pytest.approx([10.2, -2.0])
    assert [point.get_markerfacecolor() == style.PAPER for point in points] == [False, True]
    assert axes.get_xlabel() == "Δ points to add   (better →)"


def test_verdicts_have_a_colour_and_a_marker_each() -> None:
    rows = table(add=[0.5, 0.51, 0.52], rope=[0.6, 0.612, 0.624], none=[0.4, 0.412, 0.424], concat=[0.5, 0.54, 0.5])
    (axes,) = drawn(differences.draw(rows, {"concat": Equivalence(0.5, 0.01)})).axes
    points = {(container.lines[0].get_color(), container.lines[0].get_marker()) for container in axes.containers}
    assert points == {style.VERDICTS[name] for name in ("better", "worse", "equivalent")}
    assert len({marker for _, marker in style.VERDICTS.values()}) == len(style.VERDICTS)


def test_a_page_begins_with_the_differences_of_all_its_tables() -> None:
    page = published_page()
    (lead,) = figures.by_stem(page)[figures.LEAD]
    panels = [axes for axes in lead.figure.axes if axes.containers]
    assert [axes.get_title() for axes in panels] == [table.task.name for table in page.tables]
    for axes, found in zip(panels, page.tables, strict=True):
        shown = sorted(container.lines[0].get_xdata()[0] for container in axes.containers)
        means = sorted(found.task.scale * row.difference.mean for row in found.rows if row.difference)
        assert shown == pytest.approx(means)


def test_of_many_rows_the_first_picture_has_those_that_differ_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_ROWS", 2)
    rows = table(add=[0.5, 0.51, 0.52], rope=[0.6, 0.612, 0.624], none=[0.4, 0.55, 0.52], alibi=[0.5, 0.4, 0.53])
    page = Page((rows, replace(rows)))
    assert overview.rows(page) == ["rope"]
    assert overview.caption(page).endswith(
        "Rows that differ or are equivalent somewhere are drawn (1 of 3); the table has them all."
    )


def test_a_lower_metric_that_is_better_points_the_other_way() -> None:
    (axes,) = drawn(differences.draw(published_page().tables[0])).axes
    assert axes.get_yticklabels()[0].get_text() == "rope"
    assert axes.get_xlabel() == "Δ bits per byte to add   (← better)"


def test_costs_are_drawn_where_they_are_known() -> None:
    rows = build_tables([replace(record("add", seed, 0.5), throughput=None) for seed in range(2)])[0]
    panels = drawn(cost.draw(rows)).axes
    assert [axes.get_xlabel() for axes in panels] == ["parameters", "FLOPs/sample"]
    assert panels[0].lines[0].get_xydata().tolist() == [[1000, 50]]


def test_a_difference_of_fewer_seeds_than_others_says_so() -> None:
    records = [record(name, seed, 0.5 + 0.01 * seed) for name in ("add", "concat", "rope") for seed in range(3)]
    axes = drawn(differences.draw(build_tables(records[:-1])[0])).axes[0]
    assert {label.get_text() for label in axes.get_yticklabels()} == {"add (reference)", "concat", "rope (n=2)"}


def test_the_time_of_a_step_is_drawn_only_where_it_compares() -> None:
    kinds = ("cpu: one", "cpu: other")
    for threads in ((1, 1), (1, 2)):
        for devices in (kinds, kinds[:1] * 2):
            records = [
                replace(record("add", seed, 0.5), environment={"device": device, "threads": count})
                for seed, (device, count) in enumerate(zip(devices, threads, strict=True))
            ]
            same = len(set(devices)) == len(set(threads)) == 1
            (table,) = build_tables(records)
            for shared in (False, True):
                panels = cost.draw(replace(table, shared_machine=shared)).axes
                assert [axes.get_xlabel() for axes in panels][2:] == ["s/step"] * (same and not shared)


def test_equal_costs_are_not_blown_up() -> None:
    panels = drawn(cost.draw(table(add=[0.5], rope=[0.6]))).axes
    assert np.diff(panels[0].get_xlim()) >= 0.05 * 1000


def standing(label: str, rank: float) -> Standing:
    return Standing(label, Interval(0.5, 0.4, 0.6), Interval(rank, rank - 0.5, rank + 0.25), None, 0, None)


def test_the_time_of_a_step_is_shown_in_milliseconds() -> None:
    rows = table(add=[0.5, 0.51], rope=[0.6, 0.612])
    quick = [replace(r, throughput=1000.0) for row in rows.rows for r in row.records]
    for records, unit, value in ((quick, "ms/step", 64.0), (rows.records, "s/step", 6.4)):
        axes = drawn(cost.draw(build_tables(records)[0])).axes[2]
        assert axes.get_xlabel() == unit
        assert axes.containers[0].lines[0].get_xdata()[0] == pytest.approx(value)
        assert not any("m" in label.get_text() for label in axes.get_xticklabels())


def test_ranks_show_intervals_groups_and_the_critical_difference() -> None:
    rows = tuple(standing(*item) for item in (("rope", 1.5), ("add", 2.0), ("none", 4.5)))
    summary = Summary(rows, {}, {}, 0, 2000, critical_difference=1.25, groups=(("rope", "add"),))
    (axes,) = drawn(ranks.draw(summary)).axes
    places = axes.get_yticks()
    assert [container.lines[0].get_xdata()[0] for container in axes.containers][:3] == [1.5, 2.0, 4.5]
    bar = next(line for line in axes.lines if len(line.get_ydata()) == 2 and not line.get_clip_on())
    assert (min(bar.get_ydata()) < places[0], places[1] < max(bar.get_ydata()) < places[2]) == (True, True)
    assert any(text.get_text() == "CD = 1.25" for text in axes.texts)
    assert ranks.draw(replace(summary, critical_difference=None)) is None  # nothing tells them apart


LONG = Page((table(**{name: [0.5, 0.6] for name in MARKED[:30]} | {"alibi": [None], "concat_16": [0.3, 0.9]}),))


@pytest.mark.parametrize("make", [published_page, lambda: LONG], ids=["core", "many"])
def test_pictures_can_be_read_in_a_column(make: Callable[[], Page]) -> None:
    page = make()
    with style.styled():
        for picture in figures.pictures(page):
            figure = drawn(picture.figure)
            texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
            assert min(text.get_fontsize() for text in texts) >= 7
            for axes in figure.axes:
                low, high = axes.get_xlim()
                ticks = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
                boxes = [label.get_window_extent() for label in ticks if label.get_visible()]
                assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes)), picture.name
            box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
            assert width == (style.WIDE if picture.stem == figures.LEAD and len(page.tables) > 1 else style.WIDTH)
            assert min(box.x0, box.y0, width - box.x1, height - box.y1) > -0.01, picture.name


@pytest.mark.parametrize("lines", [True, False])
def test_long_labels_stay_within_the_picture(lines: bool) -> None:
    labels = ["embed-scale (of=concat)", "embed-scale (of=add-qk)", "add (preserve_variance=True)", "add"]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 2), layout="constrained")
        figure.add_subplot()
        style.legend_below(figure, style.marks(labels), lines)
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_the_same_records_give_the_same_svg_and_nothing_of_the_day() -> None:
    first, second = (list(figures.pictures(Page(published_page().tables[:1]))) for _ in range(2))
    assert [style.to_png(picture.figure)[:4] for picture in first] == [b"\x89PNG"] * 3  # leaves no trace in the next
    assert [picture.svg for picture in first] == [picture.svg for picture in second]
    assert not re.search(r"<!--|<metadata|<text|<image|dc:date", first[0].svg)


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    for picture in figures.pictures(Page(published_page().tables[:1])):
        assert set(re.findall(r'https?://[^"]+', style.to_svg(picture.figure))) <= {
            "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
        }  # fmt: skip


def test_names_in_any_letters_can_be_drawn() -> None:
    names = ["add", "a_module:Ödd_Name", "a_module:位置", "位置:A"]
    odd = Page.of(record(name, seed, 0.5 + seed / 100) for name in names for seed in range(2))
    for picture in figures.pictures(odd):
        assert "<svg" in style.to_svg(picture.figure)


def test_files_are_named_by_task_tier_and_kind(tmp_path: Path) -> None:
    other = replace(record("add", 0, 0.5), protocol="0.0")
    page = Page.of([record("add", 0, 0.5), record("rope", 0, 0.6), other])
    assert figures.stems(page.tables) == ["vit-digits-quick", "vit-digits-quick-2"]
    kinds = ["vit-digits-quick-cost", "vit-digits-quick-curves"]
    two = [f"vit-digits-quick-2-{kind}" for kind in ("cost", "curves", "differences")]
    expected = {f"{name}.{kind}" for name in (*kinds, *two, "differences") for kind in ("svg", "png")}
    assert {path.name for path in figures.write(page, tmp_path / "new")} == expected
    assert {path.name for path in (tmp_path / "new").iterdir()} == expected


def test_what_is_too_long_or_too_much_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_TABLES", 2)
    monkeypatch.setattr(figures, "MOST_ROWS", 4)
    assert figures.drawn([published_page().tables[0], *[table(add=[0.5])] * 2]) == [False, True, False]
    assert not list(figures.pictures(published_page()))


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ([1, 1.25, 1.5, 2], 2, ["1x", "", "1.5x", "2x"]),
        ([1, 1.25, 1.5, 2], 5, ["1x", "1.25x", "1.5x", "2x"]),
        ([1, 2, 4, 8], 2, ["1x", "", "4x", "8x"]),
        ([1, 2, 4, 8], 5, ["1x", "2x", "4x", "8x"]),
        ([1.0], 2, ["1x"]),
    ],
)
def test_sizes_that_are_close_leave_a_label_out(sizes: list[float], most: int, expected: list[str]) -> None:
    axes = Figure().add_subplot()
    size_ticks(axes, sizes, most)
    assert [label.get_text() for label in axes.get_xticklabels()] == expected
    assert list(axes.get_xticks()) == sizes
