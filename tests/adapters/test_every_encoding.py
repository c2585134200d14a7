"""Every encoding in every model of another library: it runs and learns, or is refused in a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pebench import swap
from pebench.encodings.registry import encoding_cards
from pebench.errors import UserError
from tests.sampling import sampled

from .models import gpt2, images, llama, tokens, vit

NARROW = {"concat", "concat-wide", "widened"}
"""Encodings that need another width of the model's embedding or stream."""

CASES = [
    pytest.param(name, make, id=f"{name}-{make.__name__}") for name in encoding_cards() for make in (gpt2, llama, vit)
]


def refusal(name: str, make: Callable[..., Any]) -> str:
    """Return a part of the message with which a model refuses an encoding; empty where it takes it."""
    card = encoding_cards()[name]
    if (2 if make is vit else 1) not in card.declared["axes"]:
        return "position axes"
    if make is vit and card.declared["causal_only"]:
        return "serves causal models alone"
    return "weights fix its width" if name in NARROW else ""


@pytest.mark.parametrize(("name", "make"), sampled(CASES, 0, lambda name, make: name, lambda name, make: make))
def test_an_encoding_runs_or_is_refused(name: str, make: Callable[..., Any]) -> None:
    model = make()
    if expected := refusal(name, make):
        with pytest.raises(UserError, match=expected):
            swap(model, name)
        return
    swap(model, name)
    check_images(model) if make is vit else check_texts(model)
    (placed,) = [module for module in model.modules() if type(module).__name__ == "Placed"]
    idle = placed.encoding.idle
    for own, parameter in placed.encoding.named_parameters():
        if parameter.requires_grad and own not in idle:
            assert parameter.grad is not None, own
            assert parameter.grad.isfinite().all(), own


def check_images(model: Any) -> None:
    output = model.train()(images())
    assert output.isfinite().all()
    output.square().sum().backward()


def check_texts(model: Any) -> None:
    batch = tokens()
    changed = batch.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 7
    with torch.no_grad():
        logits, others = model(batch).logits, model(changed).logits
        torch.testing.assert_close(logits[:, :-1], others[:, :-1])  # no token sees a later one
        assert not torch.allclose(logits[:, -1], others[:, -1])
        mask = torch.ones_like(batch)
        mask[0, :3], mask[1, -4:] = 0, 0
        padded = model(batch, attention_mask=mask).logits
        for row, kept in ((0, slice(3, None)), (1, slice(-4)), (2, slice(None))):
            alone = model(batch[row : row + 1, kept]).logits[0]
            torch.testing.assert_close(padded[row, kept], alone, atol=2e-4, rtol=1e-4)
    loss = model.train()(batch, attention_mask=mask, labels=batch).loss
    assert loss.isfinite()
    loss.backward()
