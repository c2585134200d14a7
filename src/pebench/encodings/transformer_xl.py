"""Transformer-XL: queries compared with projected sinusoids of the distance, and two trained queries."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, by_blocks, unique_offsets
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.encodings.shaw import by_offset
from pebench.encodings.sinusoid import check_width, sinusoid


@register("transformer-xl")
class TransformerXlEncoding(PositionalEncoding):
    """Relative encoding of Transformer-XL: logits (q·k + q·Wr + u·k + v·Wr) / sqrt(K), r a sinusoid of the distance.

    Each layer has its own projection W and, for every head, its own u and v, as in XLNet.

    Args:
        spec: Sizes of the model; ``d_model`` must be even.
        base: Base of the wavelengths, dimensionless.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: For an odd ``d_model``, a ``base`` that is not positive, or a grid.

    Source:
        Dai et al. 2019, "Transformer-XL", section 3.3, https://arxiv.org/abs/1901.02860.

    Differs from the paper:
        1. There is the relative encoding alone, without the memory of earlier segments.
        2. Every layer has its own u and v; in the paper all layers share them.
        3. In a bidirectional model distances have a sign, as in XLNet.
        4. r has root mean square 1, the paper's 0.71. At first r weighs sqrt(2) times as much; W can absorb that.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = TransformerXlEncoding(spec)
        >>> for parameter, value in ((encoding.projection, torch.eye(2)), (encoding.u, 0.0), (encoding.v, 0.0)):
        ...     _ = parameter.data.copy_(torch.as_tensor(value))
        >>> q = torch.tensor([0.0, 1.0]).expand(1, 1, 2, 2)  # cos 1, cos 0; sqrt(2) and sqrt(K) cancel
        >>> encoding.bias(q, q, q, encoding.prepare(torch.arange(2.0)[:, None]), layer=0)[0, 0, 1].detach()
        tensor([0.5403, 1.0000])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j + q_i \cdot W s(i - j) + u \cdot k_j + v \cdot W s(i - j)}{\sqrt{K}}"
    cite = ("dai2019transformerxl",)
    aliases = ("txl",)
    mark = 42
    axes = (1,)
    relative = True
    size = "num_layers * (d_model * d_model + 2 * d_model)"
    paper = ("relative", "text")
    paper_size = 2176  # 2 layers x (a matrix of 32 x 32, u and v of 32)

    def __init__(self, spec: EncodingSpec, *, base: float = 10000.0) -> None:
        super().__init__(spec)
        check_width(spec.d_model, spec.num_axes, "d_model of encoding 'transformer-xl'")
        check_positive(self.name, base=base)
        self.base = base
        self.projection = nn.Parameter(torch.empty(spec.num_layers, spec.d_model, spec.d_model))
        self.u = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads, 1, spec.head_dim))
        self.v = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads, 1, spec.head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projection from N(0, 1/D), which keeps scales, and u and v from N(0, 0.02²), as the authors do."""
        nn.init.normal_(self.projection, std=self.spec.d_model**-0.5)
        nn.init.normal_(self.u, std=0.02)
        nn.init.normal_(self.v, std=0.02)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return sinusoids of the different distances (U, D), and which of them every pair has."""
        different, pairs = unique_offsets(positions)
        if self.spec.causal and (positions.diff(dim=0) >= 0).all():  # keys that are not masked lie in the past
            different = different[different[:, 0] <= 0]  # which are sorted: those to the past come first
        # the paper's distance is the query's position minus the key's
        return sinusoid(-different, self.spec.d_model, self.base), pairs

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Pairs], layer: int) -> Tensor | PairBias:
        """Return all terms but q·k."""
        waves, pairs = state
        keys = F.linear(waves.to(q.dtype), self.projection[layer].to(q.dtype))  # (U, D)
        keys = keys.unflatten(-1, (self.spec.num_heads, -1)).transpose(0, 1)  # (U, H, K) to (H, U, K)
        # term c, the same for all queries, stays one row: (B, H, 1, L) broadcasts
        content = (self.u[layer].to(k.dtype) * k).sum(dim=-1).unsqueeze(-2)  # (B, H, L, K) to (B, H, 1, L)

        def block(queries: slice, last: int) -> Tensor:
            # terms b and d of the paper share one product: q·Wr + v·Wr = (q + v)·Wr
            logits = (q[:, :, queries] + self.v[layer].to(q.dtype)) @ keys.mT
            # pairs with a masked key get offset 0, as any would do
            position = by_offset(logits, pairs.block(queries, last).clamp(max=len(waves) - 1))
            return (position + content[..., :last]) * self.spec.head_dim**-0.5

        return by_blocks(pairs.length, block)
