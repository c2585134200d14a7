"""CoPE: a key's position is the number of tokens since then that the query counts, by their content."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register


@register("cope")
class CopeEncoding(PositionalEncoding):
    """Contextual position (CoPE): key j is at the sum of sigmoid(q_i·k_l / sqrt(K)) over l from j to i.

    The logit grows by q_i·e(p), with trained vectors e, interpolated at fractional p. Tokens are
    counted in the order of the sequence; positions are not used.

    Args:
        spec: Sizes of the model, causal; each layer has a table (most, K) that its heads share.
        most: Number of positions with a vector of their own; all that are further away share the last one.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``most`` is below 2, for a grid or a bidirectional model.

    Source:
        Golovneva et al. 2024, "Contextual Position Encoding", equations 3 to 6 and its listing,
        https://arxiv.org/abs/2405.18719.

    Differs from the paper:
        1. The gates are computed from scaled logits, and q·e is not scaled, as in the paper's listing, not its text.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = CopeEncoding(spec)
        >>> _ = encoding.table.data.copy_(torch.arange(64.0)[:, None])  # q·e(p) is p
        >>> q, k = torch.ones(1, 1, 3, 1), torch.zeros(1, 1, 3, 1)  # every token counts a half
        >>> encoding.bias(q, k, q, None, layer=0)[0, 0, 2].detach()
        tensor([1.5000, 1.0000, 0.5000])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + q_i \cdot e(c_{ij}), \quad c_{ij} = "
        r"\min\left(\mathrm{most} - 1,\ \sum_{l=j}^{i} \sigma\left(\frac{q_i \cdot "
        r"k_l}{\sqrt{K}}\right)\right)"
    )
    cite = ("golovneva2024contextual",)
    mark = 11
    axes = (1,)
    causal_only = True
    contextual = True
    relative = True
    size = "num_layers * 64 * head_dim"
    paper = ("contextual", "relative", "causal_only", "text")
    paper_size = 1024  # 2 layers x 64 vectors of 8

    def __init__(self, spec: EncodingSpec, *, most: int = 64) -> None:
        super().__init__(spec)
        if most < 2:
            raise ValueError(f"most of encoding 'cope' must be 2 or more, got {most}")
        self.most = most
        self.table = nn.Parameter(torch.empty(spec.num_layers, most, spec.head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the table to zero: there is no position at first."""
        nn.init.zeros_(self.table)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: None, layer: int) -> Tensor:
        """Return q·e at every pair's count."""
        # 32-bit, as a 16-bit sum of many gates stops growing; `tril` before the sum, so that later tokens do not count
        gates = (q @ k.mT * self.spec.head_dim**-0.5).float().sigmoid().tril()  # (B, H, L, L)
        # summed from the query backwards, hence the two flips
        counts = gates.flip(-1).cumsum(dim=-1).flip(-1).clamp(max=self.most - 1)
        below = counts.floor()
        # q·e for all positions, then a choice, as in the listing: e of every pair would be (B, H, L, L, K)
        by_position = (q @ self.table[layer].to(q.dtype).T).float()  # (B, H, L, most)
        low, high = by_position.gather(-1, below.long()), by_position.gather(-1, counts.ceil().long())
        # floor and ceil have no gradient: gates learn through this weight alone
        return low + (high - low) * (counts - below)
