"""Costs on the scorecard: read from the study's figures, shown in columns of their own, and said where they are not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pebench.benchmarks.studies import encoding_costs
from pebench.benchmarks.studies.step_costs import UNSERVED, Question, StepCost
from pebench.errors import UserError
from pebench.results.scorecard import Scorecard, advice, scorecard
from pebench.results.scorecard.costs import FILE, Cost, Costs, read_costs
from pebench.results.writers.html.scorecard import scorecard_html
from pebench.results.writers.scorecard import cost_columns, fused_word, scorecard_json, scorecard_markdown
from pebench.runs.records import Record, write_jsonl
from tests.cli.asking import ask
from tests.results.test_scorecard import line, records

__all__ = ["records"]

COSTS = Costs(
    "cpu",
    {
        "rope": {256: Cost(1.04, 1.1), 1024: Cost(1.02, 1.05)},
        "wall": {256: Cost(9.5, 7.25), 4096: Cost(why="more than 8 GiB")},
        "add": {256: Cost(0.97, 1.2, rounds=5)},
        "alibi": {256: Cost(1.0, 1.0, kernel="sdpa with bias")},
    },
    {"rope-mixed": {256: Cost(1.09, 1.4), 1024: Cost(1.07, 1.47)}, "learned": {256: Cost(1.01, 0.9)}},
)


@pytest.fixture
def card(records: list[Record]) -> Scorecard:
    return scorecard(records, COSTS)


def write(folder: Path, figures: Any) -> Path:
    (folder / FILE).parent.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(figures))
    return folder


def test_a_row_has_time_and_memory_at_each_length(card: Scorecard) -> None:
    found = {title.partition("\n")[0]: cells for title, cells in cost_columns(card).items()}
    assert [*found] == [
        f"{cost} at {size}"
        for cost in ("Step time", "Memory")
        for size in ("256 tokens", "1,024 tokens", "4,096 tokens", "256 patches", "1,024 patches")
    ]
    place = {label: card.lines.index(line(card, label)) for label in ("rope", "wall", "fire", "rope-mixed")}
    rows = {label: [cells[row].text for cells in found.values()] for label, row in place.items()}
    assert rows == {
        "rope": ["1.04", "1.02", *["–"] * 3, "1.10", "1.05", *["–"] * 3],
        "wall": ["9.50", "–", "more than 8 GiB", "–", "–", "7.25", "–", "more than 8 GiB", "–", "–"],
        "fire": ["–"] * 10,
        "rope-mixed": [*["–"] * 3, "1.09", "1.07", *["–"] * 3, "1.40", "1.47"],
    }


def test_it_says_how_often_costs_were_measured_and_how_far_they_scatter(card: Scorecard) -> None:
    text = scorecard_markdown(card)
    assert "7 of 8 costs are of one round." in text
    assert "lie between 0.97 and 1.01 in time, 0.90 and 1.20 in memory." in text


def test_a_fixed_bias_that_the_kernel_took_is_told(card: Scorecard) -> None:
    words = {row: fused_word(line(card, row)) for row in ("rope", "alibi", "fire", "stack")}
    assert words == {"rope": "yes", "alibi": "with a bias", "fire": "no", "stack": "–"}


def text_costs(device: str, **times: float) -> dict[str, Any]:
    costs = {name: {"text": {"256": {"time": time, "memory": 1.0, "rounds": []}}} for name, time in times.items()}
    return {"device": device, "costs": costs}


def test_costs_of_an_encoding_are_from_the_first_folder_that_has_them(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine", text_costs("cpu", mine=1.5, rope=2.0))
    ours = write(tmp_path / "ours", text_costs("cpu", rope=1.0, add=1.25))
    gpu = write(tmp_path / "gpu", text_costs("cuda", fox=9.0))
    costs = read_costs(tmp_path / "none", mine, gpu, ours)
    assert costs.device == "cpu"
    assert {name: sizes[256].time for name, sizes in costs.cells.items()} == {"mine": 1.5, "rope": 2.0, "add": 1.25}
    assert read_costs(gpu, mine).cells.keys() == {"fox"}
    assert read_costs(tmp_path / "none") == Costs()


def test_pages_show_them(card: Scorecard, records: list[Record]) -> None:
    text, page = scorecard_markdown(card), scorecard_html(card)
    (row,) = [row for row in text.splitlines() if row.startswith("| wall ")]
    assert row.count("more than 8 GiB") == 2
    assert "on a CPU" in text
    assert 'data-value="9.5">9.50</td>' in page
    assert "Step time at 4,096 tokens" in page
    for part in page.split("<tr data-tags=")[1:]:
        assert part.partition("</tr>")[0].count("<td") == page.count('<th scope="col"') - 1
    assert set(re.findall(r'colspan="(\d+)"', page)) == {str(page.count('<th scope="col"'))}
    without = scorecard_markdown(scorecard(records))
    assert "Step time" not in without
    assert "Costs of a training step: not measured yet." in without


def test_advice_says_how_long_a_step_takes(records: list[Record]) -> None:
    costs = Costs("cpu", {"rope": {256: Cost(3.0, 1.0), 1024: Cost(1.02, 1.0)}}, {"add": {256: Cost(1.14, 1.0)}})
    card = scorecard(records, costs)
    steps = {one.need: one.step_time for one in advice(card)}
    assert steps["a language model at its trained length"] == "1.02 times none's at 1,024 tokens"
    assert steps["a vision transformer at its trained size"] == "1.14 times none's at 256 patches"
    text, page = scorecard_markdown(card), scorecard_html(card)
    assert re.search(
        r"^\| a language model at its trained length .*\| 1\.02 times none's at 1,024 tokens +\|$", text, re.M
    )
    assert "A training step takes 1.02 times none&#39;s at 1,024 tokens.</span>" in page
    assert not any(one.step_time for one in advice(scorecard(records)))


def test_json_has_them(card: Scorecard) -> None:
    found = {row["encoding"]: row for row in json.loads(scorecard_json(card))["rows"]}
    assert found["rope"]["costs"]["256"] == {"time": 1.04, "memory": 1.1}
    assert found["rope"]["costs"]["4096"] == {"why": "not measured"}
    assert found["wall"]["costs"]["4096"] == {"why": "more than 8 GiB"}
    assert (found["fox"]["kv_cache"], found["rope"]["kv_cache"]) == ("needs more", "works")


def test_the_figures_of_the_study_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(question: Question) -> StepCost:
        serves = question.name != "rope-mixed" or question.work.kind == "image"
        return StepCost(1.25, 0.5) if serves else StepCost(why=UNSERVED)

    monkeypatch.setattr(encoding_costs, "_cost", cost)
    asked = ["--quick", "--device", "cpu", "--threads", "1", "--output", str(tmp_path / FILE.with_suffix(".md"))]
    assert encoding_costs.main(["--pe", "rope", "--pe", "rope-mixed", *asked]) == 0
    costs = read_costs(tmp_path)
    assert costs.device == "cpu"
    assert costs.of("rope")[256] == Cost(1.25, 1.0)
    assert costs.of("rope")[4096] == Cost()  # the quick study has short texts
    assert costs.of("rope-mixed")[256] == Cost(why="does not serve")
    assert next(iter(costs.images["rope-mixed"].values())) == Cost(1.25, 1.0)


def test_the_command_takes_them_from_the_folder(tmp_path: Path, records: list[Record]) -> None:
    cell = {"time": 1.5, "memory": 2.5, "rounds": []}
    write(tmp_path, {"device": "cuda", "costs": {"rope": {"text": {"256": cell}, "image": {"256": cell}}}})
    (tmp_path / "core").mkdir()
    write_jsonl(records, tmp_path / "core" / "runs.jsonl")
    write(tmp_path / "mine", text_costs("cuda", **{"my_module:Mine": 1.75}))
    write_jsonl(records, tmp_path / "mine" / "runs.jsonl")
    text = ask("report", "--scorecard", str(tmp_path), str(tmp_path / "mine")).text
    assert "on a GPU" in text
    assert re.search(r"^\| my_module:Mine .* 1\.75 ", text, re.M)
    results, row = [row for row in text.splitlines() if row.startswith("| rope ")]
    assert "1.50" not in results
    assert re.search(r" 1\.50 .* 1\.50 .* 2\.50 .* 2\.50 ", row)


@pytest.mark.parametrize("figures", [[], {}, {"device": "cpu", "costs": {"rope": {"text": {"256": {"time": "fast"}}}}}])
def test_other_figures_are_refused_with_what_to_do(figures: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"encoding_costs\.json: expected figures .* Make it again: python -m") as error:
        read_costs(write(tmp_path, figures))
    assert "\n" not in str(error.value)


def test_a_folder_without_figures_has_no_costs(tmp_path: Path) -> None:
    assert read_costs(tmp_path) == Costs()
    assert read_costs(tmp_path / "all.jsonl") == Costs()
