"""Spiral RoPE: rotations on grids along several fixed directions, not rows and columns alone."""

import math

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.positions import in_32_bit, in_64_bit
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding


@register("spiral-rope")
class SpiralRotaryEncoding(RotaryEncoding):
    """Rotary embedding on grids whose pairs are dealt out to several directions, evenly spread over half a circle.

    ``rope`` gives half of the frequencies to rows and the same half to columns. Here pair j of either half turns by the
    position along a direction that is j mod (directions/2) steps of 180° / directions further on. Nothing is trained:
    the control of ``rope-mixed``. With two directions this is ``rope``.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 4.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        directions: Number of directions, an even one; at most half of ``head_dim``.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 4, ``theta`` not positive, ``directions`` odd, below 2 or above
            half of ``head_dim``, or for positions with one axis.

    Source:
        Liu et al. 2026, "Spiral RoPE", section 3, https://arxiv.org/abs/2602.03227, with frequencies of each
        direction's own, and four directions, as in the authors' code (RoPE_DeiT/rope.py and its README).

    Differs from the paper:
        1. Neighbouring frequencies go to different directions; in the authors' code they go there in twos.
        2. The position along a direction is exact. The authors' code takes it from a turned picture of positions, whose
           corners it fills with the nearest edge.
        3. The frequencies are those of ``rope``, from 1 down with base 100; the authors' go from 1.5 down with base
           10,000, so that half of their pairs hardly turn.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8, 8), causal=False)
        >>> encoding = SpiralRotaryEncoding(spec, theta=4.0)
        >>> cos, sin = encoding.prepare(torch.tensor([[2.0, 4.0]]))  # 2, 6 / sqrt(2) / 2, 4, 2 / sqrt(2) / 2
        >>> torch.atan2(sin, cos)[0]  # 4 - 2 pi is -2.2832
        tensor([ 2.0000,  2.1213, -2.2832,  0.7071])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad R_p = "
        r"\mathrm{diag}\left(\rho(\omega_j\, p \cdot d(\phi_{aj}))\right), \quad \phi_{aj} = \frac{\pi}{2} a + "
        r"\frac{\pi}{m} \left(j \bmod \frac{m}{2}\right), \quad d(\phi) = (\cos \phi, \sin \phi), \quad \omega_j = "
        r"\theta^{-j/n}"
    )
    cite = ("liu2026spiral",)
    aliases = ("spiral",)
    axes = (2,)
    paper = ("relative", "images")
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, directions: int = 4) -> None:
        super().__init__(spec, theta=theta)
        if directions < 2 or directions % 2 or directions > 2 * self.pairs:
            raise ValueError(
                f"directions of encoding 'spiral-rope' must be even and from 2 to half of the head width "
                f"{spec.head_dim}, got {directions}"
            )
        self.directions = directions

    def prepare(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of every pair's angle: (L, K/2) each, 32-bit."""
        pair = torch.arange(self.pairs, dtype=torch.float64, device="cpu")
        first = math.pi / self.directions * (pair % (self.directions // 2))  # of the half that `rope` gives to rows
        turns = torch.cat((first, first + math.pi / 2))  # (K/2,)
        vectors = self.frequencies(0, 0).repeat(2) * torch.stack((turns.cos(), turns.sin()))  # (2, K/2), rows first
        wide = in_64_bit(positions)
        angles = wide @ vectors.to(wide.device)  # (L, 2) times (2, K/2)
        return in_32_bit(angles.cos(), positions.device), in_32_bit(angles.sin(), positions.device)
