"""The study of encodings' costs measures time and memory on text and images, and writes its page and figures."""

import argparse
import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pebench.benchmarks.studies import encoding_costs, step_costs
from pebench.benchmarks.studies.step_costs import Question, StepCost
from pebench.benchmarks.studies.workloads import Workload
from pebench.encodings.pairs import ByBlock, ByOffset, Pairs

QUICK = ["--quick", "--device", "cpu", "--threads", "1"]
WIDE = Workload("", "lm", depth=1, width=32, heads=2, batch=2, size=512, outputs=65, steps=1)


def question(name: str, work: Workload = WIDE, gib: float = 8.0) -> Question:
    return Question(name, work, "cpu", 1, gib)


def cells(table: str) -> dict[str, list[str]]:
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) > 1 and line[0].startswith("`")}


def test_encodings_are_measured_on_text_and_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_costs, "in_fresh_process", lambda function, item, imports: function(item))
    monkeypatch.setattr(step_costs, "_limit_memory", lambda gib: None)  # it would be this process's
    peaks = itertools.count()
    monkeypatch.setattr(step_costs.environment, "peak_memory_gib", lambda device: next(peaks))
    output = tmp_path / "costs.md"
    asked = [word for name in ("add", "alibi", "t5-bias", "transformer-xl") for word in ("--pe", name)]
    assert encoding_costs.main([*asked, *QUICK, "--output", str(output)]) == 0
    time, memory = map(cells, output.read_text().split("## Memory"))
    assert time["`alibi`"][-1] == "sdpa with bias"
    assert time["`t5-bias`"][-1] == "matmul with bias"
    assert time["`transformer-xl`"].count("does not serve") == 2
    assert [*time] == [*memory] == ["`add`", "`alibi`", "`t5-bias`", "`transformer-xl`"]
    assert "- `add`: " in output.read_text()
    assert "- `rope`: " not in output.read_text()
    figures = json.loads(output.with_suffix(".json").read_text())
    assert figures["complete"]
    cell = figures["costs"]["alibi"]["text"]["256"]
    assert cell["time"] > 0
    assert len(cell["rounds"]) == 1
    assert figures["costs"]["transformer-xl"]["image"]["16"] == {"why": "does not serve"}


def test_memory_is_that_of_the_step() -> None:
    """A bias of (H, L, L) is 2 MiB here; a trained one leaves several of them for the backward pass."""
    none, t5 = (encoding_costs._cost(question(name)) for name in ("none", "t5-bias"))
    assert t5.gib > none.gib + 4 / 1024
    twice = replace(WIDE, size=1024)
    whole, blocks = (encoding_costs._cost(question(name, twice)) for name in ("cope", "t5-bias"))
    assert whole.gib > 3 * blocks.gib  # in length squared, and in length alone
    assert none.gib < 0.1  # without the process and its imports


