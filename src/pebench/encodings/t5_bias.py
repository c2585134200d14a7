"""T5 bias: one trained number per head and bucket of distances, added to the attention logits."""

import math

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, pair_bias, unique_offsets
from pebench.encodings.registry import register


@register("t5-bias")
class T5BiasEncoding(PositionalEncoding):
    """Relative bias of T5: exact for near tokens, logarithmic buckets for far ones, shared by all layers.

    In a causal model on text all buckets are for the past: half of them for one distance each, the others
    for ranges that grow in equal ratios up to ``max_distance``; all larger distances share the last. In other
    models half of the buckets are for keys before the query and half for keys after it.

    Args:
        spec: Sizes of the model; there is a table (num_buckets, H) for each position axis.
        num_buckets: Rows of each table, a multiple of 4.
        max_distance: Distance from which on all share the last bucket, in tokens or patches.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: If ``num_buckets`` is not a multiple of 4, or ``max_distance`` is not above the exact distances.

    Source:
        Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1,
        https://arxiv.org/abs/1910.10683.

    Differs from the paper:
        1. The bias is added to q·k / sqrt(K); T5 does not divide, and draws smaller weights instead.
        2. On grids the axes' biases are summed; the paper is on text.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = T5BiasEncoding(spec, num_buckets=8, max_distance=16)
        >>> encoding.bucket(torch.tensor([-40.0, -16, -8, -4, -3, -1, 0, 5])).tolist()  # key's minus query's position
        [7, 7, 6, 4, 3, 1, 0, 0]
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + B^{(h)}_{\beta(i - j)}, \quad \beta(d) = \begin{cases} "
        r"d & d < e \\ \min\left(2e - 1,\ e + \left\lfloor e\,\frac{\log(d/e)}{\log(\text{max_distance}/e)} "
        r"\right\rfloor\right) & \text{else} \end{cases}"
    )
    cite = ("raffel2020exploring",)
    aliases = ("relativebias", "t5")
    mark = 41
    relative = True
    size = "32 * num_heads * num_axes"
    paper = ("relative",)
    paper_size = 128  # 32 buckets x 4 heads

    def __init__(self, spec: EncodingSpec, *, num_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__(spec)
        self.both = not spec.causal or spec.num_axes > 1  # on a grid the past lies on both sides of an axis
        # a quarter where both directions share the table, else a half; as many buckets again are logarithmic
        self.exact = num_buckets // (4 if self.both else 2)
        if num_buckets % 4 or num_buckets < 4:
            raise ValueError(f"num_buckets of encoding 't5-bias' must be a positive multiple of 4, got {num_buckets}")
        if max_distance <= self.exact:
            raise ValueError(f"max_distance of encoding 't5-bias' must be above {self.exact}, got {max_distance}")
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(spec.num_axes, num_buckets, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the tables from N(0, 1/D), as T5 does."""
        nn.init.normal_(self.table, std=self.spec.d_model**-0.5)

    def bucket(self, offset: Tensor) -> Tensor:
        """Return the bucket of each offset, a key's position minus a query's, rounded."""
        offset = offset.round()  # there is no bucket between neighbours
        distance = offset.abs() if self.both else (-offset).clamp(min=0)
        # clamped for near tokens, for which the logarithm is -inf or negative; `where` below takes their exact bucket
        ratio = (distance / self.exact).clamp(min=1).log() / math.log(self.max_distance / self.exact)
        # 1e-6: a distance at a bucket's edge must not fall below it by the rounding of the two logarithms
        far = (self.exact + (ratio * self.exact + 1e-6).floor()).clamp(max=2 * self.exact - 1)
        bucket = torch.where(distance < self.exact, distance, far).long()
        return bucket + 2 * self.exact * (offset > 0) if self.both else bucket

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return the buckets of the different offsets on each axis (P, U), and which offset every pair has."""
        different, pairs = unique_offsets(positions)
        return self.bucket(different.T), pairs

    def forward(self, state: tuple[Tensor, Pairs]) -> Tensor | PairBias:
        """Return the tables' numbers for every pair, summed over the axes: (1, H, L, L)."""
        buckets, pairs = state
        axes = [table.index_select(0, bucket) for table, bucket in zip(self.table, buckets, strict=True)]
        return pair_bias(torch.stack(axes).sum(dim=0), pairs)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor | PairBias, layer: int) -> Tensor | PairBias:
        """Return the same bias in every layer."""
        return state
