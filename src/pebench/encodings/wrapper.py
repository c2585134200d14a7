"""What encodings share that change another one: where it acts, or where it takes the tokens to be."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding, build_encoding
from pebench.seeding import stream


class Wrapper(PositionalEncoding):
    """Hands every hook on to another encoding; override those that are to differ.

    Args:
        spec: The model.
        of: The other encoding: a name, alone or with options.
        inner_spec: The model as the other encoding is to see it.
    """

    wraps = True

    def __init__(self, spec: EncodingSpec, of: str, inner_spec: EncodingSpec | None = None) -> None:
        super().__init__(spec)
        self.inner = build_encoding(of, inner_spec or spec)
        for name in ("relative", "isotropic", "mirror_blind", "contextual", "blind", "beyond"):
            setattr(self, name, getattr(self.inner, name))
        self.idle = tuple(f"inner.{name}" for name in self.inner.idle)

    @property
    def content_width(self) -> int:
        """That of the other encoding."""
        return self.inner.content_width

    @property
    def model_width(self) -> int:
        """That of the other encoding."""
        return self.inner.model_width

    def parameter_count(self) -> int:
        """What the other encoding declares."""
        return self.inner.parameter_count()

    def place(self, positions: Tensor) -> Tensor:
        """As the other encoding does."""
        return self.inner.place(positions)

    def prepare(self, positions: Tensor) -> Any:
        """As the other encoding does."""
        return self.inner.prepare(positions)

    def forward(self, state: Any) -> Any:
        """As the other encoding does."""
        return self.inner(state)

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """As the other encoding does."""
        return self.inner.embed(x, state)

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """As the other encoding does."""
        return self.inner.residual(x, valid, state, layer)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """As the other encoding does."""
        return self.inner.query_key(q, k, x, state, layer)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | None:
        """As the other encoding does."""
        return self.inner.bias(q, k, x, state, layer)

    def refuse_input(self) -> None:
        """Refuse an encoding that acts anywhere but in attention, or one made of such.

        Raises:
            ValueError: If it does.
        """
        acting = [p for p in self.inner.modules() if isinstance(p, Wrapper) and type(p).embed is not Wrapper.embed]
        for part in (*acting, *(leaf for leaf in leaves(self.inner) if overrides(leaf, "embed", "residual"))):
            raise ValueError(
                f"encoding {self.name!r} takes one that acts in attention alone, such as rope or alibi, "
                f"got {part.name!r}"
            )

    def refuse_neighbours(self) -> None:
        """Refuse an encoding that mixes neighbouring tokens, or one made of such.

        Raises:
            ValueError: If it does.
        """
        for part in that_seek_neighbours(self.inner):
            raise ValueError(f"encoding {self.name!r} needs one that does not look for neighbours, got {part.name!r}")


def leaves(encoding: PositionalEncoding) -> Iterator[PositionalEncoding]:
    """The encodings that an encoding is made of: itself, if it wraps no others."""
    inner = [part for part in encoding.children() if isinstance(part, PositionalEncoding)]
    for part in inner:
        yield from leaves(part)
    if not inner:
        yield encoding


def that_seek_neighbours(encoding: PositionalEncoding) -> Iterator[PositionalEncoding]:
    """Those of its `leaves` that mix neighbouring tokens: they find them by differences of positions alone."""
    return (part for part in leaves(encoding) if part.relative and overrides(part, "residual"))


def overrides(encoding: PositionalEncoding, *hooks: str) -> bool:
    """Whether an encoding has any of these hooks of its own."""
    return any(getattr(type(encoding), hook) is not getattr(PositionalEncoding, hook) for hook in hooks)


class RandomWrapper(Wrapper):
    """Moves tokens at random in training, by draws that no dropout and no data order notices.

    They depend on PyTorch's seed and on how many there have been, which a checkpoint keeps.
    """

    draws = 0

    def generator(self) -> torch.Generator:
        """A generator for the next draw."""
        self.draws += 1
        return torch.Generator().manual_seed(stream(torch.initial_seed(), self.name, self.draws))

    def get_extra_state(self) -> int:
        """What a checkpoint keeps beside parameters."""
        return self.draws

    def set_extra_state(self, state: int) -> None:
        """Go on from a checkpoint."""
        self.draws = state
