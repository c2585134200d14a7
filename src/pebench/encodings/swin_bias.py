"""Swin bias: one trained number per offset and head, in every layer."""

import math

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, pair_bias, unique_offsets
from pebench.encodings.registry import register


@register("swin-bias")
class SwinBiasEncoding(PositionalEncoding):
    """Relative position bias of Swin: a table over all offsets within the trained extent, for each layer and head.

    An offset outside the table is an error.

    Args:
        spec: Sizes of the model; an axis of n positions has 2n - 1 offsets.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: For tokens further apart than in training, or at a fraction of a position.

    Source:
        Liu et al. 2021, "Swin Transformer", equation 4, https://arxiv.org/abs/2103.14030.

    Differs from the paper:
        1. Attention is over the whole image, in the paper within windows; and it serves text too.
        2. Rows are ordered by the key's position minus the query's; the authors' tables have the opposite order.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(3,), causal=False)
        >>> encoding = SwinBiasEncoding(spec)
        >>> _ = encoding.table.data.copy_(torch.arange(5.0).view(1, 5, 1))  # key's position minus query's: -2 to 2
        >>> q = torch.zeros(1, 1, 2, 2)
        >>> encoding.bias(q, q, q, encoding.prepare(torch.tensor([[0.0], [2.0]])), layer=0)[0, 0].detach()
        tensor([[2., 4.],
                [0., 2.]])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + B^{(h)}_{j - i}"
    cite = ("liu2021swin",)
    aliases = ("relativepositionbias", "rpb", "swin")
    mark = 40
    relative = True
    beyond = "refuses"
    size = "num_layers * num_heads * prod(2 * n - 1 for n in extent)"
    paper = ("relative", "refuses")
    paper_size = 120  # 2 layers x 15 offsets x 4 heads
    layouts = (("table", "offsets"),)

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.sides = tuple(2 * n - 1 for n in spec.extent)
        rows = math.prod(self.sides)
        self.table = nn.Parameter(torch.empty(spec.num_layers, rows, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the tables from N(0, 0.02²), as the authors do."""
        nn.init.trunc_normal_(self.table, std=0.02)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return the row of the table of every different offset (U,), and which of them every pair has."""
        # checked in `prepare`, which runs once per tensor of positions: each check makes an accelerator wait
        offset, pairs = unique_offsets(positions)  # (U, P)
        reach = torch.tensor(self.spec.extent, device=positions.device, dtype=torch.long) - 1
        if (offset.abs() > reach).any() or (offset != offset.floor()).any() or offset.isnan().any():
            raise ValueError(
                f"encoding 'swin-bias' knows the integer offsets within {self.spec.extent}, "
                f"got offsets up to {offset.abs().amax(0).tolist()}"
            )
        # row-major number of the offset among all offsets on all axes
        rows = torch.zeros(len(offset), dtype=torch.long, device=positions.device)
        for axis, side in enumerate(self.sides):
            rows = rows * side + (offset[..., axis] + reach[axis]).long()
        return rows, pairs

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Pairs], layer: int) -> Tensor | PairBias:
        """Return the layer's bias for every pair."""
        rows, pairs = state
        return pair_bias(self.table[layer].index_select(0, rows), pairs)
