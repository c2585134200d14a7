"""p-RoPE: RoPE without its slowest rotations."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding


@register("p-rope")
class TruncatedRotaryEncoding(RotaryEncoding):
    """Rotary embedding whose slowest pairs stand still (p-RoPE): they carry content over any distance.

    Not the same as ``partial-rope``, which keeps all wavelengths and gives each fewer channels.

    Args:
        spec: The model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        p: Share of the pairs that turn, the fastest, in (0, 1]; rounded down, one at least.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, ``theta`` is not positive, or p is none.

    Source:
        Barbero et al. 2024, "Round and Round We Go!", section 6.1, https://arxiv.org/abs/2410.06205.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> TruncatedRotaryEncoding(spec).frequencies(axis=0, length=8)
        tensor([1.0000, 0.1000, 0.0100, 0.0000], dtype=torch.float64)
    """

    cite = ("barbero2025round",)

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, p: float = 0.75) -> None:
        super().__init__(spec, theta=theta)
        if not 0 < p <= 1:
            raise ValueError(f"p of encoding 'p-rope' must be in (0, 1], got {p}")
        self.turning = max(1, int(p * self.pairs))

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Those of ``rope``, the slowest of them 0."""
        return super().frequencies(axis, length) * (torch.arange(self.pairs) < self.turning)
