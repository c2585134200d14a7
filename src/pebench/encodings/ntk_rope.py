"""NTK-aware RoPE: the base grows with the text, so that slow rotations stretch and fast ones stay."""

from typing import ClassVar

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding


@register("ntk-rope")
class NtkRotaryEncoding(RotaryEncoding):
    """Rotary embedding whose base is theta · s^(n/(n-1)), n pairs per axis, in a text s times the trained length.

    The slowest pair is slowed down by s and the fastest not at all. Up to the trained length s is 1, and
    this is ``rope``.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        factor: s, the same for all lengths; ``None`` takes each text's own (dynamic NTK).

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, ``theta`` is not positive, or the factor is below 1.

    Source:
        bloc97 2023, "NTK-Aware Scaled RoPE", as equation 16 of Peng et al. 2023 (YaRN),
        https://arxiv.org/abs/2309.00071; dynamic in appendix B.3 there.

    Differs from the paper:
        1. On grids each axis has its own s; on text there is no difference.
        2. With the dynamic s, a token's vectors depend on the length of the text, padding counted, where that exceeds
           the trained length.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> NtkRotaryEncoding(spec).frequencies(axis=0, length=16) / RotaryEncoding(spec).frequencies(0, 16)
        tensor([1.0000, 0.7937, 0.6300, 0.5000], dtype=torch.float64)
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad \omega_c = "
        r"\left(\theta\,s^{n/(n-1)}\right)^{-c/n}, \quad s = \max\left(1, \frac{\text{length of the "
        r"text}}{L}\right)"
    )
    cite: ClassVar[tuple[str, ...]] = ("bloc972023ntk", "peng2024yarn")
    aliases = ("dynamicntk", "ntk", "ntkaware")
    mark = 25
    kv_cache = "goes stale"  # frequencies follow the length of the text, without a factor
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, factor: float | None = None) -> None:
        super().__init__(spec, theta=theta)
        if factor is not None and not factor >= 1:  # this way NaN is refused too
            raise ValueError(f"factor of encoding {self.name!r} must be 1 or more, got {factor}")
        self.factor = factor
        if factor:
            self.kv_cache = "works"

    def stretch(self, axis: int, length: float) -> float:
        """Return s: the length of an axis over its trained length, 1 at least, or the fixed ``factor``."""
        # a factor is 1 at least, so that only None is false here
        return self.factor or max(1.0, length / self.spec.extent[axis])

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the frequencies of ``rope``, slowed down by 1 for the fastest pair to s for the slowest."""
        # times s^(-i/(n-1)) is the same as the paper's base theta * s^(n/(n-1)); a lone pair counts as the fastest
        steps = torch.arange(self.pairs, dtype=torch.float64, device="cpu") / max(1, self.pairs - 1)
        return super().frequencies(axis, length) * self.stretch(axis, length) ** -steps
