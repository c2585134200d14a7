"""Every published number of parameters and of floating-point operations is what the code counts today."""

import functools
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench.config import RunConfig, section_values
from pebench.models.base import SequenceModule
from pebench.models.counting import count_flops, count_parameters
from pebench.runs.costs import cost
from pebench.runs.records import Record, read_records
from pebench.tasks import TASKS

RESULTS = Path(__file__).parents[2] / "results"
TEXTS = {"a76a5d27ea82": (16384, 209), "7214539c0653": (16384, 7), "312ef412e2b1": (13773, 10),
         "b4c821223d76": (10, 12), "1789c4b9aa7b": (16384, 114), "c6ed72413e79": (16384, 128)}  # fmt: skip
"""Vocabulary and median length of the data sets whose texts differ in length, by the beginning of their fingerprint."""

PARTS = 16
"""The default run counts the first part, the slow group the others."""


@functools.cache
def published() -> list[Record]:
    """One record of every model that was counted: the first of those that agree in all that decides its cost."""
    found = dict[str, Record]()
    for file in sorted(RESULTS.glob("*/runs.jsonl")):
        for record in read_records(file):
            if record.ok:
                found.setdefault(name_of(record), record)
    return list(found.values())


def name_of(record: Record) -> str:
    config = record.config
    table = config.train.token_table  # a frozen one is no parameter
    decisive = (config.label, config.model, config.data, config.regime, record.dataset["fingerprint"], table)
    return f"{config.task}-{config.encoding}-{hashlib.sha256(repr(decisive).encode()).hexdigest()[:8]}"


def sizes(record: Record) -> tuple[RunConfig, int]:
    """The configuration with the vocabulary that the data turned out to have, and the length of the example counted."""
    config, task = record.config, TASKS[record.config.task]
    if task.image or task.causal:
        return config, config.data.max_len or 0
    vocab_size, length = TEXTS[record.dataset["fingerprint"][:12]]
    return replace(config, data=replace(config.data, vocab_size=vocab_size)), length


def make(config: RunConfig) -> SequenceModule:
    """The LightningModule of a run, without its data."""
    task, data = TASKS[config.task], config.data
    if task.image:
        channels, side = task.image
        facts = {"image_size": side, "channels": channels, "patch_size": data.patch_size}
    else:
        facts = {"vocab_size": data.vocab_size, "max_len": data.max_len}
        if task.separator is not None:
            facts["separator"] = task.separator
    if task.num_classes:
        facts["num_classes"] = task.num_classes
    module = task.model_class()(config.encoding, config.encoding_args, **facts, **section_values(config, "model"))
    if config.train.token_table == "frozen":
        module.get_submodule("input").requires_grad_(False)
    return module


def example(config: RunConfig, length: int) -> tuple[torch.Tensor, ...]:
    task, label = TASKS[config.task], torch.zeros(1, dtype=torch.long)
    if task.image:
        channels, side = task.image
        return torch.zeros(1, channels, side, side), label
    tokens = torch.zeros(1, length, dtype=torch.long)
    return (tokens, tokens) if task.causal else (tokens, torch.tensor([length]), label)


def difference(record: Record) -> dict[str, Any]:
    """Every count that is another today: what was published, and what is counted."""
    config, length = sizes(record)
    module, batch = make(config), example(config, length)
    with module.trunk.using_kernel("matmul"):  # the counter cannot look into the fused kernel
        flops = count_flops(lambda: module.loss(batch))
    planned = cost(config)
    counts = {
        "model": (
            record.parameters,
            {"encoding": count_parameters(module.trunk.encoding), "total": count_parameters(module)},
        ),
        "plan": (record.parameters, {"encoding": planned.encoding, "total": planned.parameters}),
        "flops": (record.flops_per_sample, flops),
        "matched": (record.matched_flops, planned.of("FLOPs") if config.regime == "FLOPs" else None),
    }
    return {name: pair for name, pair in counts.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_published_counts_are_those_of_today(part: int) -> None:
    """A part of the models is chosen by the digest in their names: records are read by the test, not to collect it."""
    chosen = [record for record in published() if int(name_of(record)[-8:], 16) % PARTS == part]
    assert len(chosen) > 10
    assert {name_of(record): found for record in chosen if (found := difference(record))} == {}


def test_models_are_published_by_the_hundred() -> None:
    """So that the test above is not passed by reading nothing."""
    assert len(published()) > 400
    assert {record.config.task for record in published()} == {*TASKS} - {
        "lm-imdb",
        "text-agnews",
    }
