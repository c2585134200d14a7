"""Properties of the order of tokens, and of the order of samples in a batch."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from pebench.conformance.bench import Bench, shuffled
from pebench.conformance.comparisons import DIFFERENT, SAME, gap, require, require_different, require_same
from pebench.conformance.properties.base import encoding_property, is_bidirectional, is_causal
from pebench.models.transformer import Transformer


@encoding_property("order", when=is_bidirectional)
def _order(bench: Bench) -> None:
    """Tokens in another order give another output, unless it declares to be blind."""
    check_permuted(bench, shuffled(bench.length), noticed=not bench.encoding.blind)


@encoding_property("order of the past", when=is_causal)
def _past_order(bench: Bench) -> None:
    """Where only one block attends, the last token notices the order of the others, unless blind.

    Attention of several causal layers knows an order by itself, that of one layer does not.
    """
    # one layer is enough: an encoding may act in some layers alone
    gaps = order_effect_by_layer(bench)
    if bench.encoding.blind:
        require(max(gaps) <= SAME, "a last token that does not notice the others' order", f"differences of {gaps}")
    else:
        require(max(gaps) > DIFFERENT, "a last token that notices the others' order", f"differences of {gaps}")


def order_effect_by_layer(bench: Bench) -> list[float]:
    """Measure how far the last token's output moves with the order of the others, where one block alone attends.

    Args:
        bench: Bench of the encoding.

    Returns:
        Largest difference of the output for each layer.
    """
    content, last = bench.content, bench.length - 1
    order = torch.cat((shuffled(last), torch.tensor([last])))
    return [gap(model(content[:, order])[:, -1], model(content)[:, -1]) for model in one_layer_attends(bench.model)]


@encoding_property("batch")
def _batch(bench: Bench) -> None:
    """Samples do not know of each other, nor of their number."""
    content = bench.noise(bench.length)  # as many as tokens: whoever takes one for the other does not fail by shape
    order = shuffled(len(content))
    output = bench.model(content)
    require_same(bench.model(content[order]), output[order], "samples in another order to give the same")
    require_same(bench.model(content[:1]), output[:1], "a sample alone to give the same")


def check_permuted(bench: Bench, order: Tensor, noticed: bool) -> None:
    """Raise `BrokenError` unless a new order of tokens is noticed, or is not, token by token and in the mean.

    Args:
        bench: Bench of the encoding.
        order: The new order, a permutation: (L,).
        noticed: True if the outputs must differ.
    """
    model, content = bench.model, bench.content
    one, other = model(content[:, order]), model(content)[:, order]
    compare: Any = require_different if noticed else require_same
    compare(one, other, f"outputs that {'notice' if noticed else 'do not notice'} that tokens are moved")
    verb = "notices" if noticed else "does not notice"
    # also in the mean, as a classifier sees no more: outputs that merely change places tell it no order
    compare(one.mean(1), other.mean(1), f"a mean that {verb} that tokens are moved")


def one_layer_attends(model: Transformer) -> Iterator[Transformer]:
    """Yield copies of a model in each of which the attention of all blocks but one adds nothing."""
    for one in range(len(model.blocks)):
        other = copy.deepcopy(model)
        for layer, block in enumerate(other.blocks):
            if layer != one:
                # only the projection after attention: the feed-forward layer stays, so that depth and scale do
                nn.init.zeros_(block.attention.out.weight)  # type: ignore[union-attr, arg-type]
        yield other
