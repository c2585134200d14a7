"""Two collections of records side by side."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.config import PROTOCOL_VERSION
from pebench.results.compare import compare
from pebench.runs.records import Record
from tests.results.single_records import ENVIRONMENT, Answer, Ask, collected, run, runs, selecting, write


def compared(a: list[Record], b: list[Record]) -> Answer:
    return Answer(0, compare(a, b, ("here", "there")), "")


def differing(answer: Answer) -> list[str]:
    return [line.removeprefix("differs  ") for line in answer.lines if line.startswith("differs")]


def test_equal_collections_differ_in_nothing() -> None:
    records = runs("add", {0: 0.5, 1: 0.625})
    answer = compared(records, records)
    assert answer.lines[:2] == ["A: here, 2 runs", "B: there, 2 runs"]
    assert differing(answer) == []
    assert answer.row("vit-digits", "add", "test/accuracy")[2:] == ["+0.0000 ± 0.0000", "2"]


def test_what_differs_is_listed_and_nothing_else() -> None:
    elsewhere = ENVIRONMENT | {"device": "cuda: Some Accelerator"}
    a = runs("add", {0: 0.5, 1: 0.5})
    b = runs("add", {0: 0.5, 1: 0.5}, settings={"train.max_steps": 7}, args={"ratio": 2.0}, environment=elsewhere)
    assert differing(compared(a, b)) == [
        "encoding_args.ratio: nothing | 2.0",
        'environment.device: "cpu: Some Processor" | "cuda: Some Accelerator"',
        "train.max_steps: 2 | 7",
    ]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (run("add", 1), "seed: 0 | 1"),
        (run("add", 0, protocol="0.0"), f'protocol: "{PROTOCOL_VERSION}" | "0.0"'),
        (run("add", 0, dataset={"fingerprint": "f" * 64}), 'data: "0123456789ab" | "ffffffffffff"'),
        (run("add", 0, settings={"data.patch_size": 4}), "data.patch_size: 2 | 4"),
        (run("rope", 0), 'encoding: "add" | "rope"'),
        (replace(run("add", 0), status="failed"), 'status: "ok" | "failed"'),
    ],
    ids=["seed", "protocol", "data", "setting", "encoding", "status"],
)
def test_circumstances_that_differ_are_listed(changed: Record, line: str) -> None:
    assert differing(compared([run("add", 0)], [changed])) == [line]


def test_the_difference_is_b_minus_a_at_equal_seeds() -> None:
    # seeds 1 and 2: 0.65 - 0.6, 0.8 - 0.7: mean 0.075, s = 0.05 / sqrt(2), half-width 12.7062 * 0.05 / 2
    a, b = runs("add", {0: 0.5, 1: 0.6, 2: 0.7}), runs("add", {1: 0.65, 2: 0.8, 3: 0.2})
    # of A alone: s = 0.1, 4.30265 * 0.1 / sqrt(3); of B alone: mean 0.55, s = 0.31225, 4.30265 * s / sqrt(3)
    expected = ["0.6000 ± 0.2484", "0.5500 ± 0.7757", "+0.0750 ± 0.3177", "2"]
    assert compared(a, b).row("vit-digits", "add", "test/accuracy") == expected
    assert compared(b, a).row("vit-digits", "add", "test/accuracy")[2:] == ["-0.0750 ± 0.3177", "2"]


def test_one_seed_in_common_has_no_interval() -> None:
    a, b = runs("add", {0: 0.5, 1: 0.75}), runs("add", {0: 0.25})
    assert compared(a, b).row("vit-digits", "add", "test/accuracy")[1:] == ["0.2500", "-0.2500", "1"]


def test_no_seed_in_common_is_said() -> None:
    cells = compared(runs("add", {0: 0.5}), runs("add", {1: 0.25})).row("vit-digits", "add", "test/accuracy")
    assert cells == ["0.5000", "0.2500", "no seed in common", "0"]


def test_a_failed_run_has_no_pair() -> None:
    a, b = runs("add", {0: 0.5, 1: 0.25}), runs("add", {0: None, 1: 0.5})
    assert compared(a, b).row("vit-digits", "add", "test/accuracy")[1:] == ["0.5000", "+0.2500", "1"]
    assert "no seed in common" in compared(a[:1], b[:1]).text
    assert "no seed in common" in compared(a[:1], [replace(a[0], status="failed")]).text  # whatever it has measured


def test_every_task_encoding_and_option_is_a_row_of_its_own() -> None:
    a = [run("add", 0), run("concat", 0), run("concat", 0, 0.25, args={"d_p": 8}), run("rope", 0, 2.5, "lm-grammar")]
    answer = compared(a, [run("concat", 0, 0.75, args={"d_p": 8}), run("rope", 0, 2.0, "lm-grammar")])
    assert answer.row("vit-digits", "add")[1:] == ["0.5000", "–", "no seed in common", "0"]
    assert answer.row("vit-digits", "concat")[2] == "–"
    assert answer.row("vit-digits", "concat (d_p=8)")[1:] == ["0.2500", "0.7500", "+0.5000", "1"]
    assert answer.row("lm-grammar", "rope") == ["test/bits_per_byte", "2.5000", "2.0000", "-0.5000", "1"]


def test_what_selects_is_compared_by_what_it_selects_by() -> None:
    a, b = [run("add", 0), selecting(1e-3, 0.5)], [run("add", 0), selecting(1e-3, 0.25)]
    answer = compared(a, b)
    assert answer.row("vit-digits", "add", "val/loss") == ["0.5000", "0.2500", "-0.2500", "1"]
    assert answer.row("vit-digits", "add", "test/accuracy")[2:] == ["+0.0000", "1"]


def test_folders_and_collections_compare_alike(tmp_path: Path, ask: Ask) -> None:
    a, b = runs("add", {0: 0.5, 1: 0.25}), runs("add", {0: 0.5, 1: 0.75})
    one = ask("compare", write(a, tmp_path / "a"), write(b, tmp_path / "b"))
    other = ask("compare", collected(a, tmp_path / "a.jsonl"), collected(b, tmp_path / "b.jsonl"))
    assert (one.code, other.code) == (0, 0)
    assert one.lines[0] == f"A: {tmp_path / 'a'}, 2 runs"
    assert one.lines[2:] == other.lines[2:]
    assert one.row("vit-digits", "add")[3:] == ["+0.2500 ± 3.1766", "2"]


def test_shuffled_records_compare_alike() -> None:
    records = [run(name, seed, seed / 10) for name in ("add", "rope") for seed in range(4)]
    shuffled = random.Random(0).sample(records, len(records))
    assert compared(shuffled, records[:3]).text == compared(records, records[:3]).text


@pytest.mark.parametrize("which", [0, 1])
def test_a_comparison_with_nothing_is_refused(which: int, tmp_path: Path, ask: Ask) -> None:
    places = [write([run("add", 0)], tmp_path / "a"), tmp_path / "nowhere"]
    answer = ask("compare", places[which], places[1 - which])
    assert answer.code == 2
    assert str(tmp_path / "nowhere") in answer.error


@pytest.mark.parametrize("kind", ["selecting", "tested"])
def test_the_order_of_records_does_not_change_a_comparison(kind: str) -> None:
    tested = [run("add", 0, value, settings={"train.max_steps": steps}) for steps, value in ((3, 0.25), (4, 0.75))]
    records = tested if kind == "tested" else [selecting(1e-3, 0.5), selecting(1e-2, 0.25)]
    assert compared(records[::-1], records).text == compared(records, records).text
