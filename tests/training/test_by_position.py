"""The loss by position, of a model whose loss at every position is known, in longer windows and in sliding ones."""

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from torch import Tensor

from pebench.data.base import Prepared
from pebench.data.language import RunningText
from pebench.models import LanguageModel
from pebench.tasks import configure
from pebench.training import extrapolation
from pebench.training.extrapolation import Beyond, measure_extrapolation
from pebench.training.runner import train
from tests.training.helpers import options, smoke

WORDS = 5
BYTES = [1, 2, 3, 4, 7]
TRAINED = 10
"""Tokens in a window, which no 4 parts divide."""


def loss_at(position: int) -> float:
    return 0.5 + 0.03 * position + (0.4 if position >= TRAINED else 0.0)


class Known(LanguageModel):
    """Knows that each token is followed by the next number, less surely the further it stands in its window."""

    def forward(self, tokens: Tensor, *_: Any, **__: Any) -> Tensor:
        if tokens.shape[1] > self.most:
            raise ValueError("too long")
        losses = torch.tensor([loss_at(position) for position in range(tokens.shape[1])], dtype=torch.float64)
        # Of a target with a logit of a and the others of 0 the loss is log(1 + (WORDS - 1) / e^a).
        surety = -((losses.exp() - 1) / (WORDS - 1)).log()
        return torch.nn.functional.one_hot((tokens + 1) % WORDS, WORDS) * surety[:, None]

    most = 1000


def measured(
    tmp_path: Path, count: int, factors: tuple[float, ...], byte_sizes: list[int] | None, most: int = 1000
) -> Beyond:
    data = RunningText(batch_size=3, max_len=TRAINED, vocab_size=WORDS)
    text = torch.arange(count) % WORDS
    data._prepared = Prepared(dict.fromkeys(("train", "val", "test"), text), {"token_bytes": BYTES})
    model = Known("none", vocab_size=WORDS, max_len=TRAINED, token_bytes=byte_sizes, d_model=8, num_heads=1)
    model.most = most
    trainer = lightning.Trainer(accelerator="cpu", logger=False, default_root_dir=tmp_path, barebones=True)
    return measure_extrapolation(trainer, model, data, factors, lambda: False)


def context_of(token: int, count: int, length: int, stride: int) -> int:
    """Return the position at which a token is predicted: in the first window that has it as a target."""
    for start in range(0, count, stride):
        if token - 1 - start < length:
            return token - 1 - start
    raise AssertionError


def expected(count: int, factor: float, stride: int, length: int, sizes: list[int]) -> list[float]:
    """Add up token by token, each under its part of the long windows."""
    long, sums = round(factor * TRAINED), dict[int, list[float]]()
    for token in range(1, count):
        place = (token - 1) % long
        part = next(part for part in range(1000) if place * 4 < (part + 1) * TRAINED)
        nats, size = sums.setdefault(part, [0.0, 0.0])
        loss = loss_at(context_of(token, count, length, stride))
        sums[part] = [nats + loss, size + sizes[token % WORDS]]
    assert [*sums] == [*range(len(sums))]
    return [nats / size for nats, size in sums.values()]


@pytest.mark.parametrize("count", [97, 101, 160, 161, 162])  # targets: a part, all, and one more than whole windows
@pytest.mark.parametrize(("byte_sizes", "unit"), [(BYTES, math.log(2)), (None, 1.0)], ids=["bytes", "tokens"])
def test_the_loss_by_position_is_the_models_at_that_position(tmp_path, count, byte_sizes, unit):
    name, factors = ("bits_per_byte" if byte_sizes else "loss"), (1.25, 2, 8)
    found = measured(tmp_path, count, factors, byte_sizes).facts["by_position"]
    assert [*found] == [f"{name}@1.25x", f"{name}@2x", f"{name}@8x"]
    for factor in factors:
        curves = found[f"{name}@{factor:g}x"]
        for kind, stride, length in (("longer", *[round(factor * TRAINED)] * 2), ("sliding", 5, TRAINED)):
            sums = expected(count, factor, stride, length, byte_sizes or [1] * WORDS)
            assert curves[kind] == pytest.approx([nats / unit for nats in sums], rel=1e-6), (factor, kind)


