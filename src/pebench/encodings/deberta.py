"""DeBERTa: content compared with relative position, and relative position with content."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register
from pebench.encodings.shaw import by_offset


@register("deberta")
class DebertaEncoding(PositionalEncoding):
    """Disentangled attention: logits (q·k + q·(V r) + k·(U r')) / sqrt(3K), r a trained vector of the clipped distance.

    r belongs to the query's position minus the key's, r' to the key's minus the query's. All layers share
    the vectors; each has its own projections U and V.

    Args:
        spec: Sizes of the model.
        clip: Distances lie in [-clip, clip); ``None`` takes the trained length, the paper 512.

    Shape:
        query_key: q over sqrt(3), and k.
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``clip`` is not positive, or for a grid.

    Source:
        He et al. 2020, "DeBERTa", equations 3 and 4, https://arxiv.org/abs/2006.03654.

    Differs from the paper:
        1. There are no absolute positions before the last layers, and no norm on r, as version 2 has it.
        2. The authors' code, and transformers' after it, has r in the place of r'; this follows the paper.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(2,), causal=False)
        >>> encoding = DebertaEncoding(spec)
        >>> _ = encoding.table.data.copy_(torch.arange(4.0)[:, None])  # distances -2, -1, 0, 1
        >>> _ = encoding.queries.data.fill_(10.0), encoding.keys.data.fill_(1.0)
        >>> q, k = encoding.query_key(*3 * [torch.ones(1, 1, 2, 1)], encoding.prepare(torch.arange(2.0)[:, None]), 0)
        >>> state = encoding.prepare(torch.arange(2.0)[:, None])
        >>> encoding.bias(q, k, k, state, layer=0)[0, 0].detach() * 3**0.5  # 2 + 20, 1 + 30; 3 + 10, 2 + 20
        tensor([[22.0000, 31.0000],
                [13.0000, 22.0000]])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j + q_i \cdot V r_{i-j} + k_j \cdot U r_{j-i}}{\sqrt{3K}}"
    cite = ("he2021deberta",)
    mark = 13
    axes = (1,)
    relative = True
    size = "2 * max_len * d_model + 2 * num_layers * d_model * d_model"
    paper = ("relative", "text")
    paper_size = 4608  # 16 vectors of 32, and 2 layers x 2 matrices of 32 x 32

    def __init__(self, spec: EncodingSpec, *, clip: int | None = None) -> None:
        super().__init__(spec)
        if clip is not None and clip < 1:
            raise ValueError(f"clip of encoding 'deberta' must be 1 or more, got {clip}")
        self.clip = clip or spec.max_len
        self.table = nn.Parameter(torch.empty(2 * self.clip, spec.d_model))
        self.queries = nn.Parameter(torch.empty(spec.num_layers, spec.d_model, spec.d_model))
        self.keys = nn.Parameter(torch.empty(spec.num_layers, spec.d_model, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all from N(0, 1/D): vectors are small against content, and projections keep scales."""
        for parameter in (self.table, self.queries, self.keys):
            nn.init.normal_(parameter, std=self.spec.d_model**-0.5)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the row of every pair's distance, query by key: (L, L)."""
        distance = (positions.unsqueeze(1) - positions.unsqueeze(0)).squeeze(-1).round()  # (L, L, 1) to (L, L)
        # 2 clip rows for distances from -clip to clip - 1: the row of +clip does not exist
        return (distance + self.clip).clamp(0, 2 * self.clip - 1).long()

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Divide queries by sqrt(3), as logits are a sum of three terms."""
        return q * 3**-0.5, k

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """Return the terms of content to position and of position to content."""
        # names follow their use: projected by U, vectors act as queries; by V, as keys
        queries, keys = (self._project(weight[layer], q.dtype) for weight in (self.queries, self.keys))
        to_position = by_offset(q @ keys.mT, state)  # (B, H, L, 2 clip) to (B, H, L, L)
        # for keys the rows are those of the key's position minus the query's, hence the transpose (key by query)
        # q comes from `query_key` with its 1/sqrt(3) already, k comes without
        to_content = by_offset(k @ queries.mT, state).mT * 3**-0.5
        return (to_position + to_content) * self.spec.head_dim**-0.5

    def _project(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the vectors as queries or keys of a layer: (H, 2 clip, K)."""
        projected = F.linear(self.table.to(dtype), weight.to(dtype))  # (2 clip, D)
        return projected.unflatten(-1, (self.spec.num_heads, -1)).transpose(0, 1)  # (2 clip, H, K) to (H, 2 clip, K)
