"""KERPLE: a trained logarithmic penalty on distance, added to the attention logits."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, pair_bias, unique_offsets
from pebench.encodings.registry import register

LEAST = 1e-2
"""Least value that the parameters count as, the same as in the authors' code."""


@register("kerple-log")
class KerpleLogEncoding(PositionalEncoding):
    """Logarithmic KERPLE: -p log(1 + a · distance), p and a trained for every layer and head.

    Args:
        spec: Sizes of the model.

    Shape:
        bias: (1, H, L, L).

    Source:
        Chi et al. 2022, "KERPLE", equation 6, https://arxiv.org/abs/2205.09921.

    Differs from the paper:
        1. Without a causal mask the bias is symmetric; on grids the distance is Euclidean. The paper is on causal text.
        2. The authors' code sets a parameter that falls below 0.01 to 0.01, and training goes on from there. Here the
           parameter keeps its value, counts as 0.01, and has to rise above it again.
        3. Initial values are drawn above 0.01; in the authors' code those below it, one in 200 of p and one in 100 of
           a, are set to it.
        4. Every layer has its own p and a; in the authors' code all layers share one of each per head.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = KerpleLogEncoding(spec)
        >>> _ = nn.init.ones_(encoding.p), nn.init.ones_(encoding.a)
        >>> q = torch.zeros(1, 1, 3, 4)
        >>> encoding.bias(q, q, q, encoding.prepare(torch.arange(3.0)[:, None]), layer=0)[0, 0, 2]  # log of 3, 2, 1
        tensor([-1.0986, -0.6931, -0.0000], grad_fn=<SelectBackward0>)
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} - p_h \log\left(1 + a_h\,|i - j|\right)"
    cite = ("chi2022kerple",)
    aliases = ("kerple",)
    mark = 20
    relative = True
    isotropic = True
    mirror_blind = True
    size = "2 * num_heads * num_layers"
    paper = ("relative", "isotropic", "mirror_blind")
    paper_size = 16  # two numbers for each of 2 layers x 4 heads

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.p = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.a = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw p from U(0.01, 2) and a from U(0.01, 1)."""
        nn.init.uniform_(self.p, LEAST, 2)
        nn.init.uniform_(self.a, LEAST, 1)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return the different distances (U, 1), and which of them every pair has."""
        different, pairs = unique_offsets(positions)
        return different.norm(dim=-1, keepdim=True), pairs

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Pairs], layer: int) -> Tensor | PairBias:
        """Return the penalty of every head."""
        distance, pairs = state
        # positive p and a make the kernel conditionally positive definite, which the paper needs
        p, a = (at_least(values[layer], LEAST) for values in (self.p, self.a))  # (H,)
        return pair_bias(-p * torch.log1p(a * distance), pairs)


def at_least(x: Tensor, least: float) -> Tensor:
    """Return x clamped from below, with the gradient of x itself, so that a parameter below can rise again."""
    # straight-through: the value of the clamp, the gradient of x
    return x + (x.clamp(min=least) - x).detach()