def test_a_part_ends_at_the_trained_length(tmp_path):
    found = measured(tmp_path, 161, (2,), None).facts["by_position"]["loss@2x"]["longer"]
    # Positions 0 to 2, 3 and 4, 5 to 7, 8 and 9, then those that the model was not trained on: 10 to 12 and so on.
    middles = (1, 3.5, 6, 8.5, 11, 13.5, 16, 18.5)
    assert found == pytest.approx([0.5 + 0.03 * p + 0.4 * (p > 10) for p in middles], rel=1e-6)


def test_parts_add_up_to_the_loss_of_the_whole_text(tmp_path):
    found = measured(tmp_path, 161, (2,), None)
    curves = found.facts["by_position"]["loss@2x"]
    counts = [24, 16, 24, 16] * 2  # of eight windows
    for kind, label in (("longer", "2x"), ("sliding", "sliding")):
        whole = sum(n * value for n, value in zip(counts, curves[kind], strict=True)) / 160
        assert whole == pytest.approx(found.metrics[f"test/loss@{label}"], rel=1e-6)


def test_a_size_at_which_the_model_breaks_has_no_curve_and_the_others_do(tmp_path):
    found = measured(tmp_path, 161, (2, 4, 8), BYTES, most=40).facts
    assert [*found["by_position"]] == ["bits_per_byte@2x", "bits_per_byte@4x"]
    assert [*measured(tmp_path, 25, (2, 4), BYTES).facts["by_position"]] == ["bits_per_byte@2x"]  # too short for 40


def test_a_part_whose_mean_is_no_number_is_left_out(tmp_path):
    found = measured(tmp_path, 161, (2,), [0] * WORDS)
    assert found.facts["by_position"]["bits_per_byte@2x"]["longer"] == [None] * 8
    assert "test/bits_per_byte@2x" not in found.metrics


def test_what_is_collected_ends_with_its_size(tmp_path):
    model = Known("none", vocab_size=WORDS, max_len=TRAINED, d_model=8, num_heads=1)
    data = RunningText(max_len=TRAINED, vocab_size=WORDS)
    data._prepared = Prepared({"test": torch.arange(41) % WORDS}, {"token_bytes": BYTES})
    positions = extrapolation.LossByPosition(model, data, {"2x": 2.0})
    (_, control), (_, longer) = data.beyond((2,))
    for label, batches in (("sliding", control), ("2x", longer), ("4x", longer)):
        with pytest.raises(KeyError, match="stop"), positions.watch(label, model, batches):
            raise KeyError("stop")
    assert not model._forward_hooks


@pytest.mark.parametrize(
    ("task", "encoding", "curves"),
    [
        ("lm-grammar", "rope", {"bits_per_byte@2x": 8, "bits_per_byte@4x": 16}),
        ("lm-grammar", "learned", {}),
        ("vit-digits", "rope", {}),
        ("seq-copy", "rope", {}),
    ],
)
def test_records_of_language_models_have_it(tmp_path, caplog, task, encoding, curves):
    caplog.set_level(logging.WARNING)
    record = train(smoke(task, encoding, max_steps=2), options(tmp_path))
    found = record.beyond.get("by_position", {})
    assert {name: len(curve["longer"]) for name, curve in found.items()} == curves
    assert {name: len(curve["sliding"]) for name, curve in found.items()} == curves
    assert record.beyond["policy"] == ("refuses" if encoding == "learned" else "goes on")
    assert "nothing was measured" not in caplog.text
    for name in found:  # of the same forward passes
        mean = sum(found[name]["longer"]) / len(found[name]["longer"])
        assert mean == pytest.approx(record.metrics[f"test/{name}"], rel=5e-3)


def test_a_run_that_selects_has_none(tmp_path):
    config = replace(configure("lm-grammar", "rope", 0, "smoke"), stage="select", selected=("train.learning_rate",))
    record = train(config, options(tmp_path))
    assert not record.beyond
    assert "beyond" not in record.to_dict()
