"""What an encoding does to a model, measured through its hooks, whatever it is: for pictures of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pebench.encodings.base import PositionalEncoding, grid_positions, name_of
from pebench.errors import UserError
from pebench.layers import initialise

BATCH = 64
"""Sequences that an effect is averaged over where it takes random content to see it."""

RANDOM = "random content"

LEAST = 1e-5
"""Numbers that differ by less do not differ."""

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Effect:
    """What an encoding tells one part of a model about where its tokens are.

    Args:
        on: ``"input"``, ``"residual stream"`` or ``"attention logits"``.
        content: What it was given to tell it to: ``"no content"`` (zeros), ``"equal content"`` (the same in every
            token; its own logit is 1) or ``"random content"``, of which logits are
            what the encoding changes of them.
        layer: The first that is told, from 0; None for the input.
        values: Vectors (L, D), or logits, query by key (L, L), the mean over heads.
        similarity: Of positions (L, L): cosines of the vectors, or the logits; not a number where a query cannot look.
        extent: Positions per axis, whose product is L.
        redrawn: Whether parameters had to be drawn from N(0, 0.1²), since as initialised it tells nothing.
    """

    on: str
    content: str
    layer: int | None
    values: Array
    similarity: Array
    extent: tuple[int, ...]
    redrawn: bool = False

    @property
    def absolute(self) -> bool:
        """Whether it is made of vectors."""
        return self.on != "attention logits"

    def by_distance(self) -> tuple[Array, Array]:
        """The similarity of text positions by the key's position minus the query's.

        Returns:
            Distances (U,); and the lowest, mean and highest similarity at each of them (3, U).
        """
        length = len(self.similarity)
        found = [(d, np.diagonal(self.similarity, d)) for d in range(1 - length, length)]
        seen = [(d, line) for d, line in found if not np.isnan(line).any()]
        distances = np.array([d for d, _ in seen], dtype=np.float32)
        bands = np.array([(line.min(), line.mean(), line.max()) for _, line in seen], dtype=np.float32)
        return distances, bands.T

    def around_centre(self) -> Array:
        """The similarity of the patch in the middle to every patch of a grid: of shape `extent`."""
        middle = np.ravel_multi_index([n // 2 for n in self.extent], self.extent)
        return self.similarity[middle].reshape(self.extent)


def effects(encoding: PositionalEncoding, seed: int | None = None) -> list[Effect]:
    """Everything that an encoding tells, at the positions that it was built for; of several parts those that tell any.

    Args:
        encoding: Built for a model. It is left in evaluation.
        seed: Draw its parameters anew from this seed; None takes them as they are.

    Raises:
        UserError: If it tells nothing.
    """
    encoding.eval()
    if seed is not None:
        initialise(encoding, seed)
    with torch.no_grad():
        found = list(_effects(encoding, False))
        if not found and seed is not None:
            _redraw(encoding, seed)
            found = list(_effects(encoding, True))
    if not found:
        raise UserError(f"encoding {name_of(encoding)!r} tells nothing of position: there is nothing to draw.")
    return found


def _redraw(encoding: PositionalEncoding, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for parameter in encoding.parameters():
        parameter.copy_(0.1 * torch.randn(parameter.shape, generator=random))


def _effects(encoding: PositionalEncoding, redrawn: bool) -> Iterator[Effect]:
    spec = encoding.spec
    state = encoding(encoding.prepare(encoding.place(grid_positions(spec.extent))))
    told = _told(encoding, encoding.content_width, lambda x: encoding.embed(x, state))
    if told:
        yield Effect("input", told[0], None, *told[1:], spec.extent, redrawn)
    for layer in range(spec.num_layers):
        told = _told(encoding, encoding.model_width, lambda x: encoding.residual(x, None, state, layer))  # noqa: B023
        if told:
            yield Effect("residual stream", told[0], layer, *told[1:], spec.extent, redrawn)
            break
    for layer in range(spec.num_layers):
        weighed = _logits(encoding, state, layer)
        if weighed:
            yield Effect("attention logits", weighed[0], layer, weighed[1], weighed[1], spec.extent, redrawn)
            break


def _contents(encoding: PositionalEncoding, width: int) -> dict[str, Tensor]:
    """What to give it, the plainest first; one that counts or weighs tokens shows nothing where all are alike."""
    length = encoding.spec.max_len
    if encoding.contextual:
        return {RANDOM: torch.randn(BATCH, length, width, generator=torch.Generator().manual_seed(0))}
    return {"no content": torch.zeros(1, length, width), "equal content": torch.ones(1, length, width)}


def _told(
    encoding: PositionalEncoding, width: int, hook: Callable[[Tensor], Tensor]
) -> tuple[str, Array, Array] | None:
    """The content, vectors and their cosines, where a hook makes the tokens differ."""
    for content, x in _contents(encoding, width).items():
        vectors = hook(x)[0]
        if content != RANDOM and _varies(vectors - vectors[:1]):
            unit = torch.nn.functional.normalize(vectors, dim=-1)
            return content, _array(vectors), _array(unit @ unit.mT)
    return None


def _logits(encoding: PositionalEncoding, state: Any, layer: int) -> tuple[str, Array] | None:
    """The content and the logits, where a layer's depend on position."""
    spec, width = encoding.spec, encoding.model_width // encoding.spec.num_heads
    future = torch.ones(spec.max_len, spec.max_len, dtype=torch.bool).triu(1) & spec.causal
    for content, x in _contents(encoding, encoding.model_width).items():
        q = x.unflatten(-1, (spec.num_heads, width)).transpose(1, 2) * width**-0.25  # equal content has the logit 1
        k = q.flip(0)  # of another sequence, so that a token of random content is not its own best match
        told_q, told_k = encoding.query_key(q, k, x, state, layer)
        bias = encoding.bias(told_q, told_k, x, state, layer)
        logits = told_q @ told_k.mT * width**-0.5
        if bias is not None:
            logits = logits + bias
        if content == RANDOM:
            logits = logits - q @ k.mT * width**-0.5  # what content alone says
        mean = logits.mean(dim=(0, 1))
        if _varies(mean[~future]):
            return content, _array(mean.masked_fill(future, float("nan")))
    return None


def _varies(values: Tensor) -> bool:
    return bool(values.amax() - values.amin() > LEAST)


def _array(values: Tensor) -> Array:
    return values.float().numpy()
