"""Dynamic bias: a small network that turns an offset into one number per head."""

import math

from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding, offsets, spread
from pebench.encodings.registry import register
from pebench.layers import Linear


@register("dynamic-bias")
class DynamicBiasEncoding(PositionalEncoding):
    """Dynamic position bias (DPB): a network of the offset between two tokens, shared by all layers.

    Three linear layers of hidden width D/4, with a norm and a ReLU before the second and the third.

    Args:
        spec: The model; ``d_model`` must be 8 or more.
        log_distance: Give it sign(x) log(1 + abs(x)) instead of the offset x.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: If ``d_model`` is below 8: a norm of one channel would leave nothing.

    Source:
        Wang et al. 2021, "CrossFormer", its dynamic position bias, https://arxiv.org/abs/2108.00154.

    Differs from the paper:
        1. One network for all layers; the paper's layers have their own.
        2. The layers are those of the text; the authors' code has four, of hidden width D/16, and takes the query's
           position minus the key's.
        3. The first layer's shift is drawn, as PyTorch does by default; the authors set it to zero. The norm behind it
           then takes out how long an offset is, so that at first the network knows its direction alone.
        4. Weights start at the scale of logits; the authors draw all of them from N(0, 0.02²).

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = DynamicBiasEncoding(spec)
        >>> encoding(encoding.prepare(torch.arange(3.0)[:, None])).shape
        torch.Size([1, 1, 3, 3])
    """

    cite = ("wang2022crossformer",)
    relative = True
    idle = ("network.6.bias",)
    size = (
        "(num_axes + 1) * (d_model // 4) + 4 * (d_model // 4) + (d_model // 4 + 1) * (d_model // 4)"
        " + (d_model // 4 + 1) * num_heads"
    )

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

    def prepare(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """The different offsets (U, P), and which of them every pair has (L, L)."""
        different, pairs = offsets(positions)
        return (different.sign() * different.abs().log1p() if self.log_distance else different), pairs

    def forward(self, state: tuple[Tensor, Tensor]) -> Tensor:
        """The bias of every pair: (1, H, L, L)."""
        different, pairs = state
        return spread(self.network(different.to(next(self.parameters()).dtype)), pairs)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """The same in every layer."""
        return state
