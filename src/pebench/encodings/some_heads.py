"""Some-heads: an encoding in the first heads alone."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("some-heads")
class SomeHeadsEncoding(Wrapper):
    """Another encoding in the first n heads of every layer; the others know content alone.

    Args:
        spec: The model.
        of: The other encoding, which acts in attention alone: a name, alone or with options.
        heads: n; ``None`` takes half of them.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If n is none of 1 to H, or the encoding acts on the input.

    Source:
        None known; x-transformers has it for ALiBi (``alibi_num_heads``), where slopes are those of n heads
        and not, as here, the first n of all.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=(8,), causal=True)
        >>> encoding, x = SomeHeadsEncoding(spec, of="alibi"), torch.zeros(1, 2, 2, 4)
        >>> state = encoding.prepare(torch.tensor([[0.0], [1.0]]))
        >>> encoding.bias(x, x, x, state, layer=0)[0, :, 1, 0]  # slope 1/16, and nothing
        tensor([-0.0625,  0.0000])
    """

    cite = ("pebench",)

    def __init__(self, spec: EncodingSpec, *, of: str = "rope", heads: int | None = None) -> None:
        super().__init__(spec, of)
        self.refuse_input()
        self.heads = max(1, spec.num_heads // 2) if heads is None else heads
        if not 1 <= self.heads <= spec.num_heads:
            raise ValueError(f"heads of encoding 'some-heads' must be 1 to {spec.num_heads}, got {heads}")

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """As the other encoding does in the first heads; where it widens them, zeros widen the rest."""
        told = self.inner.query_key(q, k, x, state, layer)
        return self._first(told[0], q), self._first(told[1], k)

    def _first(self, told: Tensor, plain: Tensor) -> Tensor:
        rest = F.pad(plain[:, self.heads :], (0, told.shape[-1] - plain.shape[-1]))
        return torch.cat((told[:, : self.heads], rest), dim=1)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | None:
        """As the other encoding's in the first heads, and zero."""
        bias = self.inner.bias(q, k, x, state, layer)
        if bias is None:
            return None
        acts = torch.arange(self.spec.num_heads, device=bias.device) < self.heads
        return torch.where(acts[:, None, None], bias, 0.0).expand(q.shape[0], -1, -1, -1)
