"""Dynamic bias: a small network from an offset to one number per head, added to the attention logits."""

import math

from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, pair_bias, unique_offsets
from pebench.encodings.registry import register
from pebench.layers import Linear


@register("dynamic-bias")
class DynamicBiasEncoding(PositionalEncoding):
    """Dynamic position bias (DPB): a network of the offset between two tokens, shared by all layers.

    Three linear layers of hidden width D/4, with a norm and a ReLU before the second and the third.

    Args:
        spec: Sizes of the model; ``d_model`` must be 8 or more.
        log_distance: Give the network sign(x) log(1 + abs(x)) instead of the offset x.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: If ``d_model`` is below 8, as a norm of one channel would leave nothing.

    Source:
        Wang et al. 2021, "CrossFormer", its dynamic position bias, https://arxiv.org/abs/2108.00154.

    Differs from the paper:
        1. One network for all layers; the paper's layers have their own.
        2. The layers follow the text; the authors' code has four, of hidden width D/16, and takes the query's
           position minus the key's.
        3. The first layer's shift is drawn, as PyTorch does by default; the authors set it to zero. The norm after it
           then removes the length of an offset, so that at first the network has its direction alone.
        4. Weights start at the scale of logits; the authors draw all of them from N(0, 0.02²).

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = DynamicBiasEncoding(spec)
        >>> encoding(encoding.prepare(torch.arange(3.0)[:, None])).shape
        torch.Size([1, 1, 3, 3])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + f_h(j - i)"
    cite = ("wang2022crossformer",)
    mark = 14
    relative = True
    idle = ("network.6.bias",)
    size = (
        "(num_axes + 1) * (d_model // 4) + 4 * (d_model // 4) + (d_model // 4 + 1) * (d_model // 4)"
        " + (d_model // 4 + 1) * num_heads"
    )
    paper = ("relative",)
    paper_size = 156  # three linear layers, 1 to 8 to 8 to 4, and two norms of 8

    def __init__(self, spec: EncodingSpec, *, log_distance: bool = False) -> None:
        super().__init__(spec)
        self.log_distance, width = log_distance, spec.d_model // 4
        if width < 2:
            raise ValueError(f"encoding 'dynamic-bias' needs a d_model of 8 or more, got {spec.d_model}")
        self.network = nn.Sequential(
            Linear(spec.num_axes, width, shift=spec.num_axes**-0.5),
            *(nn.LayerNorm(width), nn.ReLU(), Linear(width, width, gain=math.sqrt(2))),
            *(nn.LayerNorm(width), nn.ReLU(), Linear(width, spec.num_heads)),
        )

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return the different offsets (U, P), and which of them every pair has."""
        different, pairs = unique_offsets(positions)
        return (different.sign() * different.abs().log1p() if self.log_distance else different), pairs

    def forward(self, state: tuple[Tensor, Pairs]) -> Tensor | PairBias:
        """Return the bias of every pair: (1, H, L, L)."""
        different, pairs = state
        return pair_bias(self.network(different.to(next(self.parameters()).dtype)), pairs)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor | PairBias, layer: int) -> Tensor | PairBias:
        """Return the same bias in every layer."""
        return state
