"""Sandwich: the sinusoid's inner products as a penalty on distance, at its own rate in each head."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, pair_bias, unique_offsets
from pebench.encodings.positions import check_positive, in_32_bit, in_64_bit
from pebench.encodings.registry import register


@register("sandwich")
class SandwichEncoding(PositionalEncoding):
    """Bias of head h by the inner product of two sinusoids: (sum_k cos(distance / base^(2k/d)) - d/2) / (8h/H).

    k goes from 1 to d/2. The bias falls about as a logarithm does, not monotonically.

    Args:
        spec: Sizes of the model.
        d: Channels of the sinusoids, even.
        base: Base of the wavelengths, dimensionless.

    Shape:
        bias: (H, L, L), the same in every layer.

    Raises:
        ValueError: If ``d`` is not even and positive, ``base`` not positive, or for a grid.

    Source:
        Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field
        Analysis", section 5, https://arxiv.org/abs/2212.10356.

    Differs from the paper:
        1. The paper is causal. Without a causal mask the bias is symmetric.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=2, num_layers=1, extent=(8,), causal=True)
        >>> SandwichEncoding(spec, d=2).prepare(torch.tensor([[0.0], [20000.0]]))[0, :, 1, 0]  # cos 2 less 1, over 4, 8
        tensor([-0.3540, -0.1770])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + \frac{H}{8h} \left(\sum_{k=1}^{d/2} \cos\left(\frac{i - "
        r"j}{\mathrm{base}^{2k/d}}\right) - \frac{d}{2}\right)"
    )
    cite = ("chi2023dissecting",)
    mark = 34
    axes = (1,)
    relative = True
    isotropic = True
    mirror_blind = True
    paper = ("relative", "isotropic", "mirror_blind", "text")
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, d: int = 128, base: float = 10000.0) -> None:
        super().__init__(spec)
        if d < 2 or d % 2:
            raise ValueError(f"d of encoding 'sandwich' must be even and positive, got {d}")
        check_positive(self.name, base=base)
        self.d, self.base = d, base

    def prepare(self, positions: Tensor) -> Tensor | PairBias:
        """Return the bias between all pairs of `positions`: (1, H, L, L)."""
        different, which = unique_offsets(positions)
        distance, half = in_64_bit(different), self.d // 2
        products = torch.zeros_like(distance)
        for k in range(1, half + 1):  # in this order, as another one would change the last bits
            products += (distance * self.base ** (-k / half)).cos()
        heads = self.spec.num_heads
        rates = 8 * torch.arange(1, heads + 1, device=distance.device, dtype=torch.float32) / heads
        return pair_bias(in_32_bit((products - half) / rates, positions.device), which)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor | PairBias, layer: int) -> Tensor | PairBias:
        """Return the same penalty in every layer."""
        return state
