"""TUPE: content and position with separate projections, summed in the logits."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.concat_qk import concatenated
from pebench.encodings.positions import cell_indices
from pebench.encodings.registry import register


@register("tupe")
class TupeEncoding(PositionalEncoding):
    """Untied absolute encoding (TUPE-A): logits (q·k + (U p)·(V p)) / sqrt(2K), with trained p.

    All layers share p, U and V. A position outside the trained extent is an error, as with ``learned``.

    Args:
        spec: Sizes of the model; the table has one row for each of its ``max_len`` positions.

    Shape:
        query_key: q and k (B, H, L, K) to (B, H, L, 2K).

    Raises:
        ValueError: For a position that is negative, fractional or outside the extent.

    Source:
        Ke et al. 2020, "Rethinking Positional Encoding in Language Pre-training", equation 7,
        https://arxiv.org/abs/2006.15595.

    Differs from the paper:
        1. There is no row for a [CLS] token, which our models do not have.
        2. The norm on p has no trained scale, as U and V can express it. Its shift and the projections' biases are left
           out: the authors' code has both, and with them a bias of each key.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(2,), causal=True)
        >>> encoding = TupeEncoding(spec)
        >>> _ = encoding.table.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 5.0]]))
        >>> _ = encoding.projections.data.copy_(torch.eye(2))
        >>> x = torch.zeros(1, 1, 2, 2)
        >>> state = encoding(encoding.prepare(torch.tensor([[0.0], [1.0]])))
        >>> q, k = encoding.query_key(x, x, x, state, layer=0)
        >>> (q @ k.mT)[0, 0].detach().round(decimals=3)  # norms (1, -1) and (-1, 1), over sqrt(2)
        tensor([[ 1.4140, -1.4140],
                [-1.4140,  1.4140]])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j + (U n_i) \cdot (V n_j)}{\sqrt{2K}}, \quad n_i = "
        r"\mathrm{norm}(E_{p_i})"
    )
    cite = ("ke2021rethinking",)
    mark = 43
    beyond = "refuses"
    size = "max_len * d_model + 2 * d_model * d_model"
    paper = ("refuses",)
    paper_size = 2304  # 8 vectors of 32, and two matrices of 32 x 32
    layouts = (("table", "cells"),)

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.table = nn.Parameter(torch.empty(spec.max_len, spec.d_model))
        self.projections = nn.Parameter(torch.empty(2, spec.d_model, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw table and projections from N(0, 1/D)."""
        for parameter in (self.table, self.projections):
            nn.init.normal_(parameter, std=self.spec.d_model**-0.5)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the indices of the table's rows for `positions`: (L,)."""
        return cell_indices(positions, self.spec.extent, self.name)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions' queries and keys: (H, L, K) each."""
        # rows are stored small, N(0, 1/D); the norm gives them root mean square 1, as content after a norm has
        normed = F.layer_norm(self.table[state], (self.spec.d_model,))
        queries, keys = F.linear(normed, self.projections[0]), F.linear(normed, self.projections[1])  # (L, D) each
        heads = (self.spec.num_heads, -1)
        return queries.unflatten(-1, heads).transpose(0, 1), keys.unflatten(-1, heads).transpose(0, 1)  # (H, L, K)

    def query_key(
        self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Tensor], layer: int
    ) -> tuple[Tensor, Tensor]:
        """Append the positions' queries and keys to the content's."""
        return concatenated(q, state[0]), concatenated(k, state[1])
