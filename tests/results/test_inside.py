"""The figures of analyses in tables, pages, frames and raw numbers."""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pebench.results import grids
from pebench.results.figures import pictures
from pebench.results.figures.apart import draw_rows
from pebench.results.frame import Results
from pebench.results.inside import FIGURES, analysis_columns
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from tests.results.page_records import page, runs


def figures(overlap: float) -> dict[str, Any]:
    """What `pebench.analyze` returns, in part."""
    return {
        "energies": {"overlap": overlap, "constant": 0.5},
        "shift": None,
        "terms": {"content-content": [[0.5, None], [0.7, 0.9]]},
        "attention": {"distance": [[2.0, 4.0]], "uniform": [[6.0, 6.0]]},
        "probes": {"position": [0.9, 0.8, 0.7], "position_r2": [0.1, 0.6, 0.2], "token": [0.5, 0.45, 0.4]},
        "position_mean": {"loss": 1.0, "position": [0.1, 0.3], "permuted": [0.2, 0.9]},
    }


def analyzed(overlaps: Mapping[int, float]) -> list[Record]:
    """Runs of which those of `add` on vit-digits were analyzed."""
    return [
        replace(r, analysis={"trained": figures(overlaps[r.config.seed]), "untrained": figures(0.8)})
        if (r.config.task, r.config.encoding) == ("vit-digits", "add") and r.config.seed in overlaps else r
        for r in runs()
    ]  # fmt: skip


def test_each_figure_is_read_from_its_measure() -> None:
    found = analysis_columns({"trained": figures(0.25), "untrained": figures(0.8)})
    assert len(found) == len(FIGURES)
    assert found["shared channels (%)"] == 0.25
    assert found["content-content (%)"] == pytest.approx(0.7)  # heads without a share are left out
    assert found["distance (1: uniform)"] == pytest.approx(0.5)
    assert found["position, second block (%)"] == 0.8
    assert found["position, output (%)"] == 0.7
    assert found["position's R², best layer"] == 0.6
    assert (found["token, input (%)"], found["token, output (%)"]) == (0.5, 0.4)
    means = [found[title] for title in found if "position's mean" in title]
    assert means == [0.1, 0.2, 0.3, 0.9]
    assert found["without another position's mean, first block (+nats)"] == 0.2
    assert found["without position's mean, second block (+nats)"] == 0.3
    assert found["shift by one, R²"] is None
    assert analysis_columns({}) == {}
    bag = {"probes": {"position": [0.9]}}  # of a model without blocks
    assert analysis_columns({"trained": bag})["position, second block (%)"] is None
    assert analysis_columns({"trained": bag})["position, output (%)"] == 0.9
    one = {"probes": {"position": [0.9, 0.7]}}  # of one block, after which is the output
    assert analysis_columns({"trained": one})["position, second block (%)"] is None


def test_a_cell_has_mean_interval_and_control() -> None:
    made = page(analyzed({0: 0.2, 1: 0.3, 2: 0.4}))
    (table,) = [table for table in made.tables if table.task.name == "vit-digits"]
    grid = grids.inside(table, "input")
    cell = dict(zip(grid["Encoding"].texts, grid["shared channels (%)"].texts, strict=True))
    assert cell["add"].startswith("30.0 ± 24.8 (80.0)")
    assert cell["rope"] == "not analyzed"  # nothing is known of it, unlike of one that adds nothing at the input
    assert "shift by one, R²" not in grid  # which no run has


def test_pages_show_figures_where_runs_were_analyzed() -> None:
    made, plain = page(analyzed({0: 0.2, 1: 0.3})), page(runs())
    assert markdown(made).count("Content and position at the input") == 1
    assert html(made).count("30.0") <= html(made).count("25.0")
    assert "at the input" not in markdown(plain)
    assert "analysis" not in to_json(plain)
    rows = [row for table in json.loads(to_json(made))["tables"] for row in table["rows"]]
    (found,) = [row["analysis"] for row in rows if "analysis" in row]
    assert found["1"]["trained"]["energies"]["overlap"] == 0.3


def test_a_picture_is_drawn_where_runs_were_analyzed() -> None:
    made, plain = page(analyzed({0: 0.2, 1: 0.3})), page(runs())
    names = [picture.name for picture in pictures(made)]
    assert [name for name in names if name.endswith("-inside")] == ["vit-digits-smoke-inside"]
    assert not any(picture.name.endswith("-inside") for picture in pictures(plain))
    (picture,) = [picture for picture in pictures(made) if picture.name.endswith("-inside")]
    shared, terms, probes = picture.figure.axes
    ends = [line.get_xdata()[-1] for line in shared.lines]
    assert ends[1:] == pytest.approx([80.0, 25.0])  # untrained and trained, after the line between them
    (bar,) = terms.patches
    assert bar.get_width() == pytest.approx(70.0)
    assert list(probes.lines[0].get_ydata()) == pytest.approx([90.0, 80.0, 70.0])


def by_channel_and_head(content: list[float | None]) -> Record:
    """A run with energies by channel, and two heads of which the first prefers positions."""
    run = next(r for r in analyzed({0: 0.2}) if r.analysis)
    found = dict(run.analysis["trained"])
    found["energies"] = {"overlap": 0.5, "content_channels": content, "position_channels": [0.75, 0.25]}
    found["terms"] = {
        "content-content": [[0.25, 0.5]], "constant-content": [[0.0, 0.25]], "content-position": [[-0.1, 0.1]],
        "position-content": [[0.05, 0.1]], "position-position": [[0.75, None]],
    }  # fmt: skip
    return replace(run, analysis={"trained": found, "untrained": {"energies": found["energies"]}})


def test_a_picture_shows_channels_and_heads() -> None:
    one = by_channel_and_head([0.5, 0.5])
    row = SimpleNamespace(label="add", finished=(one, by_channel_and_head([0.3, 0.7])))
    channels, heads, probes = draw_rows([row]).axes
    untrained, trained = channels.lines
    assert list(trained.get_ydata()) == pytest.approx([40.0, 60.0])
    assert list(untrained.get_ydata()) == pytest.approx([40.0, 60.0])
    found = [(bar.get_y(), bar.get_height()) for bar in heads.patches if bar.get_height()]
    # the head of the most content comes first, its products of both above that; what works against takes no room
    assert found == [(0.0, 75.0), (75.0, pytest.approx(20.0)), (0.0, 25.0), (25.0, 75.0)]
    assert [list(line.get_ydata()) for line in probes.lines] == [
        pytest.approx([90.0, 80.0, 70.0]),
        pytest.approx([50.0, 45.0, 40.0]),
    ]


def test_a_picture_says_where_channels_are_not_known() -> None:
    row = SimpleNamespace(label="add", finished=(by_channel_and_head([None, 0.5]),))
    channels, *_ = draw_rows([row]).axes
    assert [text.get_text() for text in channels.texts] == ["not measured"]


def test_a_frame_has_a_column_for_each_figure() -> None:
    frame = Results(analyzed({0: 0.2, 1: 0.3})).to_frame()
    assert sorted(frame["shared channels (%)"].dropna()) == [0.2, 0.3]
    assert "shared channels (%)" not in Results(runs()).to_frame()
