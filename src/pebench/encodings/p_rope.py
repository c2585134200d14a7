"""p-RoPE: RoPE without its slowest rotations."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding


@register("p-rope")
class TruncatedRotaryEncoding(RotaryEncoding):
    """Rotary embedding whose slowest pairs stand still (p-RoPE): they carry content over any distance.

    Unlike here, ``partial-rope`` keeps all wavelengths, over fewer channels.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        p: Share of the pairs that turn, the fastest ones, in (0, 1]; rounded down to whole pairs, but at least one.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, ``theta`` is not positive, or p is outside (0, 1].

    Source:
        Barbero et al. 2024, "Round and Round We Go!", section 6.1, https://arxiv.org/abs/2410.06205.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> TruncatedRotaryEncoding(spec).frequencies(axis=0, length=8)
        tensor([1.0000, 0.1000, 0.0100, 0.0000], dtype=torch.float64)
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad \omega_c = \begin{cases} "
        r"\theta^{-c/n} & c < \mathrm{p} \cdot n \\ 0 & \text{else} \end{cases}"
    )
    cite = ("barbero2025round",)
    mark = 26
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, p: float = 0.75) -> None:
        super().__init__(spec, theta=theta)
        if not 0 < p <= 1:
            raise ValueError(f"p of encoding 'p-rope' must be in (0, 1], got {p}")
        self.turning = max(1, int(p * self.pairs))

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the frequencies of ``rope``, with 0 for the slowest pairs."""
        return super().frequencies(axis, length) * (torch.arange(self.pairs, device="cpu") < self.turning)
