"""RoPE-Mixed: rotations with trained frequencies, each a vector over the two axes."""

import math

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.encodings.rope import rotate


@register("rope-mixed")
class RopeMixedEncoding(PositionalEncoding):
    """Rotary embedding on grids with trained frequencies: pair c of a head turns by f_c · (row, column).

    A pair can so turn along diagonals, while ``rope`` gives each pair one axis. Every head of every layer has its own
    frequencies.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 4.
        theta: Base of the initial frequencies, dimensionless.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 4, ``theta`` not positive, or for positions with one axis.

    Source:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", section 3.2,
        https://arxiv.org/abs/2403.13298; the initialisation from the authors' code.

    Differs from the paper:
        1. The layout of the pairs, and rows come first, see ``rope``.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8, 8), causal=False)
        >>> encoding = RopeMixedEncoding(spec)
        >>> _ = encoding.frequencies.data.copy_(torch.tensor([[[[1.0, 0.0]], [[0.5, 2.0]]]]))  # rows', columns'
        >>> ones = torch.ones(1, 1, 1, 4)  # pairs turn by 1 · 1 + 2 · 0.5 = 2 and 1 · 0 + 2 · 2 = 4
        >>> encoding.query_key(ones, ones, ones, encoding.prepare(torch.tensor([[1.0, 2.0]])), layer=0)[0].detach()
        tensor([[[[-1.3254,  0.1032,  0.4932, -1.4104]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad R_p = "
        r"\mathrm{diag}\left(\rho(f_1 \cdot p), \dots, \rho(f_{K/2} \cdot p)\right), \quad f_c \in "
        r"\mathbb{R}^2"
    )
    cite = ("heo2024rotary",)
    mark = 33
    axes = (2,)
    relative = True
    size = "num_layers * num_heads * head_dim"
    paper = ("relative", "images")
    paper_size = 64  # 2 layers x 4 heads x 4 frequencies of two axes

    def __init__(self, spec: EncodingSpec, *, theta: float = 10.0) -> None:
        super().__init__(spec)
        if spec.head_dim % 4:
            raise ValueError(f"encoding 'rope-mixed' needs a head width that is a multiple of 4, got {spec.head_dim}")
        check_positive(self.name, theta=theta)
        self.theta = theta
        self.frequencies = nn.Parameter(torch.empty(spec.num_layers, 2, spec.num_heads, spec.head_dim // 2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw two perpendicular directions for each head; the lengths are the frequencies of axial RoPE."""
        quarter = self.spec.head_dim // 4
        lengths = self.theta ** (-torch.arange(quarter, dtype=torch.float32) / quarter)
        turn = 2 * math.pi * torch.rand(self.spec.num_layers, self.spec.num_heads, 1, dtype=torch.float32)
        # rows first: (sin t, cos t) and (cos t, -sin t) are perpendicular; N layers
        first = torch.stack((turn.sin() * lengths, turn.cos() * lengths), dim=1)  # (N, 2, H, K/4)
        second = torch.stack((turn.cos() * lengths, -turn.sin() * lengths), dim=1)
        with torch.no_grad():
            self.frequencies.copy_(torch.cat((first, second), dim=-1))

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys alike."""
        rows, columns = self.frequencies[layer].float().unsqueeze(-2)  # (H, 1, K/2)
        # products of elements, not a matrix product, which autocast would compute in 16 bit
        angles = state[:, :1] * rows + state[:, 1:] * columns  # (L, 1) times (H, 1, K/2) to (H, L, K/2)
        cos, sin = angles.cos(), angles.sin()
        return rotate(q, cos, sin), rotate(k, cos, sin)
