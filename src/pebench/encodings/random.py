"""Random: a fixed Gaussian vector per position, summed onto the input and never trained."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding, cells, check_ratio
from pebench.encodings.registry import register


@register("random")
class RandomEncoding(PositionalEncoding):
    """Frozen random table, added to the input: nearly orthogonal codes without any order in them.

    The control for what it takes of a fixed code: it tells positions apart as a sinusoid does, but
    neighbours are as unlike as strangers. A position outside the trained extent is an error.

    Args:
        spec: The model; the table has one row for each of its ``max_len`` positions.
        table_seed: Decides the table, for all seeds of a run alike.
        ratio: Root mean square of the table relative to the content's at initialisation.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: For a position that is negative, fractional or beyond the extent, or a negative ``ratio``.

    Source:
        None; the control that the learned table of Gehring et al. 2017, https://arxiv.org/abs/1705.03122,
        starts from.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = RandomEncoding(spec)
        >>> encoding.embed(torch.zeros(1, 1, 2), encoding.prepare(torch.tensor([[0.0]])))
        tensor([[[-1.1258, -1.1524]]])
    """

    cite = ("pebench",)
    beyond = "refuses"
    table: Tensor

    def __init__(self, spec: EncodingSpec, *, table_seed: int = 0, ratio: float = 1.0) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        noise = torch.Generator().manual_seed(table_seed)
        self.register_buffer("table", ratio * torch.randn(spec.max_len, spec.d_model, generator=noise))

    def prepare(self, positions: Tensor) -> Tensor:
        """The rows' numbers for `positions`: (L,)."""
        return cells(positions, self.spec.extent, self.name)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Content plus code."""
        return x + self.table[state].to(x.dtype)
