"""KERPLE: a trained logarithmic penalty on distance, added to the attention logits."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register

LEAST = 1e-2
"""What the parameters count as at least, in the authors' code too."""


@register("kerple-log")
class KerpleLogEncoding(PositionalEncoding):
    """Logarithmic KERPLE: -p log(1 + a · distance), p and a trained for every layer and head.

    Args:
        spec: The model.

    Shape:
        bias: (1, H, L, L).

    Source:
        Chi et al. 2022, "KERPLE", equation 6, https://arxiv.org/abs/2205.09921.

    Differs from the paper:
        1. Not causal, it is symmetric; on grids the distance is Euclidean. The paper is on causal text.
        2. The authors' code sets a parameter that falls below 0.01 to it, and training goes on from there. Here the
           parameter stays where it is, counts as 0.01, and has to come all the way back.
        3. Initial values are drawn above 0.01; in the authors' code those below, one in 200 and in 100, are set to it.
        4. Every layer has its own p and a; in the authors' code all layers share one of each per head.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = KerpleLogEncoding(spec)
        >>> _ = nn.init.ones_(encoding.p), nn.init.ones_(encoding.a)
        >>> q = torch.zeros(1, 1, 3, 4)
        >>> encoding.bias(q, q, q, encoding.prepare(torch.arange(3.0)[:, None]), layer=0)[0, 0, 2]  # log of 3, 2, 1
        tensor([-1.0986, -0.6931, -0.0000], grad_fn=<SelectBackward0>)
    """

    cite = ("chi2022kerple",)
    relative = True
    isotropic = True
    mirror_blind = True
    size = "2 * num_heads * num_layers"

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.p = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.a = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw p from U(0.01, 2) and a from U(0.01, 1)."""
        nn.init.uniform_(self.p, LEAST, 2)
        nn.init.uniform_(self.a, LEAST, 1)

    def prepare(self, positions: Tensor) -> Tensor:
        """Distances of all pairs: (L, L)."""
        return (positions[:, None] - positions[None, :]).norm(dim=-1)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """The penalty of every head."""
        p, a = (at_least(x[layer], LEAST)[None, :, None, None] for x in (self.p, self.a))
        return -p * torch.log1p(a * state)


def at_least(x: Tensor, least: float) -> Tensor:
    """The parameter, or the least value where it is below that; the gradient is as if it were not, so it can return."""
    return x + (x.clamp(min=least) - x).detach()
