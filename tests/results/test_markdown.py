"""Tables from hand-made records: what they say, what they never hide, and that their bytes are stable."""

import csv
import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pebench.config import CORE_ENCODINGS, DataConfig, ModelConfig, RunConfig, TrainConfig
from pebench.errors import UserError
from pebench.results.page import Page
from pebench.results.writers.csv import to_csv
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown, overview
from pebench.results.writers.terminal import terminal
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.tasks import IMAGE_CLASSIFICATION, LANGUAGE_MODELLING, TASKS, Budget, Task

GOLDEN = Path(__file__).parent / "golden" / "report.md"
BUDGET = Budget(ModelConfig(), DataConfig(patch_size=4), TrainConfig())
SHAPES = Task(
    name="vit-shapes", summary="Shapes of few pixels", kind=replace(IMAGE_CLASSIFICATION, causal=True), data="",
    splits="by index", cite=("pebench",), budgets={"core": BUDGET},
)  # fmt: skip
RHYMES = replace(SHAPES, name="lm-rhymes", summary="Rhymes", kind=LANGUAGE_MODELLING)
ENVIRONMENT = {
    "versions": {"pebench": "0.1.0", "torch": "2.6.0", "lightning": "2.6.6"},
    "commit": "abc123", "device": "cpu: Some Processor", "threads": 1, "precision": "32-true", "attention": "sdpa",
}  # fmt: skip
DATASET = {"fingerprint": "0123456789abcdef" * 4, "sizes": {"train": 8000, "val": 1000, "test": 2000}, "padding": None}


FORMATS = {"markdown": markdown, "csv": to_csv, "json": to_json, "latex": latex}


def render(records: list[Record], form: str = "markdown") -> str:
    return FORMATS[form](Page.of(records))


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "vit-shapes", SHAPES)
    monkeypatch.setitem(TASKS, "lm-rhymes", RHYMES)


def run(encoding: str, seed: int, value: float | None, task: str = "vit-shapes", **changes: Any) -> Record:
    """A record of a run that finished with this headline metric, or failed if it is None."""
    args, train = changes.pop("args", {}), changes.pop("train", BUDGET.train)
    config = RunConfig(task, encoding, seed, "core", args, BUDGET.model, BUDGET.data, train)
    if value is None:
        error = {"reason": "loss is nan at step 12", "log": "..."}
        return Record(config, status="failed", error=error, duration_s=1.5, **changes)
    lm = {"test/bits_per_byte": value, "test/perplexity": 2 ** (2 * value), "test/loss": value}
    defaults = {
        "metrics": lm if task.startswith("lm") else {"test/accuracy": value},
        "parameters": {"encoding": 8192 if encoding == "learned" else 0, "total": 801_290},
        "flops_per_sample": 123_456_789, "throughput": 1200.0 + seed, "peak_memory_gib": 1.25, "duration_s": 100.25,
        "dataset": DATASET, "environment": ENVIRONMENT,
    }  # fmt: skip
    return Record(config, **(defaults | changes))


def runs(encoding: str, values: list[float | None], **changes: Any) -> list[Record]:
    return [run(encoding, seed, value, **changes) for seed, value in enumerate(values)]


RECORDS = [
    *runs("add", [0.60, 0.61, 0.62]),
    *runs("alibi", [None, None, None]),
    *runs("concat", [0.60, 0.62, 0.61]),
    *runs("concat", [None, 0.70], args={"d_p": 16}),
    *runs("learned", [0.61, 0.64, None]),
    *runs("none", [0.50, 0.50, 0.53]),
    *runs("rope", [0.645, 0.66, 0.675]),
    *runs("add", [2.01], task="lm-rhymes", train=TrainConfig(max_steps=10)),
    *runs("rope", [1.99], task="lm-rhymes", train=TrainConfig(max_steps=10)),
]


