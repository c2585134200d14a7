"""The record of a run: metrics, costs, data and environment."""

import math
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pebench import __version__
from pebench.config import RunConfig
from pebench.data import datamodule_of
from pebench.models.counting import count_parameters
from pebench.models.transformer import Transformer
from pebench.runs.costs import cost
from pebench.runs.records import Record, find_record, read_records
from pebench.tasks import configure, find_task
from pebench.training.probe import probe
from pebench.training.runner import build, train
from tests.training.helpers import EMBEDDED, options, smoke


def numbers(value: Any) -> Iterator[float]:
    """Every number in nested plain values."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float):
        yield value


def test_a_record_has_every_field(record: Record, out: Path) -> None:
    absent = {f.name for f in fields(Record) if getattr(record, f.name) in (None, {}, [], "")}
    untested = set() if find_task(record.config.task).beyond else {"beyond"}  # texts have no other sizes
    assert absent == {"analysis", "error", "matched_flops"} | untested
    assert record.ok
    assert all(math.isfinite(number) for number in numbers(record.to_dict()))
    assert find_record(record.config, out) == record


def test_a_record_has_validation_and_test_metrics(record: Record) -> None:
    names = {"loss", "perplexity", "bits_per_byte"} if "lm" in record.config.task else {"loss", "accuracy"}
    of_size = {name for name in record.metrics if "@" not in name}
    assert of_size == {"best_step", *(f"{split}/{name}" for split in ("val", "test") for name in names)}


def test_a_curve_has_a_point_for_each_evaluation(record: Record) -> None:
    assert [point["step"] for point in record.curve] == [4, 8, 12]
    assert all({"val/loss", "train/loss"} <= set(point) for point in record.curve)


def test_a_curve_has_a_point_at_the_last_step_where_evaluations_do_not_divide_the_steps(tmp_path: Path) -> None:
    ran = train(smoke(max_steps=11, evaluations=3), options(tmp_path))
    assert [point["step"] for point in ran.curve] == [3, 6, 9, 11]


def test_the_headline_metric_may_choose_the_weights(tmp_path: Path) -> None:
    config = smoke("vit-digits", "add", max_steps=60, evaluations=12, learning_rate=0.05, monitor="metric")
    record = train(config, options(tmp_path))
    accuracies = {point["step"]: point["val/accuracy"] for point in record.curve if "val/accuracy" in point}
    losses = {point["step"]: point["val/loss"] for point in record.curve if "val/loss" in point}
    assert record.metrics["best_step"] == max(accuracies, key=accuracies.__getitem__)
    assert record.metrics["val/accuracy"] == max(accuracies.values())
    assert max(accuracies, key=accuracies.__getitem__) != min(losses, key=losses.__getitem__)  # else it shows nothing


def test_the_validation_metrics_are_those_of_the_best_point(record: Record) -> None:
    best = min(record.curve, key=lambda point: point["val/loss"])
    assert record.metrics["best_step"] == best["step"]
    chosen = {name: value for name, value in record.metrics.items() if name.startswith("val/")}
    assert chosen == {name: value for name, value in best.items() if name.startswith("val/")}


def test_costs_are_of_a_likely_size(record: Record) -> None:
    assert 0.05 < record.peak_memory_gib < 16
    assert 0.01 < record.duration_s < 600
    assert 10 < record.throughput < 1e6
    assert record.throughput * record.duration_s > record.config.train.batch_size


def test_what_flops_are_matched_by_is_recorded_where_they_are(record: Record, tmp_path: Path) -> None:
    assert record.matched_flops is None
    config = replace(record.config, regime="FLOPs")
    found = train(config, options(tmp_path))
    assert found.matched_flops == cost(config).flops
    assert found.flops_per_sample == record.flops_per_sample


def test_the_data_are_named_by_content_and_size(record: Record) -> None:
    assert re.fullmatch("[0-9a-f]{64}", record.dataset["fingerprint"])
    assert set(record.dataset["sizes"]) == {"train", "val", "test"}
    assert (record.dataset["padding"] is not None) == (record.config.task == "text-order")


def test_the_environment_is_described(record: Record) -> None:
    environment = record.environment
    versions = {"python", "pebench", "torch", "torchvision", "lightning", "torchmetrics", "datasets", "numpy"}
    assert versions <= set(environment["versions"])
    assert environment["versions"]["torch"] == torch.__version__
    assert environment["versions"]["pebench"] == __version__
    assert environment["device"].startswith("cpu: ")
    assert (environment["threads"], environment["precision"], environment["attention"]) == (1, "32-true", "sdpa")
    commit = environment["commit"]
    assert commit is None or re.fullmatch(r"[0-9a-f]{10,}(\+changes-[0-9a-f]{10})?", commit)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record.started)


def widths(config: RunConfig) -> tuple[int, int, int, int]:
    """Channels, layers, tokens in a sequence, and what the head gives out."""
    length, classes = {"vit-digits": (16, 10), "text-order": (16, 3), "lm-grammar": (64, 35)}[config.task]
    return config.model.d_model, config.model.num_layers, length, classes


def test_parameters_equal_a_count_by_hand(record: Record) -> None:
    d, layers, length, classes = widths(record.config)
    block = 2 * 2 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d)
    inputs = {"vit-digits": 4 * d + d, "text-order": 10 * d, "lm-grammar": classes * d}[record.config.task]
    assert record.parameters["encoding"] == length * d  # learned: a vector for every position
    head = classes * d + classes
    assert record.parameters["total"] == length * d + inputs + layers * block + 2 * d + head


@pytest.mark.parametrize("task", EMBEDDED)
def test_flops_equal_a_count_by_hand(task: str) -> None:
    settings = {"model.d_model": 32, "model.num_layers": 3, "train.batch_size": 4}
    config = configure(task, "none", 0, "smoke", settings)
    data = datamodule_of(config)
    module = build(config, data)
    d, layers, longest, classes = widths(config)
    expected = set()
    for length in (8, 12, 16) if task == "text-order" else (longest,):  # it says "one text", not which
        blocks = layers * length * (2 * 12 * d * d + 4 * length * d)
        patches = length * 2 * 4 * d if task == "vit-digits" else 0
        head = 2 * d * classes * (length if task == "lm-grammar" else 1)
        expected.add(3 * (blocks + head) + 2 * patches)  # no gradient of the pixels
    assert probe(module, data).flops in expected


def test_counting_flops_leaves_the_model_as_it_was() -> None:
    config = smoke("lm-grammar", "alibi")
    data = datamodule_of(config)
    module, untouched = build(config, data), build(config, data)
    probe(module, data)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), untouched.parameters(), strict=True))
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in module.parameters())


@pytest.mark.parametrize(("encoding", "precision", "kernel"), [
    ("alibi", "32-true", "sdpa"), ("t5-bias", "32-true", "matmul"), ("alibi", "bf16-mixed", "matmul"),
])  # fmt: skip
def test_a_record_names_the_kernel_that_its_encoding_took(
    encoding: str, precision: str, kernel: str, tmp_path: Path
) -> None:
    record = train(smoke("lm-grammar", encoding, precision=precision), options(tmp_path))
    assert record.environment["attention"] == kernel


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not a leaf Tensor.*")  # torch._dynamo looks, and suppresses it otherwise
def test_a_compiled_run_learns_the_same_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, usual = [], Transformer.compile
    monkeypatch.setattr(  # without a C++ compiler
        Transformer, "compile", lambda trunk: (compiled.append(trunk), usual(trunk, backend="eager"))
    )
    ours, plain = (train(smoke("lm-grammar", "rope", compile=value), options(tmp_path)) for value in (True, False))
    assert (ours.environment["compiled"], plain.environment["compiled"], len(compiled)) == (True, False, 1)
    assert ours.metrics == pytest.approx(plain.metrics, rel=1e-5)


def test_a_record_says_that_nothing_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transformer, "compile", lambda trunk: setattr(trunk, "_compiled", trunk._mix))
    record = train(smoke("lm-grammar", "rope", compile=True), options(tmp_path))
    assert record.environment["compiled"] is False


@pytest.mark.parametrize("task", EMBEDDED)
def test_flops_do_not_depend_on_the_seed(task: str) -> None:
    configs = [smoke(task, seed=seed) for seed in range(5)]
    assert len({probe(build(c, d), d).flops for c in configs for d in [datamodule_of(c)]}) == 1


def test_every_parameter_is_counted_once() -> None:
    linear = nn.Linear(3, 2)
    linear.bias.requires_grad_(False)
    assert count_parameters(nn.ModuleList([linear, linear])) == 6


def test_a_folder_of_runs_is_read_as_records(record: Record, out: Path) -> None:
    assert record in read_records(out)
