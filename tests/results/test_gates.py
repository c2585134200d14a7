"""Gates: each says that it holds where it should, that it does not where it should not, and nothing elsewhere."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pebench.results.gates import gates
from pebench.results.page import Page
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record, read_records
from pebench.runs.suite import Suite
from pebench.tasks import configure

NOISE = [0.0, 0.001, -0.001, 0.0005, -0.0005, 0.0, 0.0002, -0.0002]


def rows(task: str, means: dict[str, float], seeds: int = 3, options: Any = None, **more: float) -> list[Record]:
    """Records with these means; `more` are factors of further test metrics: ``shuffled=0.9``."""
    metric = "bits_per_byte" if task.startswith("lm") else "accuracy"
    records = []
    for name, mean in means.items():
        for seed in range(seeds):
            value = mean + NOISE[(seed + len(name)) % 8]
            metrics = {f"test/{metric}": value, "test/perplexity": 10 * value}
            metrics |= {f"test/{metric}@{label}": factor * value for label, factor in more.items()}
            config = configure(task, name, seed, "smoke", encoding_args=options)
            records.append(Record(config, metrics=metrics, dataset={"sizes": {"test": 1000}}))
    return records


def outcomes(records: list[Record], suite: Suite | None = None) -> list[tuple[str, bool]]:
    return [(gate.rule.split()[0], gate.holds) for gate in gates(Page.of(records, suite))]


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.9999, True), (0.98, False)])
def test_without_an_encoding_order_does_not_count(factor, holds):
    records = rows("vit-digits", {"none": 0.5, "add": 0.6}, shuffled=factor)
    assert outcomes(records) == [("Without", holds)]
    assert outcomes(rows("vit-digits", {"add": 0.6}, shuffled=factor)) == []
    assert outcomes(rows("vit-digits", {"none": 0.5, "add": 0.6})) == []


@pytest.mark.parametrize(
    ("means", "holds"),
    [
        ({"none": 0.333, "add": 0.99, "rope": 0.96}, True),
        ({"none": 0.333, "add": 0.99, "rope": 0.94}, False),
        ({"none": 0.40, "add": 0.99}, False),
        ({"rope": 0.97, "add": 0.99}, None),
        ({"rope": 0.90, "add": 0.99}, False),
    ],
)
def test_order_alone_is_learned_by_encodings_alone(means, holds):
    assert outcomes(rows("text-order", means)) == [("An", holds)]


@pytest.mark.parametrize(("loss", "holds"), [(1.84, True), (1.92, True), (1.80, False), (1.95, False)])
def test_the_published_loss_of_a_known_recipe_is_reached(loss, holds):
    config = configure("lm-shakespeare", "learned", 0, "core")
    metrics = {"test/bits_per_byte": 2.7, "val/loss": loss - 0.1, "test/loss": loss + 0.1}  # half of its split each
    records = [Record(config, metrics=metrics), Record(config.with_seed(1), status="failed", error={"reason": "?"})]
    assert outcomes(records) == [("At", holds)]
    longer = configure("lm-shakespeare", "learned", 0, "core", {"train.max_steps": 4000})
    assert outcomes([replace(records[0], config=longer)]) == []
    assert outcomes([replace(records[0], config=configure("lm-shakespeare", "add", 0, "core"))]) == []


@pytest.mark.parametrize(
    ("means", "holds"),
    [
        ({"none": 0.50, "learned": 0.55, "add": 0.56, "rope": 0.60}, True),
        ({"none": 0.52, "learned": 0.55, "add": 0.56, "rope": 0.60}, False),
        ({"none": 0.50, "learned": 0.55, "add": 0.61, "rope": 0.60}, False),
    ],
)
def test_images_rank_as_published(means, holds):
    assert outcomes(rows("vit-cifar10", means)) == [("Images:", holds)]
    assert outcomes(rows("vit-cifar10", {k: v for k, v in means.items() if k != "rope"})) == []


@pytest.mark.parametrize(("encoding", "factor", "holds"), [
    ("add", 1.6, True), ("add", 1.2, False), ("alibi", 1.01, True), ("alibi", 1.1, False),
])  # fmt: skip
def test_what_extrapolates(encoding, factor, holds):
    records = rows("lm-grammar", {encoding: 2.0, "none": 2.0})
    for record in records:
        record.metrics.update({"test/loss": 2.0, "test/loss@2x": 2.0 + math.log(factor)})
    assert outcomes(records) == [("At", holds)]


@pytest.mark.parametrize(("rope", "holds"), [(0.601, True), (0.61, False), (0.55, False)])
def test_topics_need_no_order(rope, holds):
    assert outcomes(rows("text-agnews", {"add": 0.6, "rope": rope})) == [("Topics:", holds)]


def test_noise_excuses_a_small_difference_of_topics_but_no_large_one():
    records = rows("text-agnews", {"add": 0.6, "rope": 0.6})
    for record, value in zip(records, [0.6, 0.6, 0.6, 0.59, 0.60, 0.64], strict=True):
        record.metrics["test/accuracy"] = value
    assert outcomes(records) == [("Topics:", True)]  # 1 point, and an interval of 6.6
    records[-1].metrics["test/accuracy"] = 0.70
    assert outcomes(records) == [("Topics:", False)]  # 3 points


def test_a_single_seed_says_nothing_of_topics():
    assert outcomes(rows("text-agnews", {"add": 0.6, "rope": 0.7}, seeds=1)) == []


def projections(gap: float, *, at_small: float) -> list[tuple[str, bool]]:
    encodings = [
        (name, {"ratio": ratio} if ratio != 1 else {}) for name in ("add", "concat-proj") for ratio in (1, 0.1)
    ]
    suite = Suite("mine", "?", ["vit-digits"], encodings, seeds=8, tier="smoke", expect="", margin={"accuracy": 0.005})
    records = []
    for options, difference in ((None, gap), ({"ratio": 0.1}, at_small)):
        records += rows("vit-digits", {"add": 0.6, "concat-proj": 0.6 + difference}, 8, options)
    return outcomes(records, suite)


def test_concat_with_a_projection_is_add_with_one():
    assert projections(0.0, at_small=0.0) == [("concat-proj", True)]
    assert projections(0.02, at_small=0.02) == [("concat-proj", True)]  # a gap that survives
    assert projections(0.02, at_small=-0.02) == [("concat-proj", False)]
    assert projections(0.02, at_small=0.0) == [("concat-proj", False)]


def test_few_seeds_say_nothing_of_projections():
    suite = Suite("mine", "?", ["vit-digits"], ["add", "concat-proj"], seeds=3, tier="smoke", expect="")
    assert outcomes(rows("vit-digits", {"add": 0.6, "concat-proj": 0.7}), suite) == []


def test_images_at_twice_their_resolution_are_no_text_of_twice_the_length():
    records = rows("vit-digits", {"add": 0.6, "alibi": 0.6})
    for record in records:
        record.metrics.update({"test/loss": 1.0, "test/loss@2x": 2.0})
    assert outcomes(records) == []


def test_gates_stand_on_the_page():
    text = markdown(Page.of(rows("text-order", {"none": 0.333, "add": 0.9, "rope": 0.97})))
    assert "## Expected results, checked" in text
    assert "**Does not hold** on text-order. An order-only task" in text
    assert "Found: none 33.3 %; unsolved: add 90.0 %." in text
    assert "Found: no none; unsolved: by no other." in markdown(Page.of(rows("text-order", {"add": 0.97})))
    assert "## Expected" not in markdown(Page.of(rows("text-order", {"none": 0.333})))
    assert "## Expected" not in markdown(Page.of(rows("vit-digits", {"add": 0.6, "rope": 0.5})))


def test_real_records_have_what_the_gates_look_at() -> None:
    records = read_records(Path(__file__).parents[2] / "results" / "shakespeare")
    assert [(gate.rule[:10], gate.holds) for gate in gates(Page.of(records))] == [
        ("At twice t", True),
        ("At the siz", True),
    ]