def cells(markdown: str, label: str) -> list[str]:
    """The cells of the last row with this label in a table of results, and of that in the last table of costs."""
    found: list[list[str]] = [[], []]
    place = None
    for line in markdown.splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if row[0] == "Encoding":
            place = 0 if "Verdict" in row else 1 if "Total params" in row else None
        elif place is not None and row[0] == label:
            found[place] = row if place == 0 else row[1:]
    return found[0] + found[1]


def printed(records: list[Record], width: int) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    terminal(records, console)
    return console.file.getvalue()


def test_a_page_says_how_early_the_tested_weights_are() -> None:
    steps = {0: 500.0, 1: 300.0, 2: 1000.0}
    records = [run("add", seed, 0.6, metrics={"test/accuracy": 0.6, "best_step": step}) for seed, step in steps.items()]
    assert "- Weights chosen by: lowest val/loss; tested: step 500 of 1,000 (median)\n" in render(records)


def test_markdown_is_the_golden_file() -> None:
    # After an intended change of layout, write render(RECORDS) to GOLDEN and read the difference.
    assert render(RECORDS) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMATS)
def test_the_order_of_records_does_not_change_a_byte(form: str) -> None:
    shuffled = random.Random(0).sample(RECORDS, len(RECORDS))
    assert render(shuffled, form) == render(RECORDS, form)


@pytest.mark.parametrize("form", FORMATS)
def test_records_read_back_from_a_file_give_the_same_bytes(form: str, tmp_path: Path) -> None:
    records = [*RECORDS, run("concat", 0, 0.6, args={"ratio": 1.0, "d_p": 8})]
    write_jsonl(records, tmp_path / "runs.jsonl")
    assert render(read_records(tmp_path), form) == render(records, form)


def test_a_row_shows_mean_difference_and_verdict() -> None:
    # rope - add = 4.5, 5, 5.5 points: s = 0.5, half-width 4.3027 * 0.5 / sqrt(3); p = 0.0033, times 4 tests
    expected = ["rope", "better", "+5.00 ± 1.24", "66.00 ± 3.73", "3", "0.013"]
    assert cells(render(RECORDS), "rope")[:6] == expected
    assert cells(render(RECORDS), "none")[1:3] == ["worse", "-10.00 ± 2.48"]
    assert cells(render(RECORDS), "concat")[1:3] == ["not separable at 3 seeds", "+0.00 ± 2.48"]
    assert cells(render(RECORDS), "add")[1:3] == ["reference", "–"]


def test_costs_are_shown_in_their_units() -> None:
    assert cells(render(RECORDS), "learned")[6:] == ["8,192", "801,290", "123 M", "1,200", "1.25"]


def test_failed_runs_are_counted_and_named() -> None:
    text = render(RECORDS)
    assert cells(text, "learned")[3:5] == ["62.50 ± 19.06", "2 (1 failed)"]
    assert cells(text, "alibi")[1:5] == ["–", "–", "–", "0 (3 failed)"]
    assert "- Failed: learned seed 2: `loss is nan at step 12`" in text


def test_a_run_without_its_metric_has_failed() -> None:
    text = render([run("add", 0, 0.6), run("rope", 0, float("nan")), run("none", 0, 0.5, metrics={})])
    assert "Failed: rope seed 0: `test/accuracy is nan`" in text
    assert "Failed: none seed 0: `no test/accuracy recorded`" in text


def test_missing_seeds_are_named() -> None:
    assert render(RECORDS).count("Missing:") == 1
    assert "- Missing: concat (d_p=16) seed 2\n" in render(RECORDS)


def test_one_seed_has_no_interval_and_no_verdict() -> None:
    text = render(RECORDS[-2:])
    assert cells(text, "rope")[1:6] == ["no test with 1 seed", "-0.0200", "1.9900", "1", "–"]


def test_lower_is_better_where_the_task_says_so() -> None:
    records = runs("add", [2.0, 2.1, 2.2], task="lm-rhymes") + runs("rope", [1.9, 2.0, 2.1001], task="lm-rhymes")
    assert "bits per byte ↓" in render(records)
    assert cells(render(records), "rope")[1] == "better"


