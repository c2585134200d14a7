"""RoPE: rotate queries and keys by an angle proportional to their position."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive, in_32_bit, in_64_bit
from pebench.encodings.registry import register


@register("rope")
class RotaryEncoding(PositionalEncoding):
    r"""Rotary embedding (RoPE) of queries and keys, axial over the position axes.

    A head's K channels form K/2 pairs, n = K / 2P for each axis. Pair i of an axis turns by
    the angle p · theta^(-i/n), p the token's position on that axis, so that a logit depends on
    differences of positions alone. Channel c is paired with channel c + K/2 (the half-split layout of
    GPT-NeoX and Llama checkpoints; the paper's pairs are neighbours: the same up to a permutation of
    channels, which makes no difference to a model trained from the start).

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies, dimensionless; ``None`` takes the papers' values, 10000 for one
            axis and 100 for more.
        interleaved: On grids deal out one range of frequencies to the axes in turn, so that no two axes have the same;
            else each axis has all of them.
        pairing: Channels of a pair: ``halves``, c and c + K/2, or ``neighbours``, 2c and 2c + 1, as in the paper and in
            checkpoints of GPT-J and of Meta's own Llama.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, ``theta`` is not positive, or there is no such ``pairing``.

    Source:
        Su et al. 2021, "RoFormer", section 3.2, https://arxiv.org/abs/2104.09864; the axial form with
        theta 100, Heo et al. 2024, https://arxiv.org/abs/2403.13298; interleaved axes, Huang et al. 2025, "Revisiting
        Multimodal Positional Encoding in Vision-Language Models", section 3, https://arxiv.org/abs/2510.23095.

    Differs from the paper:
        1. The layout above; and on grids rows come first, where the authors have columns first.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = RotaryEncoding(spec)
        >>> ones = torch.ones(1, 1, 1, 4)
        >>> encoding.query_key(ones, ones, ones, encoding.prepare(torch.tensor([[1.0]])), layer=0)[0]
        tensor([[[[-0.3012,  0.9900,  1.3818,  1.0099]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad R_p = "
        r"\mathrm{diag}\left(\rho(p\,\omega_0), \dots, \rho(p\,\omega_{n-1})\right), \quad \omega_c = "
        r"\theta^{-c/n}, \quad \rho(\alpha) = \begin{pmatrix} \cos \alpha & -\sin \alpha \\ \sin \alpha & \cos "
        r"\alpha \end{pmatrix}"
    )
    cite: ClassVar[tuple[str, ...]] = ("su2024roformer", "heo2024rotary")
    aliases: ClassVar[tuple[str, ...]] = ("axialrope", "roformer", "rope2d", "rotary", "rotation")
    mark = 4
    relative = True
    paper: ClassVar[tuple[str, ...]] = ("relative",)
    paper_size = 0

    def __init__(
        self, spec: EncodingSpec, *, theta: float | None = None, interleaved: bool = False, pairing: str = "halves"
    ) -> None:
        super().__init__(spec)
        self.interleaved, self.neighbours = interleaved, pairing == "neighbours"
        if pairing not in ("halves", "neighbours"):
            raise ValueError(f"pairing of encoding {self.name!r} must be halves or neighbours, got {pairing!r}")
        if spec.head_dim % (2 * spec.num_axes):
            raise ValueError(
                f"encoding {self.name!r} needs a head width that is a multiple of {2 * spec.num_axes} for "
                f"{spec.num_axes} position axes, got {spec.head_dim}"
            )
        self.theta = theta if theta is not None else (10000.0 if spec.num_axes == 1 else 100.0)
        check_positive(self.name, theta=self.theta)
        self.pairs = spec.head_dim // (2 * spec.num_axes)

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the angles by which the pairs of an axis turn from one position to the next.

        Args:
            axis: The axis.
            length: Positions that the text spans on it; unused here, but by forms of RoPE that stretch.

        Returns:
            (n,) radians, 64-bit, on the CPU.
        """
        pair = torch.arange(self.pairs, dtype=torch.float64, device="cpu")
        # number c of all pairs of a head is pair c // P of axis c % P: a fraction of a step further on
        pair = pair + axis / self.spec.num_axes if self.interleaved else pair
        return self.theta ** (-pair / self.pairs)

    def prepare(self, positions: Tensor) -> Any:
        """Return cosine and sine of every pair's angle: (L, K/2) each, 32-bit."""
        # read by the forms of RoPE that stretch with the text; padding counts, as nothing here knows of it
        spans = (positions.amax(dim=0) - positions.amin(dim=0) + 1).tolist()
        table = torch.stack([self.frequencies(axis, span) for axis, span in enumerate(spans)])  # (P, n)
        wide = in_64_bit(positions)  # 32-bit angles are off by half a thousandth at position 10,000
        angles = (wide.unsqueeze(-1) * table.to(wide.device)).flatten(1)  # (L, P, n) to (L, K/2)
        return in_32_bit(angles.cos(), positions.device), in_32_bit(angles.sin(), positions.device)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys alike."""
        if not self.neighbours:
            return rotate(q, *state), rotate(k, *state)
        # to halves, there and back: (..., K) as (..., K/2, 2) and as (..., 2, K/2)
        q, k = (rotate(heads.unflatten(-1, (-1, 2)).mT.flatten(-2), *state) for heads in (q, k))
        return q.unflatten(-1, (2, -1)).mT.flatten(-2), k.unflatten(-1, (2, -1)).mT.flatten(-2)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the channel pairs (c, c + K/2) of x (..., L, K) by angles given as (L, K/2); 32-bit inside."""
    # cos and sin are 32-bit, so products with 16-bit heads are too; the cast back comes after the sum
    x = x.contiguous()  # products of whole rows that lie in sequence take half the time of those of half rows
    turned = x * torch.cat((cos, cos), dim=-1)
    turned += x.roll(x.shape[-1] // 2, -1) * torch.cat((-sin, sin), dim=-1)  # in place: one array less at the peak
    return turned.to(x.dtype)
