"""Partial RoPE: rotations of some channels of queries and keys, which leave the others to content."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding, rotate


@register("partial-rope")
class PartialRotaryEncoding(RotaryEncoding):
    """Rotary embedding of the first r channels of a head; the others know nothing of position.

    The frequencies are those of a head of r channels: they span the same range in fewer steps.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        fraction: Share of the channels that turn, in (0, 1]; r is rounded down to a multiple of 2P, but at least 2P.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P, ``theta`` is not positive, or ``fraction`` not in (0, 1].

    Source:
        Black et al. 2022, "GPT-NeoX-20B", section 2.1.1, https://arxiv.org/abs/2204.06745: a quarter.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = PartialRotaryEncoding(spec)
        >>> ones = torch.ones(1, 1, 1, 8)
        >>> encoding.query_key(ones, ones, ones, encoding.prepare(torch.tensor([[1.0]])), layer=0)[0]
        tensor([[[[-0.3012,  1.3818,  1.0000,  1.0000,  1.0000,  1.0000,  1.0000,
                    1.0000]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i^{1:r}) \cdot (R_{p_j} k_j^{1:r}) + q_i^{r+1:K} \cdot "
        r"k_j^{r+1:K}}{\sqrt{K}}"
    )
    cite: ClassVar[tuple[str, ...]] = ("black2022gptneox",)
    mark = 27
    paper: ClassVar[tuple[str, ...]] = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, fraction: float = 0.25) -> None:
        super().__init__(spec, theta=theta)
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction of encoding {self.name!r} must be in (0, 1], got {fraction}")
        # frequencies of the base class follow from `pairs`: fewer pairs span the same range
        self.pairs = max(1, int(fraction * self.pairs))
        self.channels = 2 * spec.num_axes * self.pairs

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate the first channels of queries and keys."""
        return self._turn(q, state), self._turn(k, state)

    def _turn(self, heads: Tensor, state: Any) -> Tensor:
        turned = rotate(heads[..., : self.channels], *state)
        return torch.cat((turned, heads[..., self.channels :]), dim=-1)