def test_commands_say_what_differs_from_the_budget() -> None:
    text = render(RECORDS)
    assert "--pe concat --pe 'concat(d_p=16)' --pe learned --pe none --pe rope --seeds 3\n" in text
    assert "--task lm-rhymes --tier core --pe add --pe rope --seeds 1 --set train.max_steps=10\n" in text


def test_the_command_of_the_core_encodings_is_short() -> None:
    records = [run(name, seed, 0.5) for name in CORE_ENCODINGS for seed in (3, 5)]
    assert "pebench run --task vit-shapes --tier core --seed 3 --seed 5\n" in render(records)


def test_other_settings_and_other_protocols_have_other_tables() -> None:
    other = TrainConfig(max_steps=10)
    records = [run("add", 0, 0.6), run("add", 0, 0.6, protocol="0.0"), run("add", 0, 0.6, train=other)]
    titles = [line for line in render(records).splitlines() if line.startswith("## vit")]
    assert titles == [
        "## vit-shapes, train.max_steps=1000, protocol 0.0",
        "## vit-shapes, train.max_steps=10, protocol 0.2",
        "## vit-shapes, train.max_steps=1000, protocol 0.2",
    ]


def test_rows_that_do_not_compare_are_flagged() -> None:
    data = DATASET | {"fingerprint": "f" * 64}
    elsewhere = ENVIRONMENT | {"device": "cuda: Some Accelerator", "commit": "def456"}
    text = render([run("add", 0, 0.6), run("rope", 0, 0.6, dataset=data, environment=elsewhere)])
    assert "**Rows were not measured on the same data.**" in text
    assert "Throughput and memory do not compare." in text
    assert "not measured with the same code" in text
    assert "SHA-256 0123456789ab / ffffffffffff" in text


def test_seeds_of_other_code_are_flagged_but_compare() -> None:
    later = ENVIRONMENT | {"commit": "def456"}
    records = [
        run(name, seed, 0.6, environment=(ENVIRONMENT, later)[seed]) for name in ("add", "rope") for seed in (0, 1)
    ]
    text = render(records)
    facts = text.partition("## Provenance")[2]
    assert "- Machines and code: Seeds were not all run with the same code; of each seed, all rows were.\n" in facts
    assert "**Seeds were not" not in text
    assert "Rows were not measured with the same code" not in text
    assert "Rows were not measured with the same code" in render([*records, run("none", 0, 0.5, environment=later)])


def test_other_data_is_flagged_on_the_same_machine_too() -> None:
    other = DATASET | {"fingerprint": "f" * 64}
    assert "**Rows were not measured on the same data.**" in render(
        [run("add", 0, 0.6), run("rope", 0, 0.6, dataset=other)]
    )


def test_without_the_reference_there_are_no_differences() -> None:
    text = render(runs("rope", [0.6, 0.7]))
    assert cells(text, "rope")[1:3] == ["–", "–"]
    assert "No row is called add" in text
    assert "No run of add finished" in render([run("add", 0, None), *runs("rope", [0.6, 0.7])])


def test_two_records_of_one_run_are_refused_unless_equal() -> None:
    assert "| add" in render([run("add", 0, 0.6), run("add", 0, 0.6)])
    with pytest.raises(UserError, match="two different records of add seed 0"):
        render([run("add", 0, 0.6), run("add", 0, 0.7)])


def test_csv_parses_back_to_raw_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(render(RECORDS, "csv"))))
    rope = next(row for row in rows if row["encoding"] == "rope" and row["n"] == "3")
    alibi = next(row for row in rows if row["encoding"] == "alibi")
    assert len(rows) == 9
    assert float(rope["mean"]) == pytest.approx(0.66)
    assert float(rope["p_adjusted"]) == pytest.approx(4 * (1 - math.sqrt(300 / 302)))  # t^2 = 300, 2 degrees
    assert json.loads(alibi["failed"]) == {str(seed): "loss is nan at step 12" for seed in range(3)}
    assert alibi["mean"] == ""


