"""ALiBi: a penalty on attention that grows with distance, at its own rate in each head."""

import math

import torch
from torch import Tensor

from pebench.encodings.base import PositionalEncoding
from pebench.encodings.pairs import PairBias, pair_bias, unique_offsets
from pebench.encodings.registry import register


@register("alibi")
class AlibiEncoding(PositionalEncoding):
    """Linear bias on attention (ALiBi): minus slope times distance, symmetric when not causal.

    The distance is Euclidean in the plane for two axes, hence |i - j| for one.

    Args:
        spec: Sizes of the model.

    Shape:
        bias: (1, H, L, L), the same in every layer.

    Source:
        Press et al. 2021, section 3, https://arxiv.org/abs/2108.12409, with the authors' slopes for numbers
        of heads that are not powers of two; Euclidean distance on grids as in CROMA, Fuller et al. 2023,
        https://arxiv.org/abs/2311.00566.

    Differs from the paper:
        1. The paper is causal. Without a causal mask the bias is symmetric, so that such a model cannot
           distinguish a text from its mirror image.

    Example:
        >>> from pebench.encodings import EncodingSpec
        >>> spec = EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=(8,), causal=True)
        >>> encoding = AlibiEncoding(spec)
        >>> encoding.prepare(torch.tensor([[0.0], [1.0], [2.0]]))[0, 0, 2]  # slope 1/16 in the first of two heads
        tensor([-0.1250, -0.0625, -0.0000])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} - m_h \lVert p_i - p_j \rVert, \quad m_h = 2^{-8h/H}"
    cite = ("press2022train", "fuller2023croma")
    mark = 6
    relative = True
    isotropic = True
    mirror_blind = True
    paper = ("relative", "isotropic", "mirror_blind")
    paper_size = 0

    def prepare(self, positions: Tensor) -> Tensor | PairBias:
        """Return the bias between all pairs of `positions`: (1, H, L, L)."""
        different, pairs = unique_offsets(positions)
        distance = torch.linalg.vector_norm(different, dim=-1)  # (U, P) to (U,)
        rates = torch.tensor(slopes(self.spec.num_heads), device=positions.device, dtype=torch.float32)
        return pair_bias(-distance[:, None] * rates, pairs)  # (U, 1) times (H,)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor | PairBias, layer: int) -> Tensor | PairBias:
        """Return the same penalty in every layer."""
        return state


def slopes(num_heads: int) -> list[float]:
    """Return the authors' slopes: 2^(-8i/H) for a power of two, else filled up from the next power's odd ones.

    Example:
        >>> slopes(2), slopes(3)
        ([0.0625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    whole = 2 ** math.floor(math.log2(num_heads))
    first = [2.0 ** (-8 * (i + 1) / whole) for i in range(whole)]
    return first if whole == num_heads else first + slopes(2 * whole)[0::2][: num_heads - whole]
