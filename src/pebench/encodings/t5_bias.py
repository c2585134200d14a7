"""T5 bias: one trained number per head and bucket of distances, added to the attention logits."""

import math

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding, spread
from pebench.encodings.registry import register


@register("t5-bias")
class T5BiasEncoding(PositionalEncoding):
    """Relative bias of T5: exact for near tokens, logarithmic buckets for far ones, shared by all layers.

    In a causal model on text all buckets are for the past: half of them for one distance each, the rest
    for distances that grow in equal ratios up to ``max_distance``, beyond which all share the last. Else
    half of the buckets are for what comes before a token and half for what comes after.

    Args:
        spec: The model; a table (num_buckets, H) for each position axis.
        num_buckets: Of each table, a multiple of 4.
        max_distance: From which on distances share a bucket, in tokens or patches.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: If ``num_buckets`` is no multiple of 4, or ``max_distance`` is not beyond the exact buckets.

    Source:
        Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1,
        https://arxiv.org/abs/1910.10683.

    Differs from the paper:
        1. It is added to q·k / sqrt(K); T5 does not divide, and has weights that are smaller instead.
        2. On grids the axes' biases are summed; the paper knows text alone.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = T5BiasEncoding(spec, num_buckets=8, max_distance=16)
        >>> encoding.bucket(torch.tensor([-40.0, -16, -8, -4, -3, -1, 0, 5])).tolist()  # key's minus query's position
        [7, 7, 6, 4, 3, 1, 0, 0]
    """

    cite = ("raffel2020exploring",)
    relative = True
    size = "32 * num_heads * num_axes"

    def __init__(self, spec: EncodingSpec, *, num_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__(spec)
        self.both = not spec.causal or spec.num_axes > 1  # on a grid the past lies on both sides of an axis
        self.exact = num_buckets // (4 if self.both else 2)
        if num_buckets % 4 or num_buckets < 4:
            raise ValueError(f"num_buckets of encoding 't5-bias' must be a positive multiple of 4, got {num_buckets}")
        if max_distance <= self.exact:
            raise ValueError(f"max_distance of encoding 't5-bias' must be above {self.exact}, got {max_distance}")
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(spec.num_axes, num_buckets, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the tables anew: N(0, 1/D), as T5 does."""
        nn.init.normal_(self.table, std=self.spec.d_model**-0.5)

    def bucket(self, offset: Tensor) -> Tensor:
        """The bucket of each offset, rounded, which is the key's position minus the query's."""
        offset = offset.round()  # half a token is before or after, and no bucket is for that
        distance = offset.abs() if self.both else (-offset).clamp(min=0)
        ratio = (distance / self.exact).clamp(min=1).log() / math.log(self.max_distance / self.exact)
        far = (self.exact + (ratio * self.exact + 1e-6).floor()).clamp(max=2 * self.exact - 1)
        bucket = torch.where(distance < self.exact, distance, far).long()
        return bucket + 2 * self.exact * (offset > 0) if self.both else bucket

    def prepare(self, positions: Tensor) -> Tensor:
        """The bucket of every pair of tokens, on each axis: (P, L, L)."""
        return self.bucket(positions.T[:, None, :] - positions.T[:, :, None])

    def forward(self, state: Tensor) -> Tensor:
        """The tables' numbers for every pair, summed over the axes: (1, H, L, L)."""
        axes = [spread(table, bucket) for table, bucket in zip(self.table, state, strict=True)]
        return torch.stack(axes).sum(dim=0)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """The same in every layer."""
        return state
