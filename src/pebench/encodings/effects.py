"""Effects of an encoding on a model, measured through its hooks, whatever it is: data for pictures of it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pebench.encodings.base import PositionalEncoding, grid_positions, name_of
from pebench.encodings.pairs import whole
from pebench.errors import UserError
from pebench.layers import initialise

BATCH = 64
"""Sequences that an effect is averaged over where it takes random content to see it."""

RANDOM = "random content"

TOLERANCE = 1e-5
"""Largest difference between numbers that count as equal."""

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Effect:
    """Effect of an encoding on one part of a model, as a function of position.

    Args:
        target: Part of the model: ``"input"``, ``"residual stream"`` or ``"attention logits"``.
        probe: Content that the encoding was given: ``"no content"`` (zeros), ``"equal content"`` (the same in every
            token; its own logit is 1) or ``"random content"``, of which logits are the change that the encoding makes.
        layer: First layer with an effect, from 0; None for the input.
        values: Vectors (L, D), or logits, query by key (L, L), averaged over heads.
        similarity: Similarity of positions (L, L): cosines of the vectors, or the logits; NaN where a query cannot
            attend.
        extent: Positions per axis, whose product is L.
        redrawn: True if parameters were drawn from N(0, 0.1²), as the encoding has no effect when initialised.
    """

    target: str
    probe: str
    layer: int | None
    values: Array
    similarity: Array
    extent: tuple[int, ...]
    redrawn: bool = False

    @property
    def absolute(self) -> bool:
        """True if the values are vectors of positions, False if they are logits of pairs."""
        return self.target != "attention logits"

    def by_distance(self) -> tuple[Array, Array]:
        """Return the similarity of text positions by the key's position minus the query's.

        Returns:
            Distances (U,); and the lowest, mean and highest similarity at each of them (3, U).
        """
        length = len(self.similarity)
        distances, bands = [], []
        for distance in range(1 - length, length):
            line = np.diagonal(self.similarity, distance)
            # in a causal model, diagonals of the future are NaN throughout
            if not np.isnan(line).any():
                distances.append(distance)
                bands.append((line.min(), line.mean(), line.max()))
        return np.array(distances, dtype=np.float32), np.array(bands, dtype=np.float32).T

    def around_centre(self) -> Array:
        """Return the similarity of a grid's middle patch to every patch, of shape `extent`."""
        middle = np.ravel_multi_index([n // 2 for n in self.extent], self.extent)
        return self.similarity[middle].reshape(self.extent)


def effects(encoding: PositionalEncoding, seed: int | None = None) -> list[Effect]:
    """Measure all effects of an encoding at the positions that it was built for.

    Args:
        encoding: An encoding built for a model. It is left in evaluation mode.
        seed: Seed to draw its parameters anew; None takes them as they are.

    Raises:
        UserError: If it has no effect that depends on position.
    """
    # else random positions would differ from draw to draw
    encoding.eval()
    if seed is not None:
        initialise(encoding, seed)
    with torch.no_grad():
        found = _measure(encoding, redrawn=False)
        if not found and seed is not None:  # some start at zero
            _redraw(encoding, seed)
            found = _measure(encoding, redrawn=True)
    if not found:
        raise UserError(
            f"encoding {name_of(encoding)!r} has no effect that depends on position: there is nothing to draw."
        )
    return found


def _redraw(encoding: PositionalEncoding, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for parameter in encoding.parameters():
        parameter.copy_(0.1 * torch.randn(parameter.shape, generator=random, dtype=torch.float32))


def _measure(encoding: PositionalEncoding, redrawn: bool) -> list[Effect]:
    """Return the effects on the input, on the residual stream and on the logits, as far as there are any."""
    spec = encoding.spec
    state = encoding.state(grid_positions(spec.extent))
    found = []
    if measured := _vectors(encoding, encoding.content_width, lambda x: encoding.embed(x, state)):
        found.append(Effect("input", measured[0], None, *measured[1:], spec.extent, redrawn))
    for layer in range(spec.num_layers):
        hook = functools.partial(encoding.residual, valid=None, state=state, layer=layer)
        if measured := _vectors(encoding, encoding.model_width, hook):
            found.append(Effect("residual stream", measured[0], layer, *measured[1:], spec.extent, redrawn))
            break
    for layer in range(spec.num_layers):
        if logits := _logits(encoding, state, layer):
            found.append(Effect("attention logits", logits[0], layer, logits[1], logits[1], spec.extent, redrawn))
            break
    return found


def _probes(encoding: PositionalEncoding, width: int) -> dict[str, Tensor]:
    """Return contents to give an encoding, the plainest first."""
    length = encoding.spec.max_len
    if encoding.contextual:  # counting or weighing equal tokens would show nothing
        return {
            RANDOM: torch.randn(BATCH, length, width, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
        }
    return {
        "no content": torch.zeros(1, length, width, dtype=torch.float32),
        "equal content": torch.ones(1, length, width, dtype=torch.float32),
    }


def _vectors(
    encoding: PositionalEncoding, width: int, hook: Callable[[Tensor], Tensor]
) -> tuple[str, Array, Array] | None:
    """Return the probe with which a hook makes tokens differ, the tokens' vectors and their cosines."""
    for probe, x in _probes(encoding, width).items():
        vectors = hook(x)[0]
        # random content differs between tokens by itself, and says nothing of position
        if probe != RANDOM and _varies(vectors - vectors[:1]):
            unit = torch.nn.functional.normalize(vectors, dim=-1)
            return probe, _array(vectors), _array(unit @ unit.mT)
    return None


def _logits(encoding: PositionalEncoding, state: Any, layer: int) -> tuple[str, Array] | None:
    """Return the probe with which a layer's logits depend on position, and the logits."""
    spec, width = encoding.spec, encoding.model_width // encoding.spec.num_heads
    future = torch.ones(spec.max_len, spec.max_len, dtype=torch.bool).triu(1) & spec.causal
    for probe, x in _probes(encoding, encoding.model_width).items():
        q = x.unflatten(-1, (spec.num_heads, width)).transpose(1, 2)  # (B, L, D) to (B, H, L, K)
        q = q * width**-0.25  # equal content has the logit 1
        k = q.flip(0)  # of another sequence, so that a token of random content is not its own best match
        queries, keys = encoding.query_key(q, k, x, state, layer)
        bias = whole(encoding.bias(queries, keys, x, state, layer))
        logits = queries @ keys.mT * width**-0.5
        if bias is not None:
            logits = logits + bias
        if probe == RANDOM:
            logits = logits - q @ k.mT * width**-0.5  # without content's own part
        mean = logits.mean(dim=(0, 1))
        if _varies(mean[~future]):
            return probe, _array(mean.masked_fill(future, float("nan")))
    return None


def _varies(values: Tensor) -> bool:
    return bool(values.amax() - values.amin() > TOLERANCE)


def _array(values: Tensor) -> Array:
    return values.float().numpy()
