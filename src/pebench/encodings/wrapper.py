"""Bases of encodings that change another one: where it acts, or which positions it is given."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.build import build_encoding
from pebench.encodings.pairs import PairBias
from pebench.seeding import stream


class Wrapper(PositionalEncoding):
    """Passes every hook on to another encoding; subclasses override those that are to differ.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        inner_spec: Sizes that the other encoding is built for, by default those of the model.
    """

    wraps = True

    def __init__(self, spec: EncodingSpec, of: str, inner_spec: EncodingSpec | None = None) -> None:
        super().__init__(spec)
        self.inner = build_encoding(of, inner_spec or spec)
        # on the instance: the class cannot know what it will wrap
        for name in ("relative", "isotropic", "mirror_blind", "contextual", "blind", "beyond", "kv_cache"):
            setattr(self, name, getattr(self.inner, name))
        # as `named_parameters` calls them
        self.idle = tuple(f"inner.{name}" for name in self.inner.idle)

    @property
    def content_width(self) -> int:
        """Width of content in the other encoding."""
        return self.inner.content_width

    @property
    def model_width(self) -> int:
        """Width of the residual stream with the other encoding."""
        return self.inner.model_width

    def parameter_count(self) -> int:
        """Return the number of parameters that the other encoding declares."""
        return self.inner.parameter_count()

    def place(self, positions: Tensor) -> Tensor:
        """Return the positions that the other encoding uses."""
        return self.inner.place(positions)

    def prepare(self, positions: Tensor) -> Any:
        """Return what the other encoding prepares."""
        return self.inner.prepare(positions)

    def forward(self, state: Any) -> Any:
        """Return the other encoding's state."""
        return self.inner(state)

    def padded(self, state: Any, valid: Tensor) -> Any:
        """Return the other encoding's state for a batch with padding."""
        return self.inner.padded(state, valid)

    def inner_state(self, state: Any) -> Any:
        """Return the other encoding's state, given what `forward` or `padded` returned."""
        return state

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """Return the other encoding's input."""
        return self.inner.embed(x, self.inner_state(state))

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """Return the other encoding's residual stream."""
        return self.inner.residual(x, valid, self.inner_state(state), layer)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Return the other encoding's queries and keys."""
        return self.inner.query_key(q, k, x, self.inner_state(state), layer)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | PairBias | None:
        """Return the other encoding's bias."""
        return self.inner.bias(q, k, x, self.inner_state(state), layer)

    def value(self, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's values."""
        return self.inner.value(v, x, self.inner_state(state), layer)

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's output of heads."""
        return self.inner.output(o, v, x, self.inner_state(state), layer)

    def refuse_input(self) -> None:
        """Refuse another encoding that acts outside attention, or is made of one that does.

        Raises:
            ValueError: If it does.
        """
        # a wrapper's own change of the input is not among its leaves, such as that of embed-scale
        acting = [p for p in self.inner.modules() if isinstance(p, Wrapper) and type(p).embed is not Wrapper.embed]
        for part in (*acting, *(leaf for leaf in leaves(self.inner) if overrides(leaf, "embed", "residual"))):
            raise ValueError(
                f"encoding {self.name!r} takes one that acts in attention alone, such as rope or alibi, "
                f"got {part.name!r}"
            )

    def refuse_neighbours(self) -> None:
        """Refuse another encoding that mixes neighbouring tokens, or is made of one that does.

        Raises:
            ValueError: If it does.
        """
        for part in neighbour_mixers(self.inner):
            raise ValueError(f"encoding {self.name!r} needs one that does not look for neighbours, got {part.name!r}")


class Companion(Wrapper):
    """Passes every hook on, as `Wrapper` does, and keeps something of its own beside the other encoding's state.

    The state is a pair: the other encoding's, and what `own` returned, or `own_padded` where there is padding.
    """

    def own(self, positions: Tensor) -> Any:
        """Return what the encoding itself needs of the positions (L, P), as `prepare` does."""
        return None

    def own_padded(self, own: Any, valid: Tensor) -> Any:
        """Return what `own` returned, for a batch with padding; valid is (B, L), False at padding."""
        return own

    def prepare(self, positions: Tensor) -> Any:
        """Return what the other encoding prepares, and `own`."""
        return self.inner.prepare(positions), self.own(positions)

    def forward(self, state: Any) -> Any:
        """Return the other encoding's state, and `own`."""
        return self.inner(state[0]), state[1]

    def padded(self, state: Any, valid: Tensor) -> Any:
        """Return the other encoding's state for a batch with padding, and `own_padded`."""
        return self.inner.padded(state[0], valid), self.own_padded(state[1], valid)

    def inner_state(self, state: Any) -> Any:
        """Return the first of the pair."""
        return state[0]


def leaves(encoding: PositionalEncoding) -> Iterator[PositionalEncoding]:
    """Yield the encodings that an encoding is made of: itself, if it wraps no others."""
    inner = [part for part in encoding.children() if isinstance(part, PositionalEncoding)]
    for part in inner:
        yield from leaves(part)
    if not inner:
        yield encoding


def neighbour_mixers(encoding: PositionalEncoding) -> Iterator[PositionalEncoding]:
    """Yield the `leaves` of an encoding that mix neighbouring tokens, found by differences of positions."""
    for part in leaves(encoding):
        if part.relative and overrides(part, "residual"):
            yield part


def overrides(encoding: PositionalEncoding, *hooks: str) -> bool:
    """Return True if an encoding overrides any of these hooks."""
    return any(getattr(type(encoding), hook) is not getattr(PositionalEncoding, hook) for hook in hooks)


class RandomWrapper(Wrapper):
    """Moves tokens at random in training, by draws that change neither dropout nor the order of data.

    A draw depends on PyTorch's seed and on the number of draws before it, which a checkpoint keeps.
    """

    draws = 0

    def generator(self) -> torch.Generator:
        """Return a generator for the next draw."""
        self.draws += 1
        # of its own, on the CPU: dropout keeps its draws, and every device draws the same
        return torch.Generator().manual_seed(stream(torch.initial_seed(), self.name, self.draws))

    def get_extra_state(self) -> int:
        """Return the number of draws, for a checkpoint."""
        return self.draws

    def set_extra_state(self, state: int) -> None:
        """Restore the number of draws from a checkpoint."""
        self.draws = state
