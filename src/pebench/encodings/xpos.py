"""xPos: RoPE whose logits also decay with distance, fastest for the pairs that turn fastest."""

from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.positions import check_positive, in_32_bit, in_64_bit
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding, rotate


@register("xpos")
class XposEncoding(RotaryEncoding):
    """Rotary embedding with a decay of each pair: its share of a logit is weighed by zeta^(distance / scale_base).

    zeta = (2i/K + 0.4) / 1.4 for pair i. The decay is split between the query, which shrinks with its position, and the
    key, which grows; it only makes sense towards the past. In a text of more than 140 times ``scale_base`` tokens the
    two leave the range of 32-bit numbers.

    Args:
        spec: Sizes of the model; ``head_dim`` must be even.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        scale_base: Distance over which a pair decays to its zeta, in tokens.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: For an odd ``head_dim``, a ``theta`` or ``scale_base`` that is not positive, a grid or a
            bidirectional model.

    Source:
        Sun et al. 2022, "A Length-Extrapolatable Transformer", algorithm 1,
        https://arxiv.org/abs/2212.10554.

    Differs from the paper:
        1. Positions count from the middle of the text, which cancels in the logits and keeps both halves
           of the decay near 1; public implementations do likewise.
        2. On texts longer than trained the paper also attends in blocks; here a token attends to all earlier ones.

    Example:
        >>> import math
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = XposEncoding(spec, scale_base=1.0)
        >>> ones = torch.ones(1, 1, 2, 2)
        >>> q, k = encoding.query_key(ones, ones, ones, encoding.prepare(torch.tensor([[0.0], [1.0]])), layer=0)
        >>> round((q[0, 0, 1] @ k[0, 0, 0]).item() / (2 * math.cos(1.0)), 4)  # 0.4 / 1.4
        0.2857
    """

    formula = (
        r"\ell_{ij} = \frac{1}{\sqrt{K}} \sum_{c=0}^{n-1} \zeta_c^{(i - j)/\text{scale_base}} "
        r"\left(\rho(p_i\,\omega_c)\,q_i^c\right) \cdot \left(\rho(p_j\,\omega_c)\,k_j^c\right), \quad \zeta_c "
        r"= \frac{2c/K + 0.4}{1.4}"
    )
    cite = ("sun2023length",)
    mark = 44
    axes = (1,)
    causal_only = True
    kv_cache = "goes stale"  # positions count from the middle of the text
    paper = ("relative", "causal_only", "text")
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, scale_base: float = 512.0) -> None:
        super().__init__(spec, theta=theta)
        check_positive(self.name, scale_base=scale_base)
        self.scale_base = scale_base

    def prepare(self, positions: Tensor) -> Any:
        """Return cosine and sine of every pair's angle, times the query's decay and the key's: (L, K/2) each."""
        cos, sin = super().prepare(positions)
        # any origin gives the same logits, as it cancels in q·k; padding counts, as nothing here knows of it
        middle = (positions.amax(dim=0) + positions.amin(dim=0)) / 2
        wide = in_64_bit(positions - middle)
        zeta = (torch.arange(self.pairs, device=wide.device, dtype=wide.dtype) / self.pairs + 0.4) / 1.4
        decay = in_32_bit(zeta ** (wide / self.scale_base), positions.device)
        return cos * decay, sin * decay, cos / decay, sin / decay

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys, shrink queries and grow keys with their position."""
        return rotate(q, *state[:2]), rotate(k, *state[2:])
