"""Effective speedups: against answers that were worked out by hand, and nothing where curves do not tell."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pebench.results.grids import speedup as grid
from pebench.results.page import Page
from pebench.results.speedup import speedups
from pebench.results.tables import Table
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from pebench.tasks import configure

STEPS = (100, 200, 300, 400)


def run(encoding: str, seed: int, losses: Sequence[float], **settings: Any) -> Record:
    """A record of a run with these validation losses at steps 100, 200, 300 and 400."""
    config = configure("vit-digits", encoding, seed, "smoke", settings)
    curve = [{"step": step, "val/loss": loss} for step, loss in zip(STEPS, losses, strict=False)]
    return Record(config, metrics={"test/accuracy": 0.5}, dataset={"fingerprint": "f" * 64}, curve=curve)


def page(curves: Mapping[str, Sequence[Sequence[float]]], **settings: Any) -> Page:
    """The page of runs with these losses, by encoding and seed."""
    return Page.of(
        run(name, seed, losses, **settings) for name, seeds in curves.items() for seed, losses in enumerate(seeds)
    )


def table(curves: Mapping[str, Sequence[Sequence[float]]], **settings: Any) -> Table:
    (found,) = page(curves, **settings).tables
    return found


SLOW, FAST = (8.0, 6.0, 5.0, 4.0), (7.0, 5.0, 3.0, 2.0)  # fast comes to 4 in the middle between 200 and 300


def test_a_faster_row_came_earlier_to_the_lowest_loss_of_the_reference() -> None:
    found = speedups(table({"add": [SLOW], "rope": [FAST]}))["rope"]
    assert (round(found.factor, 9), found.low, found.n, found.bound) == (400 / 250, None, 1, False)


def test_a_slower_row_has_the_inverse() -> None:
    assert speedups(table({"add": [FAST], "rope": [SLOW]}))["rope"].factor == pytest.approx(250 / 400)


def test_seeds_are_averaged_by_their_logarithms() -> None:
    # at the second seed the other way round: the geometric mean of 1.6 and 1 / 1.6 is 1
    found = speedups(table({"add": [SLOW, FAST], "rope": [FAST, SLOW]}))["rope"]
    assert found.factor == pytest.approx(1.0)
    # t(0.975; 1) times the standard error of +-log 1.6, which is log 1.6
    assert found.high == pytest.approx(math.exp(12.7062 * math.log(1.6)), rel=1e-4)
    assert found.low == pytest.approx(math.exp(-12.7062 * math.log(1.6)), rel=1e-4)


def test_equal_runs_are_equally_fast() -> None:
    assert speedups(table({"add": [SLOW], "rope": [SLOW]}))["rope"].factor == 1.0


def test_a_loss_that_rises_again_does_not_count() -> None:
    # the reference has its lowest loss at 300, which the row passes between 100 and 200
    found = speedups(table({"add": [(8.0, 6.0, 5.0, 9.0)], "rope": [(7.0, 3.0, 2.0, 2.5)]}))["rope"]
    assert found.factor == pytest.approx(300 / 150)


def test_a_loss_that_never_falls_makes_no_row_sooner() -> None:
    # its lowest loss was its first; the better one passed that loss only later
    stuck = (5.5, 5.6, 5.7, 5.8)
    assert speedups(table({"add": [SLOW], "rope": [stuck]}))["rope"].factor == 1.0
    assert speedups(table({"add": [stuck], "rope": [SLOW]}))["rope"].factor == 1.0


def test_one_that_was_there_by_its_first_evaluation_is_marked() -> None:
    found = page({"add": [SLOW], "rope": [(3.0, 2.0, 1.0, 0.5)]})
    assert speedups(found.tables[0])["rope"].bound
    assert speedups(found.tables[0])["rope"].factor == 4.0
    text = markdown(found)
    assert "4.00 *" in text
    assert "*: at a seed the faster one was there" in text


def test_one_that_was_there_at_its_first_evaluation_exactly_is_marked() -> None:
    first = speedups(table({"add": [SLOW], "rope": [(4.0, 3.0, 2.0, 1.0)]}))["rope"]
    assert (first.factor, first.bound) == (4.0, True)
    assert not speedups(table({"add": [SLOW], "rope": [(4.1, 3.0, 2.0, 1.0)]}))["rope"].bound


def test_an_evaluation_before_the_first_step_is_none() -> None:
    started = [
        replace(record, curve=[{"step": 0, "val/loss": 3.0}, *record.curve])
        for record in (run("add", 0, SLOW), run("rope", 0, FAST))
    ]
    (found,) = Page.of(started).tables
    assert speedups(found) == speedups(table({"add": [SLOW], "rope": [FAST]}))


def test_only_seeds_that_both_have_count() -> None:
    found = speedups(table({"add": [SLOW], "rope": [FAST, FAST]}))["rope"]
    assert found.n == 1


def test_curves_of_two_points_are_not_measured() -> None:
    found = table({"add": [SLOW], "rope": [FAST], "none": [FAST[:2]]})
    cells = grid(found)
    assert dict(zip(cells["Encoding"].texts, cells["Effective speedup"].texts, strict=True)) == {
        "none": "not measured",
        "rope": "1.60",
    }
    assert grid(table({"add": [SLOW[:2]], "rope": [FAST[:2]]})) == {}


def test_nothing_is_measured_where_accuracy_chooses_or_there_is_no_reference() -> None:
    assert speedups(table({"add": [SLOW], "rope": [FAST]}, **{"train.monitor": "metric"})) == {}
    assert speedups(table({"none": [SLOW], "rope": [FAST]})) == {}


def test_every_format_has_it() -> None:
    found = page({"add": [SLOW, SLOW], "rope": [FAST, FAST]})
    text = markdown(found)
    assert "### Effective speedup, vit-digits" in text
    assert "1.60 [1.60, 1.60]" in text
    assert "1.60 [1.60, 1.60]" in html(found)
    assert json.loads(to_json(found))["tables"][0]["speedup"]["rope"]["factor"] == pytest.approx(1.6)


def test_of_equal_lowest_losses_the_sooner_one_is_the_faster() -> None:
    soon, late = (8.0, 4.0, 5.0, 6.0), (8.0, 6.0, 5.0, 4.0)  # at steps 200 and 400
    assert speedups(table({"add": [soon], "rope": [late]}))["rope"].factor == pytest.approx(0.5)
    assert speedups(table({"add": [late], "rope": [soon]}))["rope"].factor == pytest.approx(2.0)
