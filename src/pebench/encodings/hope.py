"""HoPE: RoPE without the rotations that the trained length never sees come full circle."""

import math

from torch import Tensor

from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding


@register("hope")
class HighFrequencyRotaryEncoding(RotaryEncoding):
    """Rotary embedding whose pairs turn only if their wavelength is within the trained length (HoPE).

    A slower pair has not been seen at all its angles in training, and is new to the model in a longer
    text; here it stands still and carries content.

    Args:
        spec: The model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, or ``theta`` is not positive.

    Source:
        Chen et al. 2024, "HoPE", section 4, https://arxiv.org/abs/2410.21216.

    Differs from the paper:
        1. On grids an axis has its own limit; the paper is on text.
        2. The fastest pair turns even where fewer than 7 positions are trained, or none would.

    Example:
        >>> from pebench.encodings import EncodingSpec
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(70,), causal=True)
        >>> HighFrequencyRotaryEncoding(spec).frequencies(axis=0, length=8)  # wavelengths 6 and 63; 628, 6283
        tensor([1.0000, 0.1000, 0.0000, 0.0000], dtype=torch.float64)
    """

    cite = ("chen2024hope",)

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Those of ``rope``, the slow ones 0; the fastest stays, lest a short axis tell nothing."""
        usual = super().frequencies(axis, length)
        turns = 2 * math.pi / usual <= self.spec.extent[axis]
        turns[0] = True
        return usual * turns