def test_time_is_a_ratio_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that each step of the encoding moves by 3 seconds and each of `none` by 2."""
    seconds = [0.0]
    monkeypatch.setattr(step_costs, "now", lambda device: seconds[0])

    def steps(work, model, data, device):
        taken = 2.0 if model.trunk.encoding.name == "none" else 3.0
        return lambda: seconds.__setitem__(0, seconds[0] + taken)

    monkeypatch.setattr(step_costs, "make_step", steps)
    monkeypatch.setattr(step_costs, "_limit_memory", lambda gib: None)
    assert step_costs.step_cost(question("add", replace(WIDE, steps=4))).time == 1.5


def test_what_takes_too_much_memory_is_said() -> None:
    assert encoding_costs._cost(question("t5-bias", replace(WIDE, size=2048), gib=0.05)).why == "more than 0.05 GiB"


def test_a_process_that_dies_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_: object) -> None:
        raise encoding_costs.BrokenProcessPool

    monkeypatch.setattr(encoding_costs, "in_fresh_process", dead)
    assert encoding_costs._cost(question("add")).why == "its process died"


def options(**changes: object) -> argparse.Namespace:
    usual = {"minutes": math.inf, "rounds": 2, "threads": 1, "device": "cpu", "gib": 8.0, "quick": True, "pe": ["fox"]}
    later = {"kind": None, "go_on": False, "tokens": None, "output": None, "flex": False}
    return argparse.Namespace(**usual | later | changes)


def test_rounds_are_whole_and_what_does_not_serve_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int]] = []

    def cost(question: Question) -> StepCost:
        asked.append((question.name, question.work.kind, question.work.positions))
        serves = question.work.kind == "lm" or question.name == "none"
        return StepCost(2.0, 0.5 if question.name == "none" else 1.0) if serves else StepCost(why="does not serve")

    monkeypatch.setattr(encoding_costs, "_cost", cost)
    *_, page = encoding_costs.pages([], options())
    assert asked.count(("fox", "lm", 256)) == 2
    assert asked.count(("fox", "image", 16)) == 1
    assert page.figures["costs"]["fox"]["text"]["256"]["memory"] == 2.0
    time, memory = map(cells, page.text.split("## Memory"))
    assert time["`fox`"][:-1] == ["2.00 (2.00 to 2.00)"] * 3 + ["does not serve"] * 2
    assert memory["`fox`"] == ["2.00 (2.00 to 2.00)"] * 3 + ["does not serve"] * 2


def test_an_encoding_of_ones_own_is_measured_and_unknown_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(encoding_costs, "_cost", lambda question: StepCost(1.5, 0.5))
    output = tmp_path / "costs.md"
    mine = "examples.own_encoding:TriangleEncoding"
    assert encoding_costs.main(["--pe", mine, *QUICK, "--output", str(output)]) == 0
    assert json.loads(output.with_suffix(".json").read_text())["costs"][mine]["text"]["256"]["time"] == 1.5
    for name, message in (("rop", "'rop'"), ("none", "measured beside none")):
        with pytest.raises(SystemExit) as stop:
            encoding_costs.main(["--pe", name, *QUICK])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_minutes_end_it_with_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 25))  # seconds: two measurements within a minute, then it is over
    monkeypatch.setattr(encoding_costs.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(encoding_costs, "_cost", lambda question: StepCost(1.0, 1.0))
    pages = list(encoding_costs.pages([], options(minutes=1.0)))
    assert len(pages) == 2
    assert cells(pages[-1].text.partition("## Memory")[0])["`fox`"][:-1] == ["1.00", "", "", "", ""]


def test_another_call_goes_on_with_what_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    def cost(question: Question) -> StepCost:
        asked.append((question.name, question.work.positions))
        image = question.work.kind == "image" and question.name != "none"
        return StepCost(why="does not serve") if image else StepCost(len(asked), 1.0, "sdpa")

    monkeypatch.setattr(encoding_costs, "_cost", cost)
    output = tmp_path / "costs.md"
    go_on = [*QUICK, "--pe", "fox", "--output", str(output)]
    assert encoding_costs.main([*go_on, "--tokens", "64"]) == 0
    assert Counter(asked) == {("none", 64): 2, ("fox", 64): 2}  # of texts and of images
    asked.clear()
    assert encoding_costs.main([*go_on, "--go-on", "--tokens", "64", "--tokens", "16", "--rounds", "2"]) == 0
    # one round more at 64 and two at 16, but none of what does not serve images
    assert Counter(asked) == {("none", 64): 2, ("fox", 64): 1, ("none", 16): 4, ("fox", 16): 3}
    cell = json.loads(output.with_suffix(".json").read_text())["costs"]["fox"]["text"]["64"]
    assert [kept["kernel"] for kept in cell["rounds"]] == ["sdpa", "sdpa"]
    assert cell["rounds"][0]["time"] == 2
    assert encoding_costs.main([*QUICK, "--output", str(output), "--pe", "rope", "--go-on", "--tokens", "16"]) == 0
    costs = json.loads(output.with_suffix(".json").read_text())["costs"]
    assert costs["fox"]["text"]["64"] == cell
    assert "rope" in costs
    asked.clear()
    assert encoding_costs.main([*go_on, "--go-on", "--kind", "image", "--tokens", "64", "--rounds", "3"]) == 0
    assert asked == [("none", 64)]
    machine = json.loads(output.with_suffix(".json").read_text()) | {"machine": "cpu: another"}
    output.with_suffix(".json").write_text(json.dumps(machine))
    with pytest.raises(SystemExit, match="was measured on cpu: another"):
        encoding_costs.main([*go_on, "--go-on"])
    with pytest.raises(SystemExit):
        encoding_costs.main([*QUICK, "--go-on"])


def test_models_are_small_and_their_batches_equal() -> None:
    found = encoding_costs.columns(quick=False, steps=1)
    assert [(column.kind, column.work.positions) for column in found] == [
        ("text", 256), ("text", 1024), ("text", 4096), ("image", 256), ("image", 1024)
    ]  # fmt: skip
    assert [column.work.batch * column.work.positions for column in found] == [2048, 2048, 4096, 2048, 2048]
    assert [column.work.depth for column in found] == [2, 2, 1, 2, 2]


def test_flex_is_for_biases_that_are_asked_for_each_pair() -> None:
    queries, pairs = torch.zeros(1, 2, 3, 4), Pairs(None, torch.arange(3), 2, True)
    scored, unscored = ByOffset(torch.zeros(2, 5), pairs), ByBlock(3, lambda queries, keys: torch.zeros(3, 3))
    plain, flex = question("alibi"), replace(question("alibi"), flex=True)
    assert [plain.kernel(queries, bias) for bias in (scored, unscored, None)] == ["blocks", "blocks", "sdpa"]
    assert [flex.kernel(queries, bias) for bias in (scored, unscored, None)] == ["flex", "blocks", "sdpa"]
