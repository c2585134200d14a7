"""FIRE: a small network of the distance, normalised by the query's position."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, by_blocks
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.layers import Linear


@register("fire")
class FireEncoding(PositionalEncoding):
    """Functional interpolation (FIRE): a network f of psi(i - j) / psi(max(i, L)), one number per head.

    psi(x) = log(1 + |c| x), with c and the length L trained. All layers share the network.

    Args:
        spec: Sizes of the model.
        hidden: Width of the network's hidden layer.
        length: Initial value of L, in tokens or patches.
        c: Initial value of c, dimensionless.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: If ``hidden``, ``length`` or ``c`` is not positive.

    Source:
        Li et al. 2023, "Functional Interpolation for Relative Positions", equations 3 and 7, defaults of
        section 4, https://arxiv.org/abs/2310.04418; shared layers as in its FIRE-S.

    Differs from the paper:
        1. Weights start at the scale of logits. The first layer's shift is drawn as in the paper's code, which is
           PyTorch's default; the second's, which changes nothing, is zero.
        2. The paper is causal. Here a key after the query has a negative distance, over psi(max(i, j, L)); on
           grids the network is given one distance per axis. On causal text this is the paper's.
        3. L starts at the paper's 512 whatever the extent. On shorter texts all distances are then divided by psi(L),
           and are at most 0.66 with 128 tokens and 0.23 with 16, until L is trained.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = FireEncoding(spec, length=4.0, c=1.0)
        >>> positions = torch.tensor([[0.0], [2.0], [6.0]])
        >>> distances = encoding.normalised_distances(positions, positions)
        >>> distances[2].flatten().detach()  # log 7, 5, 1 over log 7
        tensor([1.0000, 0.8271, 0.0000])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + f_h\left(\frac{\psi(i - j)}{\psi(\max(i, L))}\right), "
        r"\quad \psi(x) = \log(1 + |c|\,x)"
    )
    cite = ("li2024functional",)
    mark = 15
    idle = ("second.bias",)
    size = "2 + 32 * num_axes + 32 + 32 * num_heads + num_heads"
    paper = ()
    paper_size = 198  # as the paper counts for four heads

    def __init__(self, spec: EncodingSpec, *, hidden: int = 32, length: float = 512.0, c: float = 0.1) -> None:
        super().__init__(spec)
        check_positive(self.name, hidden=hidden, length=length, c=c)
        self.start = c, length
        self.c, self.multiplier = nn.Parameter(torch.empty(())), nn.Parameter(torch.empty(()))
        # shift: without one the kinks of all ReLUs lie at distance 0, as distances are the network's only input
        self.first = Linear(spec.num_axes, hidden, gain=math.sqrt(2), shift=spec.num_axes**-0.5)
        self.second = Linear(hidden, spec.num_heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set c to its initial value and the multiplier of L to 1."""
        nn.init.constant_(self.c, self.start[0])
        nn.init.ones_(self.multiplier)

    def normalised_distances(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the input of the network for positions of queries and keys: (queries, keys, P)."""
        # absolute values, as in the paper for c, keep both logarithms defined when training turns a sign
        c, least = self.c.float().abs(), (self.multiplier.float() * self.start[1]).abs()
        back = queries.unsqueeze(1) - keys.unsqueeze(0)
        most = torch.maximum(queries.unsqueeze(1), keys.unsqueeze(0)).clamp(min=0).maximum(least)
        # the sign is outside: log1p of a negative distance (a key after the query) does not exist
        return back.sign() * torch.log1p(c * back.abs()) / torch.log1p(c * most)

    def forward(self, state: Tensor) -> Tensor | PairBias:
        """Return the bias of every pair: (1, H, L, L)."""

        def block(queries: slice, keys: int) -> Tensor:
            distances = self.normalised_distances(state[queries], state[:keys])
            hidden = F.relu(self.first(distances.to(self.first.weight.dtype)))
            output: Tensor = self.second(hidden).permute(2, 0, 1)[None]  # (L, L, H) to (1, H, L, L)
            return output

        return by_blocks(len(state), block)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor | PairBias, layer: int) -> Tensor | PairBias:
        """Return the same bias in every layer."""
        return state
