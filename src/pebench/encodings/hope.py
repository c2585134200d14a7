"""HoPE: RoPE without the rotations that complete no full turn within the trained length."""

import math

from torch import Tensor

from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding


@register("hope")
class HighFrequencyRotaryEncoding(RotaryEncoding):
    """Rotary embedding whose pairs turn only if their wavelength is within the trained length (HoPE).

    A slower pair does not reach all its angles in training, so that a longer text brings new ones; here it
    stands still and carries content.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        interleaved: As for ``rope``.
        pairing: As for ``rope``.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, or ``theta`` is not positive.

    Source:
        Chen et al. 2024, "HoPE", section 4, https://arxiv.org/abs/2410.21216.

    Differs from the paper:
        1. On grids every axis has its own limit; the paper is on text.
        2. The fastest pair turns even with fewer than 7 trained positions, where no pair would turn otherwise.

    Example:
        >>> from pebench.encodings import EncodingSpec
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(70,), causal=True)
        >>> HighFrequencyRotaryEncoding(spec).frequencies(axis=0, length=8)  # wavelengths 6 and 63; 628, 6283
        tensor([1.0000, 0.1000, 0.0000, 0.0000], dtype=torch.float64)
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad \omega_c = \begin{cases} "
        r"\theta^{-c/n} & 2 \pi\,\theta^{c/n} \le L \\ 0 & \text{else} \end{cases}"
    )
    cite = ("chen2024hope",)
    mark = 18
    paper = ("relative",)
    paper_size = 0

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the frequencies of ``rope``, with 0 for the slow pairs."""
        usual = super().frequencies(axis, length)
        turns = 2 * math.pi / usual <= self.spec.extent[axis]
        turns[0] = True  # else a short axis would have no position at all
        return usual * turns
