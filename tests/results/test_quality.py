"""How good the models of a page are: against answers that were worked out by hand, and in every format."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pebench.data.hub import load_hub
from pebench.data.tables import Columns
from pebench.results.citations import bibliography
from pebench.results.page import Page
from pebench.results.quality import Seen, best_and_median, late_change, late_changes, seen, turned, word_perplexity
from pebench.results.tables import Table
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from pebench.tasks import TASKS, configure, sources
from pebench.tasks.published import WIKITEXT2_TEST, Published, TextSize

DATA = os.environ.get("PEBENCH_DATA_DIR")  # as it was before the tests, which no test sees
STEPS = (500, 1000, 1500)
TRAINING = {"train.max_steps": 1500, "train.batch_size": 4}


def run(
    encoding: str, seed: int, value: float, losses: Sequence[float], task: str = "vit-digits", **changes: Any
) -> Record:
    """A record whose validation metric took these values at the first, second and last third of its steps."""
    settings = TRAINING | changes.pop("settings", {})
    config = configure(task, encoding, seed, "smoke", settings)
    metric = TASKS[task].monitored(config.train.monitor)[0]
    curve = [{"step": step, metric: loss} for step, loss in zip(STEPS, losses, strict=False)]
    dataset = {"fingerprint": "f" * 64, "sizes": {"train": 1500}}
    usual: dict[str, Any] = {"dataset": dataset, "parameters": {"total": 2000}, "curve": curve}
    return Record(config, metrics={f"test/{TASKS[task].metric}": value}, **(usual | changes))


def table(records: Sequence[Record]) -> Table:
    (found,) = Page.of(records).tables
    return found


def several(values: Mapping[str, tuple[float, float, float]], task: str = "vit-digits") -> list[Record]:
    """Eight runs of each encoding, by its test value, and its loss at the second third and at the end."""
    return [
        run(encoding, seed, value + 0.001 * seed, (9.0, before, last), task)
        for encoding, (value, before, last) in values.items()
        for seed in range(8)
    ]


def said(records: Sequence[Record]) -> str:
    return markdown(Page.of(records))


def test_images_are_counted_as_examples_and_have_no_tokens() -> None:
    found = table([run("add", 0, 0.5, (3, 2, 1))])
    assert seen(found) == Seen(6000, "images", 4.0)  # 1,500 steps of 4 images, of which there are 1,500
    assert seen(found).per_parameter(found.rows[0]) is None


def test_tokens_of_a_text_are_those_of_its_windows() -> None:
    # 1,500 steps of 4 windows of 50 tokens; 1,500 places for a window in a text of 1,550 tokens; 2,000 parameters
    records = [run("add", 0, 2.0, (3, 2, 1), "lm-grammar", settings={"data.max_len": 50})]
    found = table(records)
    assert (seen(found).count, seen(found).unit) == (300_000, "tokens")
    assert seen(found).epochs == pytest.approx(300_000 / 1550)
    assert seen(found).per_parameter(found.rows[0]) == 150.0


def test_epochs_are_unknown_without_the_size_of_the_split() -> None:
    assert seen(table([run("add", 0, 0.5, (), dataset={"fingerprint": "f" * 64})])).epochs is None


def test_a_late_change_is_relative_to_the_loss_at_two_thirds() -> None:
    found = table([run("add", 0, 0.5, (9.0, 2.0, 1.5)), run("add", 1, 0.5, (9.0, 2.0, 1.3))])
    change = late_change(found.rows[0], found)
    assert change is not None
    assert (change.metric, change.start, change.end, change.first) == ("val/loss", 1000, 1500, 2.0)
    assert change.change.mean == pytest.approx(-0.3)  # -25 % and -35 %
    assert change.change.half_width == pytest.approx(12.7062 * 0.05, rel=1e-4)  # t(0.975; 1) s / sqrt(2)
    # at this pace a doubling, which is 1 / log2(1.5) times as much, leaves 0.7 to that power
    assert change.per_doubling == pytest.approx(0.7 ** (1 / 0.5849625) - 1)


def test_an_accuracy_changes_in_points_where_it_chooses_the_weights() -> None:
    by_loss = table([run("add", 0, 0.5, (0.2, 0.4, 0.43))])
    found = table([run("add", 0, 0.5, (0.2, 0.4, 0.43), settings={"train.monitor": "metric"})])
    change = late_change(found.rows[0], found)
    assert change is not None
    assert (change.metric, round(change.change.mean, 6)) == ("val/accuracy", 0.03)
    assert change.per_doubling == pytest.approx(0.03 / 0.5849625)
    assert "validation accuracy of `add` changed by +3.0 points (+5.1 for" in markdown(Page((found,)))
    assert "validation loss of `add` changed by +7.5 % (" in markdown(Page((by_loss,)))


@pytest.mark.parametrize("losses", [(), (2.0,), (0.0, 0.0, 0.0)])
def test_a_curve_with_one_point_or_of_zeros_has_no_late_change(losses: Sequence[float]) -> None:
    found = table([run("add", 0, 0.5, losses)])
    assert late_change(found.rows[0], found) is None


def test_only_steps_that_all_seeds_have_count() -> None:
    found = table([run("add", 0, 0.5, (9.0, 2.0, 1.0)), run("add", 1, 0.5, (8.0, 4.0))])
    change = late_change(found.rows[0], found)
    assert change is not None
    assert (change.start, change.end, change.last) == (500, 1000, 3.0)


def test_rows_with_other_steps_are_not_compared() -> None:
    assert late_changes(table([run("add", 0, 0.5, (3, 2, 1)), run("rope", 0, 0.5, (3, 2))])) == {}


@pytest.mark.parametrize(
    ("task", "better", "worse"), [("vit-digits", 0.7, 0.5), ("lm-grammar", 1.5, 2.5)], ids=["accuracy", "bits"]
)
def test_rows_that_stood_on_the_other_side_before_are_named(task: str, better: float, worse: float) -> None:
    usual = 0.6 if task == "vit-digits" else 2.0
    records = several(
        {
            "add": (usual, 2.0, 1.0), "rope": (better, 2.5, 0.8), "none": (worse, 3.0, 1.5),
            "learned": (usual, 9.0, 1.0),
        },
        task,
    )  # fmt: skip
    found = table(records)
    assert {row.label: row.verdict.significant for row in found.rows if row.verdict} == {
        "learned": False, "none": True, "rope": True,
    }  # fmt: skip
    assert turned(found, late_changes(found)) == (2, ["rope"])  # better in the test, of a higher loss before
    text = "2 rows differ from `add` in the test; validation at step 1,000 had `rope` on the other side."
    assert text in said(records)


def test_sides_of_accuracies_are_those_of_the_test_where_accuracy_chooses_the_weights() -> None:
    records = [
        run(name, seed, value + 0.001 * seed, (0.1, before, value), settings={"train.monitor": "metric"})
        for name, (value, before) in {"add": (0.6, 0.5), "rope": (0.7, 0.4), "none": (0.5, 0.3)}.items()
        for seed in range(8)
    ]
    found = table(records)
    assert turned(found, late_changes(found)) == (2, ["rope"])


def test_a_row_that_stood_on_the_same_side_is_counted() -> None:
    records = several({"add": (0.6, 2.0, 1.0), "rope": (0.7, 1.5, 0.8)})
    assert "1 row differs from `add` in the test; validation at step 1,000 had it on the same side." in said(records)


def test_nothing_is_said_of_sides_where_nothing_differs() -> None:
    records = several({"add": (0.6, 2.0, 1.0), "rope": (0.6, 2.5, 0.8)})
    found = table(records)
    assert turned(found, late_changes(found)) is None
    assert "in the test;" not in said(records)


@pytest.mark.parametrize(("task", "labels"), [("vit-digits", ["rope", "none"]), ("lm-grammar", ["add", "learned"])])
def test_best_and_median_follow_the_direction_of_the_metric(task: str, labels: list[str]) -> None:
    values = {"add": 0.1, "none": 0.2, "learned": 0.3, "rope": 0.4}
    found = table([run(name, 0, value, (), task) for name, value in values.items()])
    assert [(kind, row.label) for kind, row in best_and_median(found)] == list(
        zip(["best", "median"], labels, strict=True)
    )


def test_of_two_rows_there_is_no_median() -> None:
    found = table([run(name, 0, value, ()) for name, value in (("add", 0.1), ("rope", 0.2))])
    assert [(kind, row.label) for kind, row in best_and_median(found)] == [("best", "rope")]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Page:
    """A page of a language model, on whose text others have published something."""
    published = (
        Published(model="LSTM", cite="merity2018regularizing", word_perplexity=65.8, parameters=33_000_000, epochs=750),
        Published(model="Mine", cite="Me 2020", value=1.25, remark="one run"),
    )
    changed = replace(TASKS["lm-grammar"], published=published, test_text=TextSize(bytes=40, words=10))
    monkeypatch.setitem(TASKS, "lm-grammar", changed)
    values = {"add": 1.5, "rope": 1.0, "none": 2.0}
    records = [
        run(name, 0, value, (3.0, 2.0, 1.0), "lm-grammar", settings={"data.max_len": 50})
        for name, value in values.items()
    ]
    return Page.of(records)


ROWS = [
    ["ours, best: rope", "2 k", "1.0000", "16.0", "194 epochs, 150 tokens a parameter"],
    ["ours, median: add", "2 k", "1.5000", "64.0", "194 epochs, 150 tokens a parameter"],
    ["LSTM (Merity et al. 2018)", "33 M", "–", "65.8", "750 epochs"],
    ["Mine (Me 2020)", "–", "1.2500", "–", "one run"],
]


def test_ours_stand_beside_published_ones(known: Page) -> None:
    text = markdown(known)
    part = text[text.index("### How good these models are, lm-grammar") :]
    lines = [line for line in part[: part.index("Sources")].splitlines() if line.startswith("|")]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]] == ROWS
    assert "times the 4.00 bytes of a word" in part
    assert "changed by -50.0 % (-69.4 for a doubling of steps), that of the other rows by -50.0." in part
    assert "Sources: [Merity et al. 2018](https://arxiv.org/abs/1708.02182), Me 2020." in part


def test_html_has_the_same_part(known: Page) -> None:
    text = html(known)
    part = text[text.index('<details class="section" id="quality">') :]
    part = part[: part.index("</details>")]
    for row in ROWS:
        assert row[0] in part
    assert '<td class="number " data-value="65.8">' in part
    assert '<a href="#quality">How good these models are</a>' in text


def test_json_has_its_numbers(known: Page) -> None:
    found = json.loads(to_json(known))["tables"][0]["quality"]
    assert found["seen"] == {"count": 300_000, "unit": "tokens", "epochs": pytest.approx(300_000 / 1550)}
    assert found["tokens_per_parameter"] == {"add": 150.0, "none": 150.0, "rope": 150.0}
    assert found["word_perplexity"]["rope"] == {"mean": 16.0, "half_width": None, "n": 1}
    assert found["late_changes"]["add"]["change"]["mean"] == -0.5
    assert [one["cite"] for one in found["published"]] == ["merity2018regularizing", "Me 2020"]


def test_a_page_of_which_nothing_is_known_has_no_such_part() -> None:
    records = [run("add", 0, 0.5, (), dataset={"fingerprint": "f" * 64})]
    assert "How good" not in markdown(Page.of(records))
    assert 'id="quality"' not in html(Page.of(records))


def test_tables_of_a_task_share_a_part_and_are_told_apart() -> None:
    deep = [run("add", 0, 0.5, (3, 2, 1), settings={"model.num_layers": 4})]
    text = markdown(Page.of([run("add", 0, 0.5, (3, 2, 1)), *deep]))
    assert text.count("### How good these models are") == 1
    assert text.count("**model.num_layers=4.** Each run saw 6 k images in 1,500 steps, 4 epochs.") == 1


@pytest.mark.parametrize("task", [task for task in TASKS.values() if task.published], ids=lambda task: task.name)
def test_published_results_have_a_source_and_one_value(task: Any) -> None:
    for one in task.published:
        assert one.cite in bibliography()
        assert (one.value is None) != (one.word_perplexity is None)
        assert one.word_perplexity is None or task.test_text
        assert not task.percent or 0 < one.value < 1


@pytest.mark.skipif(
    not (DATA and (Path(DATA) / sources.WIKITEXT2.folder).is_dir()), reason="needs WikiText-2 in PEBENCH_DATA_DIR"
)
def test_words_of_wikitext2_are_those_of_its_test_split() -> None:
    lines = load_hub(sources.WIKITEXT2, Path(DATA or ""), {"test"}, Columns(blank=True))["test"].texts
    words = sum(len(line.split()) + 1 for line in lines)
    assert words == 245_569  # as the literature counts, ends of blank lines among them
    ours = TextSize(sum(len(line.encode()) for line in lines), sum(len(line.split()) + 1 for line in lines if line))
    assert ours == WIKITEXT2_TEST


def test_a_row_without_values_has_no_perplexity_of_words() -> None:
    lost = replace(
        run("rope", 0, 2.0, (), "lm-wikitext2"),
        status="failed", error={"kind": "diverged", "reason": "loss is nan"}, metrics={},
    )  # fmt: skip
    found = table([run("add", 0, 2.0, (), "lm-wikitext2"), lost])
    ours, none = (word_perplexity(row, found) for row in found.rows)
    assert none is None
    assert ours is not None
    assert ours.mean == pytest.approx(2 ** (2 * 1_253_515 / 244_102))
