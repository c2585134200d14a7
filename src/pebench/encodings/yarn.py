"""YaRN: slow rotations stretch with the text, fast ones stay, and attention is sharpened."""

import math

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.ntk_rope import NtkRotaryEncoding
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register


@register("yarn")
class YarnEncoding(NtkRotaryEncoding):
    """Rotary embedding that interpolates by parts (YaRN), in a text s times the trained length.

    Pairs that turn less than once over the trained length are slowed down by s; those that turn more
    than 32 times keep their frequency; in between, the slow-down falls linearly with the pair's number. The fastest
    pair always keeps its frequency, even on an axis of six positions or fewer, over which it turns less than once.
    Queries and keys are multiplied by 0.1 ln s + 1. Up to the trained length s is 1, and this is ``rope``.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        factor: s, the same for all lengths; ``None`` takes each text's own (dynamic).
        fast: Turns over the trained length from which on a pair keeps its frequency.
        slow: Turns over the trained length up to which a pair is slowed down fully.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, the factor is below 1, ``theta`` is not above 1, ``slow``
            is not positive, or ``fast`` is below it.

    Source:
        Peng et al. 2023, "YaRN", sections 3.2 to 3.4, https://arxiv.org/abs/2309.00071.

    Differs from the paper:
        1. Between fast and slow the slow-down is linear in the pair's number, with limits rounded outwards, as in the
           authors' code and all that follows it; in equation 18 it is linear in the number of turns.
        2. On grids each axis has its own s, and queries and keys are multiplied by the factor of the largest.
        3. With the dynamic s, the padding of a text past the trained length counts as the text.

    Example:
        >>> spec = EncodingSpec(d_model=16, num_heads=1, num_layers=1, extent=(200,), causal=True)
        >>> encoding = YarnEncoding(spec, factor=4.0)
        >>> encoding.frequencies(axis=0, length=200)[:5] * 10000 ** (torch.arange(5) / 8)
        tensor([1.0000, 0.8125, 0.6250, 0.4375, 0.2500], dtype=torch.float64)
    """

    formula = (
        r"\ell_{ij} = (0.1 \ln s + 1)^2\,\frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad \omega_c = "
        r"\theta^{-c/n} \left(1 - \gamma_c + \frac{\gamma_c}{s}\right)"
    )
    cite = ("peng2024yarn",)
    mark = 45
    paper = ("relative",)
    paper_size = 0

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        theta: float | None = None,
        factor: float | None = None,
        fast: float = 32.0,
        slow: float = 1.0,
    ) -> None:
        super().__init__(spec, theta=theta, factor=factor)
        if self.theta <= 1:  # else later pairs would not be slower
            raise ValueError(f"theta of encoding {self.name!r} must be above 1, got {self.theta}")
        check_positive(self.name, fast=fast, slow=slow)
        if fast < slow:
            raise ValueError(f"fast of encoding {self.name!r} must be at least slow = {slow}, got {fast}")
        self.fast, self.slow = fast, slow

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the frequencies of ``rope``, the slow ones divided by s."""
        pair = torch.arange(self.pairs, dtype=torch.float64, device="cpu")
        first = max(0, math.floor(self._pair_of(self.fast, axis)))
        # limits as in the authors' find_correction_range, K - 1 = 2n - 1 included, though pairs end at n - 1
        last = min(2 * self.pairs - 1, math.ceil(self._pair_of(self.slow, axis)))
        # the two limits may coincide on a short axis: then a step at `first`, not 0 / 0
        slowed = ((pair - first) / max(last - first, 1e-3)).clamp(0, 1)
        return self.theta ** (-pair / self.pairs) * (1 - slowed + slowed / self.stretch(axis, length))

    def _pair_of(self, turns: float, axis: int) -> float:
        """Return the number of the pair, a fraction, that turns so often over the trained length."""
        return self.pairs * math.log(self.spec.extent[axis] / (turns * 2 * math.pi)) / math.log(self.theta)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of every pair's angle, times the factor of queries and keys: (L, K/2) each."""
        cos, sin = super().prepare(positions)
        spans = (positions.amax(dim=0) - positions.amin(dim=0) + 1).tolist()
        # the paper's sqrt(1/t), for queries and keys alike: logits grow by its square; in the tables it costs nothing
        growth = 0.1 * math.log(max(self.stretch(axis, span) for axis, span in enumerate(spans))) + 1
        return growth * cos, growth * sin
