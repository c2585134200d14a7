"""Concat-qk: position next to content in every query and key, never in the values."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.table import TableEncoding


def concatenated(content: Tensor, position: Tensor) -> Tensor:
    """Return content (B, H, L, K) and position (H, L, K') side by side, (B, H, L, K + K'), divided by 2^(1/4).

    Queries and keys are each divided by it, and so logits by sqrt(2).
    """
    position = position.to(content.dtype).expand(len(content), -1, -1, -1)
    return torch.cat((content, position), dim=-1) * 2**-0.25


@register("concat-qk")
class ConcatQkEncoding(TableEncoding):
    """Fixed sinusoid, projected to channels of its own in queries and keys: logits q·k + (U p)·(V p).

    Content is compared with content and position with position, each layer with its own U and V; there are no
    cross terms, and the residual stream and the values have no position. Both parts are divided by sqrt(2), so that
    logits start with the root mean square of other models', the part that all positions share included.

    Args:
        spec: Sizes of the model.
        d_p: Channels of a position's vector, a multiple of 2P for a sinusoid; ``None`` takes ``d_model``.
        base: Base of the wavelengths, dimensionless.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none beyond the extent.
        centered: Subtract the sinusoid's mean over the trained positions, from every position, before it is scaled.

    Shape:
        query_key: q and k (B, H, L, K) to (B, H, L, 2K).

    Raises:
        ValueError: If ``d_p`` is not a multiple of 2P, ``base`` is not positive, there is no such ``table``, or a
            learned one or one position is to be centred.

    Source:
        Ke et al. 2020 (TUPE), equation 7, https://arxiv.org/abs/2006.15595, whose vectors are trained and
        whose projections all layers share: see ``tupe``.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = ConcatQkEncoding(spec)
        >>> _ = encoding.queries.data.copy_(torch.eye(2)), encoding.keys.data.copy_(torch.eye(2))
        >>> x = torch.zeros(1, 1, 2, 2)
        >>> q, k = encoding.query_key(x, x, x, encoding(encoding.prepare(torch.tensor([[0.0], [1.0]]))), layer=0)
        >>> (q @ k.mT)[0, 0].detach() / 2**0.5  # cos 0, cos 1; the sinusoid's 2 over sqrt(2) is left
        tensor([[1.0000, 0.5403],
                [0.5403, 1.0000]])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j + (U s(p_i)) \cdot (V s(p_j))}{\sqrt{2K}}"
    cite: ClassVar[tuple[str, ...]] = ("ke2021rethinking",)
    mark = 9
    size = "2 * num_layers * d_model * d_model"
    joined = staticmethod(concatenated)
    paper = ()
    paper_size = 4096  # 2 layers x 2 matrices of 32 x 32

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        d_p: int | None = None,
        base: float = 10000.0,
        table: str = "sinusoid",
        centered: bool = False,
    ) -> None:
        super().__init__(spec)
        self.d_p = spec.d_model if d_p is None else d_p
        self.make_table(table, self.d_p, base, centered=centered)
        self.queries = nn.Parameter(torch.empty(spec.num_layers, spec.d_model, self.d_p))
        self.keys = nn.Parameter(torch.empty(spec.num_layers, spec.d_model, self.d_p))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projections from N(0, 1/d_p), which keeps the vectors' scale."""
        nn.init.normal_(self.queries, std=self.d_p**-0.5)
        nn.init.normal_(self.keys, std=self.d_p**-0.5)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Append the projected positions to queries and keys."""
        own_q, own_k = (self._project(state, table[layer]) for table in (self.queries, self.keys))
        return self.joined(q, own_q), self.joined(k, own_k)

    def _project(self, state: Tensor, weight: Tensor) -> Tensor:
        """Project the positions' vectors (L, d_p) to (H, L, K)."""
        projected = nn.functional.linear(state.to(weight.dtype), weight)  # (L, D)
        return projected.unflatten(-1, (self.spec.num_heads, -1)).transpose(0, 1)  # (L, H, K) to (H, L, K)
