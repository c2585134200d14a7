"""Stack: two encodings at once."""

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding, build_encoding, grid_positions, query_width
from pebench.encodings.wrapper import RandomWrapper, leaves, overrides
from pebench.registry import register


@register("stack")
class StackedEncoding(PositionalEncoding):
    """Two encodings, one after the other in every hook, as a vision transformer's learned table and rotations.

    Args:
        spec: The model.
        first: A name, alone or with options: ``"add"``, ``"add(ratio=0.5)"``.
        second: Likewise.

    Shape:
        As both have them; biases are summed.

    Raises:
        ValueError: If the second changes the width of the content, if one reads queries and keys that the other
            widens, or moves tokens at random to where the other has no positions.

    Source:
        Heo et al. 2024, section 4, https://arxiv.org/abs/2403.13298: "RoPE + APE".

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = StackedEncoding(spec, first="add", second="add(ratio=2.0)")
        >>> encoding.embed(torch.zeros(1, 1, 2), encoding.prepare(torch.tensor([[0.0]])))  # (1 + 2) sqrt(2) cos 0
        tensor([[[0.0000, 4.2426]]])
    """

    cite = ("heo2024rotary",)
    wraps = True

    def __init__(self, spec: EncodingSpec, *, first: str = "add", second: str = "rope") -> None:
        super().__init__(spec)
        self.first = build_encoding(first, spec)
        self.second = build_encoding(second, replace(spec, d_model=self.first.model_width))
        if self.second.content_width != self.first.model_width:
            raise ValueError(f"encoding 'stack' cannot have {second!r} second: it takes channels from the first")
        both = self.first, self.second
        self._refuse_width(first, second)
        for one, other in (both, both[::-1]):
            moves = any(isinstance(part, RandomWrapper) for part in one.modules())
            if moves and other.beyond == "refuses" and not isinstance(other, RandomWrapper):
                raise ValueError(
                    f"encoding 'stack' cannot have {first!r} with {second!r}: "
                    "one moves tokens to where the other has no positions"
                )
        for name in ("relative", "isotropic", "mirror_blind", "blind"):
            setattr(self, name, all(getattr(part, name) for part in both))
        self.relative = self.relative and self._ignores_a_shift()
        self.contextual = all(part.contextual or part.blind for part in both) and not self.blind
        self.idle = tuple(f"{part}.{name}" for part in ("first", "second") for name in getattr(self, part).idle)
        self.beyond = next((part.beyond for part in both if part.beyond != "goes on"), "goes on")

    def _refuse_width(self, first: str, second: str) -> None:
        """Refuse one that reads queries and keys of the usual width where the other one widens them."""
        heads, width = self.spec.num_heads, self.first.model_width // self.spec.num_heads
        layers = range(self.spec.num_layers)  # which differ in this where one of the two acts in some alone
        widths = [(query_width(self.first, layer), query_width(self.second, layer)) for layer in layers]
        if {*widths} <= {(width, width)}:
            return
        clash = any(one != width for one, _ in widths) and any(overrides(x, "query_key") for x in leaves(self.second))
        x, cell = torch.zeros(1, 1, self.model_width), grid_positions(self.spec.extent)[:1]
        try:
            with torch.no_grad():
                state = self(self.prepare(self.place(cell)))
                for layer, (one, other) in enumerate(widths):
                    wide = torch.zeros(1, heads, 1, one + other - width)
                    self.bias(wide, wide, x, state, layer)
        except RuntimeError:
            clash = True
        if clash:
            raise ValueError(
                f"encoding 'stack' cannot have {first!r} with {second!r}: "
                "one widens queries and keys that the other reads"
            )

    def _ignores_a_shift(self) -> bool:
        """Whether logits do: not those of a bias that reads queries after the other one has turned them."""
        tried, draw = copy.deepcopy(self), torch.Generator().manual_seed(0)
        cells, width = grid_positions(self.spec.extent)[:2], self.first.model_width // self.spec.num_heads
        logits = []
        with torch.no_grad():
            for parameter in tried.parameters():  # of which some start at zero
                parameter.normal_(generator=draw)
            content = torch.randn(2, 1, self.spec.num_heads, len(cells), width, generator=draw)
            x = torch.randn(1, len(cells), self.model_width, generator=draw)
            for positions in (cells, cells + 1):
                state = tried(tried.prepare(tried.place(positions)))
                for layer in range(self.spec.num_layers):
                    q, k = tried.query_key(content[0], content[1], x, state, layer)
                    bias = tried.bias(q, k, x, state, layer)
                    logits.append(q @ k.transpose(2, 3) + (0 if bias is None else bias))
        half = len(logits) // 2
        return all(torch.allclose(*pair, atol=1e-3) for pair in zip(logits[:half], logits[half:], strict=True))

    @property
    def content_width(self) -> int:
        """What the first one leaves."""
        return self.first.content_width

    @property
    def model_width(self) -> int:
        """What the second one makes of the first one's."""
        return self.second.model_width

    def parameter_count(self) -> int:
        """What both declare."""
        return self.first.parameter_count() + self.second.parameter_count()

    def place(self, positions: Tensor) -> Tensor:
        """Where the second one takes it that the first one has them."""
        return self.second.place(self.first.place(positions))

    def prepare(self, positions: Tensor) -> tuple[Any, Any]:
        """What either needs."""
        return self.first.prepare(positions), self.second.prepare(positions)

    def forward(self, state: tuple[Any, Any]) -> tuple[Any, Any]:
        """What either needs."""
        return self.first(state[0]), self.second(state[1])

    def embed(self, x: Tensor, state: tuple[Any, Any]) -> Tensor:
        """One, then the other."""
        return self.second.embed(self.first.embed(x, state[0]), state[1])

    def residual(self, x: Tensor, valid: Tensor | None, state: tuple[Any, Any], layer: int) -> Tensor:
        """One, then the other."""
        return self.second.residual(self.first.residual(x, valid, state[0], layer), valid, state[1], layer)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Any, Any], layer: int) -> tuple[Tensor, Tensor]:
        """One, then the other."""
        return self.second.query_key(*self.first.query_key(q, k, x, state[0], layer), x, state[1], layer)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Any, Any], layer: int) -> Tensor | None:
        """The sum."""
        one, other = self.first.bias(q, k, x, state[0], layer), self.second.bias(q, k, x, state[1], layer)
        return other if one is None else one if other is None else one + other
