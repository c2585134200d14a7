"""Scalable softmax: logits that grow with the logarithm of the number of tokens that a query sees."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper

State = tuple[Any, Tensor]
"""The other encoding's state, and the logarithm of the number of tokens that each query sees: (L,) or (B, L)."""


@register("ssmax")
class ScalableSoftmaxEncoding(Wrapper):
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

    def prepare(self, positions: Tensor) -> State:
        """Return what the other encoding prepares, and log n of every query: (L,)."""
        return self.inner.prepare(positions), self._log_seen(torch.ones_like(positions[:, 0]))

    def forward(self, state: State) -> State:
        """Return the other encoding's state, and log n."""
        return self.inner(state[0]), state[1]

    def padded(self, state: State, valid: Tensor) -> State:
        """Return the other encoding's state, and log n without padding: (B, L)."""
        return self.inner.padded(state[0], valid), self._log_seen(valid)

    def _log_seen(self, valid: Tensor) -> Tensor:
        """Return log n of every query, given which tokens count: (..., L) to the same shape."""
        count = valid.float().cumsum(dim=-1)
        seen = count if self.spec.causal else count[..., -1:].expand_as(count)
        return seen.clamp(min=1).log()

    def embed(self, x: Tensor, state: State) -> Tensor:
        """Return the other encoding's input."""
        return self.inner.embed(x, state[0])

    def residual(self, x: Tensor, valid: Tensor | None, state: State, layer: int) -> Tensor:
        """Return the other encoding's residual stream."""
        return self.inner.residual(x, valid, state[0], layer)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: State, layer: int) -> tuple[Tensor, Tensor]:
        """Return the other encoding's queries and keys, the queries times s log n."""
        q, k = self.inner.query_key(q, k, x, state[0], layer)
        factor = self.scale[layer].float()[:, None] * state[1][..., None, :]  # (H, L), or (B, H, L)
        return q * factor.unsqueeze(-1).to(q.dtype), k

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: State, layer: int) -> Tensor | None:
        """Return the other encoding's bias."""
        return self.inner.bias(q, k, x, state[0], layer)

    def value(self, v: Tensor, x: Tensor, state: State, layer: int) -> Tensor:
        """Return the other encoding's values."""
        return self.inner.value(v, x, state[0], layer)

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: State, layer: int) -> Tensor:
        """Return the other encoding's output of heads."""
        return self.inner.output(o, v, x, state[0], layer)
