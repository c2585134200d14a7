"""Attention with a bias: whole; or for long texts by blocks of queries, or by a kernel that asks for each pair."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pebench.encodings.pairs import ByOffset, PairBias, Score
from pebench.models.attention import KernelChoice, Masks, attend, causal_mask, fastest_kernel

BLOCK = 256
"""Queries of a block: few enough for its logits to stay in a processor's cache, enough for a product to be fast."""


def attend_with(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | PairBias | None, masks: Masks, scale: float, choose: KernelChoice
) -> Tensor:
    """Compute softmax attention with a bias of any kind.

    Args:
        q: (B, H, L, K).
        k: (B, H, L, K).
        v: (B, H, L, V).
        bias: Added to the scaled logits; None without one.
        masks: Masks of padding and of the future.
        scale: Factor of q·k.
        choose: Chooses the kernel; ``"flex"``, PyTorch's FlexAttention, is for biases with `PairBias.score` alone.

    Returns:
        (B, H, L, V).

    Raises:
        ValueError: For ``"flex"`` with another bias of pairs.
    """
    if isinstance(bias, PairBias):
        kernel = choose(q, bias)
        if kernel == "flex":
            return _flexible(q, k, v, bias, masks, scale)
        if kernel == "blocks":
            return torch.cat(list(_blocks(q, k, v, bias, masks, scale)), dim=-2)
        mask = masks.fold(bias.whole())
    else:
        mask = masks.fold(bias)
        kernel = choose(q, mask)
    # A mask hides the future already.
    return attend(q, k, v, mask, masks.causal and mask is None, scale, kernel)


def _blocks(q: Tensor, k: Tensor, v: Tensor, bias: PairBias, masks: Masks, scale: float) -> Iterator[Tensor]:
    """Yield what blocks of queries make of the values, one after the other."""
    length = q.shape[-2]
    view = _as_view(q, bias, masks)
    for first in range(0, length, BLOCK):
        last = min(first + BLOCK, length)
        keys = last if masks.causal else length  # later keys are hidden from all of them
        part = q[:, :, first:last], k[:, :, :keys], v[:, :, :keys]
        if view is not None:
            # The last query first, as the view has it.
            mixed = attend(part[0].flip(-2), *part[1:], view.backwards(slice(first, last), keys), False, scale, "sdpa")
            yield mixed.flip(-2)
        else:
            # Made again for the backward pass: kept logits of all blocks would be those of all pairs.
            yield checkpoint(_block, *part, bias, masks, first, scale, use_reentrant=False, preserve_rng_state=False)


def _as_view(q: Tensor, bias: PairBias, masks: Masks) -> ByOffset | None:
    """Return a bias, with the future hidden, whose blocks a fused kernel reads from its table; None where it cannot."""
    if not isinstance(bias, ByOffset) or not bias.pairs.counted or bias.requires_grad or masks.padding is not None:
        return None
    if q.device.type != "cpu" or fastest_kernel(q, None) != "sdpa":
        return None
    table = bias.table
    if masks.causal:
        later = torch.arange(table.shape[1], device=table.device) > bias.pairs.base
        table = table.masked_fill(later, float("-inf"))
    return ByOffset(table.to(q.dtype), bias.pairs)


def _block(q: Tensor, k: Tensor, v: Tensor, bias: PairBias, masks: Masks, first: int, scale: float) -> Tensor:
    """Return what queries from `first` on make of the values of the first keys."""
    queries, keys = slice(first, first + q.shape[-2]), k.shape[-2]
    mask = bias.block(queries, keys)
    if masks.padding is not None:
        mask = mask + masks.padding[..., :keys]
    if masks.causal:
        seen = causal_mask(keys - first, q.device)
        mask = mask + torch.nn.functional.pad(seen, (first, 0))  # the last keys are the queries themselves
    return attend(q, k, v, mask, False, scale, "matmul")


def _flexible(q: Tensor, k: Tensor, v: Tensor, bias: PairBias, masks: Masks, scale: float) -> Tensor:
    score = bias.score()
    if score is None:
        raise ValueError("kernel 'flex' needs a bias by offset; take 'blocks'")
    if masks.padding is not None:
        score = _padded(score, masks.padding[:, 0, 0])  # (B, L)
    seen = _future(q.shape[-2], q.device) if masks.causal else None
    return _flex_attention(q.device.type == "cuda")(q, k, v, score_mod=score, block_mask=seen, scale=scale)


def _padded(score: Score, padding: Tensor) -> Score:
    return lambda logit, batch, *pair: score(logit, batch, *pair) + padding[batch, pair[-1]]


@functools.cache
def _flex_attention(compiled: bool) -> Callable[..., Tensor]:
    """Return FlexAttention, compiled once for each kind of bias and shape; else a reference that keeps all logits."""
    from torch.nn.attention.flex_attention import flex_attention  # imported late: few runs need it

    plain: Any = flex_attention
    return torch.compile(plain, dynamic=False) if compiled else plain  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=4)
def _future(length: int, device: torch.device) -> Any:
    """Return which blocks of keys queries see in a causal model."""
    from torch.nn.attention.flex_attention import create_block_mask

    return create_block_mask(lambda b, h, query, key: query >= key, None, None, length, length, device=str(device))