def test_json_parses_back_with_values_per_seed() -> None:
    tables = json.loads(render(RECORDS, "json"))["tables"]
    shapes = tables[1]
    assert [table["task"] for table in tables] == ["lm-rhymes", "vit-shapes"]
    assert shapes["rows"][-1]["values"] == {"0": 0.645, "1": 0.66, "2": 0.675}
    assert shapes["provenance"]["data"] == [DATASET["fingerprint"]]
    assert tables[0]["settings"] == {"train.max_steps": 10}


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_terminal_never_wraps_a_row(width: int) -> None:
    text = printed(RECORDS, width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text
    rope = next(line for line in text.splitlines() if line.startswith("rope") and "66.00" in line)
    assert "+5.00 ± 1.24" in rope
    assert "better" in rope


def test_a_wider_terminal_shows_more_columns() -> None:
    assert "Total params" not in printed(RECORDS, 80)
    assert "Total params" in printed(RECORDS, 120)


def test_the_terminal_shows_failed_and_missing_runs_as_they_are_written() -> None:
    odd = replace(run("rope", 0, None), error={"reason": "shape [2, 3]\nis wrong"})
    text = printed([run("add", 0, 0.6), run("add", 1, 0.6), odd], 80)
    assert "Failed: rope seed 0: shape [2, 3] is wrong" in text
    assert "Missing: rope seed 1" in text


def test_the_overview_has_a_column_for_every_task_of_a_tier() -> None:
    lines = render([run("add", 0, 0.6), run("add", 0, 1.5, task="lm-rhymes")]).splitlines()
    header, _, row = lines[lines.index("## Overview") + 2 :][:3]
    assert [cell.strip() for cell in header.split("|")[2:4]] == [
        "lm-rhymes<br>bits per byte ↓, n=1",
        "vit-shapes<br>accuracy % ↑, n=1",
    ]
    assert [cell.strip() for cell in row.split("|")[1:4]] == ["add", "1.5000", "60.00"]


def test_the_overview_leaves_out_what_differs_from_the_tier() -> None:
    changed = run("add", 0, 0.6, train=TrainConfig(max_steps=7))
    assert "Overview" not in render([changed, run("add", 0, 1.5, task="lm-rhymes")])


def test_tables_that_compare_with_no_other_are_in_the_overviews_too() -> None:
    records = [run("add", 0, 0.6), run("add", 0, 1.5, task="lm-rhymes")]
    alone = run("add", 0, 0.125, task="vit-shapes", train=TrainConfig(max_steps=7))
    found = overview(Page.of([*records, alone]))
    assert " 12.5 " in found
    assert [line for line in found.splitlines() if line.startswith("**")] == [
        "**tier core**", "**tier core, train.max_steps=7**",
    ]  # fmt: skip
    assert " 12.5 " not in overview(Page.of(records))


def test_an_overview_speaks_of_verdicts_only_where_rows_are_tested() -> None:
    rows = [run(name, seed, 0.5 + seed / 100) for name in ("add", "rope") for seed in range(3)]
    last = [overview(Page.of(found)).strip().splitlines()[-1] for found in (rows, rows[:3], rows[:1], rows[::3])]
    assert last[0].startswith("Means over 3 seeds. Better or worse: than `add`,")
    assert last[0].endswith(" No word: these seeds do not separate the two.")
    assert last[1:] == ["Means over 3 seeds.", "Values of one seed.", "Values of one seed."]


def test_costs_are_of_runs_that_finished() -> None:
    records = [run("add", 0, 0.6), run("add", 1, math.inf, throughput=9e9, peak_memory_gib=64.0)]
    assert cells(render(records), "add")[4] == "1 (1 failed)"
    assert cells(render(records), "add")[-2:] == ["1,200", "1.25"]


def test_throughput_is_a_mean_and_memory_the_most_of_any_run() -> None:
    records = [run("add", 0, 0.6, throughput=1000.0), run("add", 1, 0.6, throughput=1400.0, peak_memory_gib=1.75)]
    assert cells(render(records), "add")[-2:] == ["1,200", "1.75"]
