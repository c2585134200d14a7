"""Some-heads: another encoding in the first heads alone."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec
from pebench.encodings.pairs import whole
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("some-heads")
class SomeHeadsEncoding(Wrapper):
    """Another encoding in the first n heads of every layer; the others know content alone.

    Args:
        spec: Sizes of the model.
        of: The other encoding, which acts in attention alone: a name, alone or with options.
        heads: Number n of heads; ``None`` takes half of all.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If n is not from 1 to H, or the other encoding acts on the input.

    Source:
        None known; x-transformers has it for ALiBi (``alibi_num_heads``), with the slopes of n heads, where here they
        are the first n of all.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=(8,), causal=True)
        >>> encoding, x = SomeHeadsEncoding(spec, of="alibi"), torch.zeros(1, 2, 2, 4)
        >>> state = encoding.prepare(torch.tensor([[0.0], [1.0]]))
        >>> encoding.bias(x, x, x, state, layer=0)[0, :, 1, 0]  # slope 1/16, and nothing
        tensor([-0.0625,  0.0000])
    """

    formula = (
        r"\ell^{(h)}_{ij} = \begin{cases} \ell'^{(h)}_{ij} & h \le n \\ \frac{q_i \cdot k_j}{\sqrt{K}} & "
        r"\text{else} \end{cases}"
    )
    cite = ("pebench",)
    mark = 37
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "rope", heads: int | None = None) -> None:
        super().__init__(spec, of)
        self.refuse_input()
        self.heads = max(1, spec.num_heads // 2) if heads is None else heads
        if not 1 <= self.heads <= spec.num_heads:
            raise ValueError(f"heads of encoding 'some-heads' must be 1 to {spec.num_heads}, got {heads}")

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Return the other encoding's first heads and plain other heads, widened by zeros where the first are wider."""
        queries, keys = self.inner.query_key(q, k, x, state, layer)
        return self._merge(queries, q), self._merge(keys, k)

    def _merge(self, encoded: Tensor, plain: Tensor) -> Tensor:
        if encoded is plain:  # what the other encoding leaves alone
            return plain
        # a zero channel adds nothing to q·k, while heads must have one width
        rest = F.pad(plain[:, self.heads :], (0, encoded.shape[-1] - plain.shape[-1]))  # (B, H - n, L, K')
        return torch.cat((encoded[:, : self.heads], rest), dim=1)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | None:
        """Return the other encoding's bias in the first heads, and zero in the others."""
        bias = whole(self.inner.bias(q, k, x, state, layer))
        if bias is None:
            return None
        acts = torch.arange(self.spec.num_heads, device=bias.device) < self.heads
        # `where`, as zero times an infinite bias would be NaN
        return torch.where(acts[:, None, None], bias, 0.0).expand(q.shape[0], -1, -1, -1)  # (B, H, L, L)

    def value(self, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's values in the first heads, and plain ones in the others."""
        return self._merge(self.inner.value(v, x, state, layer), v)

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's output of the first heads, and the plain one of the others."""
        return self._merge(self.inner.output(o, v, x, state, layer), o)
