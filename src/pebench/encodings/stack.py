"""Stack: two encodings in one model."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import KV_CACHE, EncodingSpec, PositionalEncoding, grid_positions, query_width
from pebench.encodings.build import build_encoding
from pebench.encodings.pairs import ByBlock, PairBias, whole
from pebench.encodings.randomized import RandomizedEncoding
from pebench.encodings.registry import register
from pebench.encodings.wrapper import RandomWrapper, leaves, neighbour_mixers, overrides

TRIED = 128
"""Positions on which two encodings are tried together: the logits of all pairs of a long text would fill the memory."""


@register("stack")
class StackedEncoding(PositionalEncoding):
    """Two encodings, one after the other in every hook, as a vision transformer's learned table and rotations.

    Args:
        spec: Sizes of the model.
        first: The first encoding: a name, alone or with options, as in ``"add(ratio=0.5)"``.
        second: The second encoding, likewise.

    Shape:
        As the two encodings'; biases are summed.

    Raises:
        ValueError: If the second takes channels from the first; if one widens queries and keys that the other reads, or
            moves tokens at random to where the other has no positions; if both move them; or if the logit of two tokens
            would depend on the length of the text, as with ``xpos``, which counts from the middle, and a bias that
            reads queries.

    Source:
        Heo et al. 2024, section 4, https://arxiv.org/abs/2403.13298: "RoPE + APE".

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = StackedEncoding(spec, first="add", second="add(ratio=2.0)")
        >>> encoding.embed(torch.zeros(1, 1, 2), encoding.prepare(torch.tensor([[0.0]])))  # (1 + 2) sqrt(2) cos 0
        tensor([[[0.0000, 4.2426]]])
    """

    cite = ("heo2024rotary",)
    mark = 39
    wraps = True
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, first: str = "add", second: str = "rope") -> None:
        super().__init__(spec)
        self.first = build_encoding(first, spec)
        # the first may widen the stream, and the second is applied to what the first made of it
        self.second = build_encoding(second, replace(spec, d_model=self.first.model_width))
        both = self.first, self.second
        if why := self._clash():
            raise ValueError(f"encoding 'stack' cannot have {first!r} with {second!r}: {why}")
        for name in ("relative", "isotropic", "mirror_blind", "blind"):
            setattr(self, name, all(getattr(part, name) for part in both))
        # measured, as two relative encodings need not be relative together
        cells = grid_positions(spec.extent)[:2]
        logits = self._logits(cells, cells + 1) if self.relative else ()  # a bias may read what the other has rotated
        self.relative = self.relative and all(torch.allclose(here, there, atol=1e-3) for here, there in logits)
        # a blind part asks for no positions either, but two of them make a blind encoding, no contextual one
        self.contextual = all(part.contextual or part.blind for part in both) and not self.blind
        self.idle = tuple(f"{part}.{name}" for part in ("first", "second") for name in getattr(self, part).idle)
        self.kv_cache = max((part.kv_cache for part in both), key=KV_CACHE.index)
        self.beyond = next((part.beyond for part in both if part.beyond != "goes on"), "goes on")

    def _clash(self) -> str:
        """Return the reason why the two cannot be combined; empty if they can."""
        if self.second.content_width != self.first.model_width:
            return "the second takes channels from the first"
        for mover, other in ((self.first, self.second), (self.second, self.first)):
            moves = [part for part in mover.modules() if isinstance(part, RandomWrapper)]
            if moves and any(isinstance(part, RandomWrapper) for part in other.modules()):
                return "both move tokens at random"
            # also where it moves them within a longer range: the other was built for the trained extent
            if moves and other.beyond == "refuses":
                return "one moves tokens to where the other has no positions"
            scatters = any(isinstance(part, RandomizedEncoding) for part in moves)
            if scatters and any(neighbour_mixers(other)):
                return "one moves tokens away from the neighbours that the other looks for"
        usual = self.first.model_width // self.spec.num_heads
        layers = range(self.spec.num_layers)
        wider = any(query_width(self.first, layer) != usual for layer in layers)
        if wider and any(overrides(part, "query_key") for part in leaves(self.second)):
            return "one widens queries and keys that the other reads"
        cells = grid_positions(self.spec.extent)[:TRIED]
        half = max(1, len(cells) // 2)
        try:
            # a prefix must have the logits that it has in the whole
            for whole, part in self._logits(cells, cells[:half]):
                if not torch.allclose(whole[..., :half, :half], part, rtol=1e-3, atol=1e-3):
                    return "the logit of two tokens would depend on how long the text is"
        # PyTorch's complaint about shapes
        except RuntimeError:
            return "one widens something that the other reads"
        return ""

    def _logits(self, *texts: Tensor) -> Iterator[list[Tensor]]:
        """Yield, layer by layer, the logits (1, H, L, L) of texts at these positions.

        The texts are prefixes of one random text. Parameters are drawn anew, as some start at zero, and
        in 32 bit, of whatever type the model is: what can be combined is the same for all.
        """
        tried, draw, heads = copy.deepcopy(self).eval().float(), torch.Generator().manual_seed(0), self.spec.num_heads
        longest = max(map(len, texts))
        with torch.no_grad():
            for parameter in tried.parameters():
                parameter.normal_(generator=draw)
            width, dtype = self.model_width, torch.float32
            content = torch.randn(2, 1, heads, longest, width // heads, generator=draw, dtype=dtype)
            x = torch.randn(1, longest, width, generator=draw, dtype=dtype)
            states = [tried.state(positions) for positions in texts]
            for layer in range(self.spec.num_layers):
                found = []
                # without batch or padding: the question is which logits belong to which pair
                for n, state in zip(map(len, texts), states, strict=True):
                    tried.residual(x[:, :n], None, state, layer)
                    q, k = tried.query_key(content[0][:, :, :n], content[1][:, :, :n], x[:, :n], state, layer)
                    bias = whole(tried.bias(q, k, x[:, :n], state, layer))
                    logits = q @ k.mT + (0 if bias is None else bias)
                    found.append(logits.tril() if self.spec.causal else logits)
                yield found

    @property
    def content_width(self) -> int:
        """Width of content in the first encoding."""
        return self.first.content_width

    @property
    def model_width(self) -> int:
        """Width of the residual stream after both encodings."""
        return self.second.model_width

    def parameter_count(self) -> int:
        """Return the number of parameters that both declare."""
        return self.first.parameter_count() + self.second.parameter_count()

    def place(self, positions: Tensor) -> Tensor:
        """Return the positions of the second encoding, made of those of the first."""
        return self.second.place(self.first.place(positions))

    def prepare(self, positions: Tensor) -> tuple[Any, Any]:
        """Return what each of the two prepares."""
        return self.first.prepare(positions), self.second.prepare(positions)

    def forward(self, state: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return the states of the two."""
        return self.first(state[0]), self.second(state[1])

    def padded(self, state: tuple[Any, Any], valid: Tensor) -> tuple[Any, Any]:
        """Return the states of the two for a batch with padding."""
        return self.first.padded(state[0], valid), self.second.padded(state[1], valid)

    def embed(self, x: Tensor, state: tuple[Any, Any]) -> Tensor:
        """Apply the first, then the second."""
        return self.second.embed(self.first.embed(x, state[0]), state[1])

    def residual(self, x: Tensor, valid: Tensor | None, state: tuple[Any, Any], layer: int) -> Tensor:
        """Apply the first, then the second."""
        return self.second.residual(self.first.residual(x, valid, state[0], layer), valid, state[1], layer)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Any, Any], layer: int) -> tuple[Tensor, Tensor]:
        """Apply the first, then the second."""
        return self.second.query_key(*self.first.query_key(q, k, x, state[0], layer), x, state[1], layer)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Any, Any], layer: int) -> Tensor | PairBias | None:
        """Return the sum of the two biases."""
        one, other = self.first.bias(q, k, x, state[0], layer), self.second.bias(q, k, x, state[1], layer)
        if one is None or other is None:
            return other if one is None else one
        if isinstance(one, PairBias) and isinstance(other, PairBias):
            first, second = one, other
            return ByBlock(one.length, lambda queries, keys: first.block(queries, keys) + second.block(queries, keys))
        return whole(one) + whole(other)

    def value(self, v: Tensor, x: Tensor, state: tuple[Any, Any], layer: int) -> Tensor:
        """Apply the first, then the second."""
        return self.second.value(self.first.value(v, x, state[0], layer), x, state[1], layer)

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: tuple[Any, Any], layer: int) -> Tensor:
        """Apply the second, then the first, as an output may undo what was done to values."""
        return self.first.output(self.second.output(o, v, x, state[1], layer), v, x, state[0], layer)
