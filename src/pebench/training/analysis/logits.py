"""Attention logits taken apart: queries and keys as sums of a part of content and a part of position."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pebench.training.analysis.capture import AFFINE, Capture, Layer

PRODUCTS = ("content-content", "content-position", "position-content", "position-position")
"""Products of a query's part, named first, and a key's part."""

EXAMPLES, CHUNK = 32, 8
"""Largest number of examples whose logits are looked at, and of those that are in memory at once."""

Heads = tuple[Tensor, Tensor]
"""Queries and keys, (B, H, L, K) each."""


@dataclass(frozen=True)
class Logits:
    """The logits of some examples in one layer, and the terms that they are the sum of.

    Args:
        total: (B, H, L, L), all of it, without masks.
        terms: The four products by the names in `PRODUCTS`, ``bias`` for the encoding's term, and ``rest``.
        allowed: (B, 1, L, L), True where a query may look at a key.
    """

    total: Tensor
    terms: dict[str, Tensor]
    allowed: Tensor


@dataclass(frozen=True)
class Parts:
    """The residual stream in front of a block as a sum: position (L, D), and constant (D); content is what is left."""

    position: Tensor
    constant: Tensor


def parts_of(capture: Capture, layer: Layer) -> Parts:
    """Return what all examples have in common at a position, in front of a block.

    In front of the first block it is what the encoding adds there, exactly, if it adds. Elsewhere it is the mean over
    the examples of the first half, so that on the second half what is left is no artefact of the fit.
    """
    if layer.index == 0 and capture.additive:
        zero = torch.zeros_like(layer.x[0])
        return Parts(zero if capture.position is None else capture.position, zero[0])
    x, valid = layer.x[capture.fit], capture.valid[capture.fit].unsqueeze(-1)
    constant = (x * valid).sum((0, 1)) / valid.sum()
    counts = valid.sum(0)
    means = (x * valid).sum(0) / counts.clamp(min=1)  # (L, D)
    return Parts(torch.where(counts > 0, means - constant, torch.zeros_like(means)), constant)


def layer_logits(capture: Capture, layer: Layer) -> Iterator[Logits]:
    """Yield the logits of held-out examples in a layer, some examples at a time.

    Raises:
        ValueError: If the encoding's `query_key` is not affine in queries and keys.
    """
    parts = parts_of(capture, layer)
    held_out = torch.arange(len(layer.x), device=layer.x.device)[capture.held_out][:EXAMPLES]
    for chosen in held_out.split(CHUNK):
        with torch.no_grad():
            x = layer.x[chosen]
            whole, moved = moved_parts(capture, layer, parts, x)
            normed = layer.block.attention_norm(x)
            products = {name: product(moved, name, layer) for name in PRODUCTS}
            total = _scale(layer) * whole[0] @ whole[1].transpose(-2, -1)  # (B, H, L, L)
            rest = total - sum(products.values())
            bias = capture.encoding.bias(*whole, normed, layer.state, layer.index)
            bias = torch.zeros_like(total) if bias is None else bias.expand_as(total).to(total.dtype)
            yield Logits(total + bias, products | {"bias": bias, "rest": rest}, allowed(capture, chosen))


def moved_parts(capture: Capture, layer: Layer, parts: Parts, x: Tensor) -> tuple[Heads, Mapping[str, Heads]]:
    """Return queries and keys behind the encoding's hook: all of them, and the parts of content and of position.

    The block's norm divides by one number for each token, so that it is linear once that number is known, as are the
    projections. What the hook makes of queries and keys must be affine; its constant part counts as position.

    Args:
        capture: Capture of the model.
        layer: The layer, with state.
        parts: Position and constant in front of its block.
        x: (B, L, D), the residual stream in front of its block.

    Raises:
        ValueError: If the encoding's `query_key` is not affine in queries and keys.
    """
    normed = layer.block.attention_norm(x)
    position = parts.position.expand_as(x)

    def moved(heads: Heads) -> Heads:
        # Clones: a hook may write into its arguments.
        q, k = heads[0].clone(), heads[1].clone()
        return capture.encoding.query_key(q, k, normed, layer.state, layer.index)

    whole = _heads(layer, layer.block.attention.qkv(normed))
    of_content, of_position = _project(layer, x - position - parts.constant, x), _project(layer, position, x)
    base = moved((torch.zeros_like(whole[0]), torch.zeros_like(whole[1])))
    content, placed = _minus(moved(of_content), base), moved(of_position)
    both = moved(_plus(of_content, of_position))
    for found, expected in zip(both, _plus(content, placed), strict=True):
        if not torch.allclose(found, expected, rtol=0, atol=AFFINE * float(expected.abs().max())):
            name = capture.encoding.name
            raise ValueError(f"query_key of encoding {name!r} is not affine, so that its logits have no parts")
    return moved(whole), {"content": content, "position": placed}


def product(moved: Mapping[str, Heads], name: str, layer: Layer) -> Tensor:
    """Return one of the four products (B, H, L, L), as it stands in the logits."""
    query, key = name.split("-")
    return _scale(layer) * moved[query][0] @ moved[key][1].transpose(-2, -1)


def allowed(capture: Capture, chosen: Tensor) -> Tensor:
    """Return (B, 1, L, L): True where a query may look at a key, and neither is padding."""
    valid = capture.valid[chosen]
    pairs = valid[:, None, :, None] & valid[:, None, None, :]
    return pairs.tril() if capture.encoding.spec.causal else pairs


def _scale(layer: Layer) -> float:
    attention = layer.block.attention
    return float((attention.out.in_features // attention.num_heads) ** -0.5)  # of the plain width, as in the model


def _project(layer: Layer, part: Tensor, x: Tensor) -> Heads:
    """Return the queries and keys of a part (B, L, D) of the residual stream x, without biases."""
    norm, qkv = layer.block.attention_norm, layer.block.attention.qkv
    deviation = (x.var(-1, keepdim=True, correction=0) + norm.eps).sqrt()
    normed = (part - part.mean(-1, keepdim=True)) / deviation * norm.weight
    return _heads(layer, normed @ qkv.weight.T)


def _heads(layer: Layer, qkv: Tensor) -> Heads:
    """Return queries and keys (B, H, L, K) from (B, L, 3D)."""
    heads = qkv.unflatten(-1, (3, layer.block.attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
    return heads[0], heads[1]


def _plus(first: Heads, second: Heads) -> Heads:
    return first[0] + second[0], first[1] + second[1]


def _minus(first: Heads, second: Heads) -> Heads:
    return first[0] - second[0], first[1] - second[1]
