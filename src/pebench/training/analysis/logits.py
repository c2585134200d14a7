"""Attention logits taken apart: queries and keys as sums of parts of content, of position and of constants."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pebench.encodings.pairs import whole
from pebench.models.attention import split_heads
from pebench.results.inside import PRODUCTS
from pebench.training.analysis.capture import AFFINE, Capture, Layer

EXAMPLES, CHUNK = 32, 8
"""Largest number of examples whose logits are looked at, and of those that are in memory at once."""

Heads = tuple[Tensor, Tensor]
"""Queries and keys, (B, H, L, K) each."""


@dataclass(frozen=True)
class Logits:
    """The logits of some examples in one layer, and the terms that they are the sum of.

    Args:
        total: (B, H, L, L), all of it, without masks.
        terms: The products by the names in `PRODUCTS`, ``bias`` for the encoding's term, and ``rest``.
        allowed: (B, 1, L, L), True where a query may look at a key.
    """

    total: Tensor
    terms: dict[str, Tensor]
    allowed: Tensor


def layer_logits(capture: Capture, layer: Layer) -> Iterator[Logits]:
    """Yield the logits of held-out examples in a layer, some examples at a time.

    Raises:
        ValueError: If the encoding's `query_key` is not affine in queries and keys.
    """
    held_out = torch.arange(len(layer.x), device=layer.x.device)[capture.held_out][:EXAMPLES]
    for chosen in held_out.split(CHUNK):
        with torch.no_grad():
            some = _of_examples(capture, layer, chosen)
            normed = some.block.attention_norm(some.x)
            moved = moved_parts(capture, some, some.x)
            q, k = moved["whole"]
            products = {name: product(moved, name, layer) for name in PRODUCTS}
            total = _scale(layer) * q @ k.transpose(-2, -1)  # (B, H, L, L)
            rest = total - sum(products.values())
            bias = whole(capture.encoding.bias(q, k, normed, some.state, some.index))
            bias = torch.zeros_like(total) if bias is None else bias.expand_as(total).to(total.dtype)
            yield Logits(total + bias, products | {"bias": bias, "rest": rest}, allowed(capture, chosen))


def _of_examples(capture: Capture, layer: Layer, chosen: Tensor) -> Layer:
    """Return the layer with some of the batch's examples alone."""
    state = layer.state
    if not capture.valid.all():  # with padding an encoding may keep something for each example
        state = capture.encoding.padded(capture.encoding.state(capture.positions), capture.valid[chosen])
    return replace(layer, x=layer.x[chosen], state=state)


def moved_parts(capture: Capture, layer: Layer, x: Tensor) -> Mapping[str, Heads]:
    """Return queries and keys after the encoding's hook, ``whole``, and their ``content``, ``position``, ``constant``.

    The block's norm divides by one number for each token, so that it is linear once that number is known, as are the
    projections. What the hook makes of queries and keys must be affine; its constant part counts as position. The
    constant is what is left: the mean vector of all tokens, and the biases of norm and projections.

    Args:
        capture: Capture of the model.
        layer: The layer, with the state of the pass.
        x: (B, L, D), the residual stream before its block.

    Raises:
        ValueError: If the encoding's `query_key` is not affine in queries and keys.
    """
    parts, normed = capture.parts[layer.index], layer.block.attention_norm(x)
    moved = _hook(capture, layer, normed)
    position = parts.position.expand_as(x)
    of_content, of_position = _project(layer, x - position - parts.constant, x), _project(layer, position, x)
    base = moved((torch.zeros_like(of_content[0]), torch.zeros_like(of_content[1])))
    content, placed = _minus(moved(of_content), base), moved(of_position)
    both = moved(_plus(of_content, of_position))
    for found, expected in zip(both, _plus(content, placed), strict=True):
        if not torch.allclose(found, expected, rtol=0, atol=AFFINE * float(expected.abs().max())):
            name = capture.encoding.name
            raise ValueError(f"query_key of encoding {name!r} is not affine, so that its logits have no parts")
    whole = moved(_heads(layer, layer.block.attention.qkv(normed)))
    constant = _minus(_minus(whole, content), placed)
    return {"whole": whole, "content": content, "position": placed, "constant": constant}


def _hook(capture: Capture, layer: Layer, normed: Tensor) -> Callable[[Heads], Heads]:
    """Return the encoding's hook on queries and keys, given the block's input (B, L, D) after its norm."""

    def moved(heads: Heads) -> Heads:
        # Clones: a hook may write into its arguments.
        q, k = heads[0].clone(), heads[1].clone()
        return capture.encoding.query_key(q, k, normed, layer.state, layer.index)

    return moved


def product(moved: Mapping[str, Heads], name: str, layer: Layer) -> Tensor:
    """Return one of the products (B, H, L, L), as it stands in the logits."""
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
    q, k, _ = split_heads(qkv, layer.block.attention.num_heads)
    return q, k


def _plus(first: Heads, second: Heads) -> Heads:
    return first[0] + second[0], first[1] + second[1]


def _minus(first: Heads, second: Heads) -> Heads:
    return first[0] - second[0], first[1] - second[1]
