"""PoPE: content is the magnitude of a channel, position its phase."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive, in_32_bit, in_64_bit
from pebench.encodings.registry import register


@register("pope")
class PolarEncoding(PositionalEncoding):
    """Polar embedding (PoPE): logits sum_c softplus(q_c) softplus(k_c) cos(offset · theta^(-c/K) + delta_c).

    The offset is the key's position minus the query's. RoPE turns pairs of channels, whose content has a
    phase of its own; here all of a channel's phase is position. Each head has its own delta, shared by all layers.

    Args:
        spec: Sizes of the model.
        theta: Base of the frequencies, dimensionless.

    Shape:
        query_key: q and k (B, H, L, K) to (B, H, L, 2K).

    Raises:
        ValueError: If ``theta`` is not positive, or for a grid.

    Source:
        Gopalakrishnan et al. 2025, "Decoupling the 'What' and 'Where' With Polar Coordinate Positional
        Embeddings", section 3, https://arxiv.org/abs/2509.10534.

    Differs from the paper:
        1. Delta is not kept in [-2π, 0]: a full turn changes no phase, and delta starts at 0, the limit, where a clamp
           has no gradient.
        2. All layers share delta, as in x-transformers; in the paper each layer seems to have its own.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = PolarEncoding(spec)
        >>> x = torch.zeros(1, 1, 2, 1)  # softplus of 0 is log 2
        >>> q, k = encoding.query_key(x, x, x, encoding.prepare(torch.tensor([[0.0], [1.0]])), layer=0)
        >>> (q @ k.mT)[0, 0, 1].detach() / math.log(2) ** 2  # cos 1, cos 0
        tensor([0.5403, 1.0000])
    """

    formula = (
        r"\ell_{ij} = \frac{1}{\sqrt{K}} \sum_{c=0}^{K-1} \mathrm{softplus}(q_{ic})\,\mathrm{softplus}(k_{jc}) "
        r"\cos\left((j - i)\,\theta^{-c/K} + \delta_c\right)"
    )
    cite = ("gopalakrishnan2025decoupling",)
    mark = 28
    axes = (1,)
    relative = True
    size = "num_heads * head_dim"
    paper = ("relative", "text")
    paper_size = 32  # 4 heads x 8 channels

    def __init__(self, spec: EncodingSpec, *, theta: float = 10000.0) -> None:
        super().__init__(spec)
        check_positive(self.name, theta=theta)
        self.theta = theta
        self.delta = nn.Parameter(torch.empty(spec.num_heads, 1, spec.head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set delta to zero."""
        nn.init.zeros_(self.delta)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the phase of every channel, within one turn: (L, K)."""
        wide = in_64_bit(positions)
        channels = torch.arange(self.spec.head_dim, device=wide.device, dtype=wide.dtype)
        # reduced to one turn while in 64 bit: in 32 bit a phase of thousands of radians has lost digits of its fraction
        phases = wide * self.theta ** (-channels / self.spec.head_dim)
        return in_32_bit(phases % (2 * math.pi), positions.device)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Return queries and keys as vectors with content's magnitude and position's phase."""
        return polar(q, state), polar(k, state + self.delta.float())


def polar(x: Tensor, phase: Tensor) -> Tensor:
    """Return vectors of length softplus(x), x of shape (..., L, K), at a phase (L, K): (..., L, 2K), 32-bit inside."""
    length = F.softplus(x.float())
    return torch.cat((length * phase.cos(), length * phase.sin()), dim=-1).to(x.dtype)
