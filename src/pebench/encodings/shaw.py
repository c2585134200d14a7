"""Shaw: a trained vector per clipped offset, added to the key as the query sees it."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, by_blocks, unique_offsets
from pebench.encodings.registry import register


@register("shaw")
class ShawEncoding(PositionalEncoding):
    """Relative representations of Shaw et al.: logits q·(k + a) / sqrt(K), a a trained vector of the clipped offset.

    Each layer has a table, which its heads share. The vectors that the paper also adds to the values
    are left out: they need the attention weights, which fused attention does not return, and made no
    difference in the authors' experiments (their table 3).

    Args:
        spec: Sizes of the model; on grids there is a table for each axis.
        clip: Largest distance with a vector of its own, in tokens or patches; all larger ones share it.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``clip`` is not positive.

    Source:
        Shaw et al. 2018, "Self-Attention with Relative Position Representations", equations 2 to 5,
        https://arxiv.org/abs/1803.02155.

    Differs from the paper:
        1. There are no vectors on the values, see above.
        2. The default clip is that of the paper's base model, whose heads have tables of their own; its big model, with
           a clip of 8, shares them as here.
        3. On grids each axis has a table, and their vectors are summed. The paper is on text.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=False)
        >>> encoding = ShawEncoding(spec, clip=1)
        >>> _ = encoding.table.data.copy_(torch.tensor([-1.0, 0.0, 1.0])[None, None, :, None])  # before, here, after
        >>> q = torch.ones(1, 1, 3, 4)
        >>> encoding.bias(q, q, q, encoding.prepare(torch.arange(3.0)[:, None]), layer=0)[0, 0].detach()
        tensor([[ 0.,  2.,  2.],
                [-2.,  0.,  2.],
                [-2., -2.,  0.]])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot \left(k_j + a_{\mathrm{clip}(j - i)}\right)}{\sqrt{K}}"
    cite = ("shaw2018self",)
    aliases = ("relative", "rpr")
    mark = 35
    relative = True
    size = "num_layers * num_axes * (2 * 16 + 1) * head_dim"
    paper = ("relative",)
    paper_size = 528  # 2 layers x 33 offsets x 8 channels

    def __init__(self, spec: EncodingSpec, *, clip: int = 16) -> None:
        super().__init__(spec)
        if clip < 1:
            raise ValueError(f"clip of encoding 'shaw' must be 1 or more, got {clip}")
        self.clip = clip
        self.table = nn.Parameter(torch.empty(spec.num_layers, spec.num_axes, 2 * clip + 1, spec.head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the tables from N(0, 1/D), small against keys."""
        nn.init.normal_(self.table, std=self.spec.d_model**-0.5)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return the row of the different offsets on each axis (P, U), and which of them every pair has."""
        different, pairs = unique_offsets(positions)
        # rounded, as wrappers such as `interpolated` give fractions of a position, which have no row
        return (different.round().clamp(-self.clip, self.clip) + self.clip).long().T.contiguous(), pairs

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Pairs], layer: int) -> Tensor | PairBias:
        """Return q·a of every pair, summed over the axes."""
        axes, pairs = state

        def block(queries: slice, keys: int) -> Tensor:
            which = pairs.block(queries, keys)
            # no dimension: the first sum gives it the shape
            total = torch.zeros((), device=q.device, dtype=q.dtype)
            for table, rows in zip(self.table[layer], axes, strict=True):
                logits = q[:, :, queries] @ table.to(q.dtype).T
                total = total + by_offset(logits, rows[which])  # (B, H, queries, R) to (B, H, queries, keys)
            # the model scales q·k alone, not what a bias adds
            return total * self.spec.head_dim**-0.5

        return by_blocks(pairs.length, block)


def by_offset(logits: Tensor, rows: Tensor) -> Tensor:
    """Pick every pair's logit (B, H, L, L) from logits by row of a table (B, H, L, R), given the pairs' rows (L, L).

    There may be fewer queries than keys, or the other way round.
    """
    # a product with all R rows, then a choice, needs (B, H, L, R); choosing vectors first needs (L, L, K) and more time
    return logits.gather(-1, rows.expand(*logits.shape[:2], -1, -1))
