"""Scalable softmax: logits that grow with the logarithm of the number of tokens that a query sees."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Companion


@register("ssmax")
class ScalableSoftmaxEncoding(Companion):
    """Another encoding with logits times s log n, n the number of tokens that a query sees (scalable softmax).

    s is trained for every head of every layer. Without the factor weights flatten as texts grow. Queries are
    multiplied, so a bias that does not read them stays as it is.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.

    Shape:
        As the other encoding's.

    Source:
        Nakanishi 2025, "Scalable-Softmax Is Superior for Attention", equation 2, https://arxiv.org/abs/2501.19399,
        without the term b.

    Differs from the paper:
        1. s begins so that s log n is 1 in the mean over the trained length, which is the paper's 0.168 at 1024.
        2. The paper multiplies all that softmax is given, and so another encoding's bias too.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(2,), causal=True)
        >>> encoding = ScalableSoftmaxEncoding(spec, of="none")
        >>> round(encoding.scale.item(), 4)  # 2 / (log 1 + log 2)
        2.8854
        >>> q = torch.ones(1, 1, 4, 2)
        >>> state = encoding.prepare(torch.arange(4.0)[:, None])
        >>> encoding.query_key(q, q, q, state, layer=0)[0][0, 0, :, 0].detach()  # 2 log n / log 2
        tensor([0.0000, 2.0000, 3.1699, 4.0000])
    """

    formula = (
        r"\ell_{ij} = s_h \log n_i \cdot \frac{q'_i \cdot k'_j}{\sqrt{K}} + b'_{ij}, \quad n_i = \text{number of "
        r"tokens that } i \text{ sees}"
    )
    cite = ("nakanishi2025scalable",)
    aliases = ("logn", "scalablesoftmax")
    paper = ("relative",)
    paper_size = 8  # a factor for each of 2 layers x 4 heads

    def __init__(self, spec: EncodingSpec, *, of: str = "rope") -> None:
        super().__init__(spec, of)
        self.scale = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every s to one over the mean of log n in training, or to 1 where a query sees itself alone."""
        most = self.spec.max_len
        mean = math.lgamma(most + 1) / most if self.spec.causal else math.log(most)  # lgamma(n + 1) is log n!
        nn.init.constant_(self.scale, 1 / mean if mean else 1.0)

    def parameter_count(self) -> int:
        """Return the number of parameters that the other encoding declares, and one for each head."""
        return super().parameter_count() + self.spec.num_layers * self.spec.num_heads

    def own(self, positions: Tensor) -> Tensor:
        """Return log n of every query: (L,)."""
        return self._log_seen(torch.ones_like(positions[:, 0]))

    def own_padded(self, own: Tensor, valid: Tensor) -> Tensor:
        """Return log n without padding: (B, L)."""
        return self._log_seen(valid)

    def _log_seen(self, valid: Tensor) -> Tensor:
        """Return log n of every query, given which tokens count: (..., L) to the same shape."""
        count = valid.float().cumsum(dim=-1)
        seen = count if self.spec.causal else count[..., -1:].expand_as(count)
        return seen.clamp(min=1).log()

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Return the other encoding's queries and keys, the queries times s log n."""
        q, k = super().query_key(q, k, x, state, layer)
        factor = self.scale[layer].float()[:, None] * state[1][..., None, :]  # (H, L), or (B, H, L)
        return q * factor.unsqueeze(-1).to(q.dtype), k
