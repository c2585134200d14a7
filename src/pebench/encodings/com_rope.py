"""ComRoPE: rotations of more than two channels at a time, by trained generators that commute."""

import math

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.blocks import block_width, skew_matrices, turn_blocks
from pebench.encodings.positions import in_32_bit, in_64_bit
from pebench.encodings.registry import register


@register("com-rope")
class CommutingRotaryEncoding(PositionalEncoding):
    """Commuting rotary embedding (ComRoPE-LD): exp(sum of x_a t_a G), G a trained skew matrix, t_a a factor per axis.

    The matrices are block-diagonal, each layer and head with its own. As the axes share G, their rotations commute, and
    a logit depends on differences of positions alone, which with ``lie-re`` on grids it does only nearly. x is the
    position as a share of the trained extent.

    Args:
        spec: Sizes of the model.
        block: Width of the blocks, a divisor of ``head_dim``; ``None`` takes the largest divisor from 2 to 8.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If the block does not divide ``head_dim`` or is below 2.

    Source:
        Yu et al. 2025, "ComRoPE", section 4 (ComRoPE-LD), https://arxiv.org/abs/2506.03737; factors for each block, and
        initial variances, from the authors' code (model.py).

    Differs from the paper:
        1. Position i is i/n, with n the trained size. In the authors' code it is (i + 1/2)/n, which is the same but
           for a shift, and n is the size of the image at hand: a larger image has the same range of angles there, and
           a wider one here. There training also moves patches a little, at random.
        2. Entries are drawn below the diagonal, with the variance 2 of a difference of two.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(4, 4), causal=False)
        >>> encoding = CommutingRotaryEncoding(spec)
        >>> _ = encoding.entries.data.fill_(2.0)
        >>> _ = encoding.factors.data.copy_(torch.tensor([[[1.0], [3.0]]]))  # 1/2 radian per row, 3/2 per column
        >>> ones = torch.ones(1, 1, 1, 2)  # cos 5 - sin 5, sin 5 + cos 5
        >>> encoding.query_key(ones, ones, ones, encoding.prepare(torch.tensor([[1.0, 3.0]])), layer=0)[0].detach()
        tensor([[[[ 1.2426, -0.6753]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad R_p = \exp\left(\sum_a x_a t_a "
        r"G\right), \quad x_a = \frac{p_a}{L_a}, \quad G^\top = -G"
    )
    cite = ("yu2025comrope",)
    relative = True
    size = (
        "num_layers * sum(head_dim // n * (num_axes + num_heads * (n * (n - 1) // 2)) for n in "
        "range(max(n for n in range(2, min(8, head_dim) + 1) if head_dim % n == 0), "
        "max(n for n in range(2, min(8, head_dim) + 1) if head_dim % n == 0) + 1))"
    )
    paper = ("relative",)
    paper_size = 226  # 2 layers x (4 heads x a skew matrix of 8 x 8, and a factor)

    def __init__(self, spec: EncodingSpec, *, block: int | None = None) -> None:
        super().__init__(spec)
        self.block = block_width("com-rope", spec, block)
        blocks, entries = spec.head_dim // self.block, self.block * (self.block - 1) // 2
        self.entries = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads, blocks, entries))
        self.factors = nn.Parameter(torch.empty(spec.num_layers, spec.num_axes, blocks))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the entries below the diagonal from N(0, 2), and the factors from N(0, 1)."""
        nn.init.normal_(self.entries, std=math.sqrt(2))
        nn.init.normal_(self.factors)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the positions over the extent: (L, P), 64-bit, as angles at far positions need it."""
        wide = in_64_bit(positions)
        return wide / torch.tensor(self.spec.extent, device=wide.device, dtype=wide.dtype)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys alike."""
        rotation = self._rotations(state, layer)
        return turn_blocks(q, rotation), turn_blocks(k, rotation)

    def _rotations(self, state: Tensor, layer: int) -> Tensor:
        """Return a layer's rotation for every head and position: (H, L, K / block, block, block)."""
        # 64-bit up to the exponential: the angles of far positions are large
        entries, factors = self.entries[layer].to(state), self.factors[layer].to(state)
        turns = (state.unsqueeze(-1) * factors).sum(dim=1)  # (L, P, 1) times (P, K / block) to (L, K / block)
        skew = skew_matrices(entries, self.block)  # (H, K / block, block, block)
        # (L, K / block, 1, 1) times (H, 1, K / block, block, block)
        return in_32_bit(torch.linalg.matrix_exp(turns[..., None, None] * skew.unsqueeze(1)), self.entries.device)
