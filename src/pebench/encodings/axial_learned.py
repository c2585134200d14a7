"""Axial learned: a trained vector per row and one per column, added to the input."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import cell_indices, check_ratio
from pebench.encodings.registry import register


@register("axial-learned")
class AxialLearnedEncoding(PositionalEncoding):
    """Learned tables, one for each axis, whose rows are summed; on text the same as ``learned``.

    A position outside the trained extent is an error, as with ``learned``.

    Args:
        spec: Sizes of the model; an axis of n positions has a table (n, D).
        ratio: Root mean square of the sum relative to the content's at initialisation.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: For a position that is negative, fractional or outside the extent, or a negative ``ratio``.

    Source:
        Ho et al. 2019, "Axial Attention in Multidimensional Transformers",
        https://arxiv.org/abs/1912.12180; summed tables as in Dehghani et al. 2023 (NaViT), section 2.1,
        https://arxiv.org/abs/2307.06304.

    Differs from the paper:
        1. The tables are stored and scaled as in ``learned``, see there.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(3, 5), causal=False)
        >>> sum(p.numel() for p in AxialLearnedEncoding(spec).parameters())  # (3 + 5) times 4
        32
    """

    formula = r"x + \sum_{a=1}^{P} E^{(a)}_{p_a}"
    cite = ("ho2019axial", "dehghani2023patch")
    aliases = ("axial", "factorized", "learnedaxial")
    mark = 7
    beyond = "refuses"
    size = "sum(extent) * d_model"
    paper = ("refuses",)
    paper_size = 256  # 8 rows of 32
    layouts = (("tables", "axes"),)

    def __init__(self, spec: EncodingSpec, *, ratio: float = 1.0) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        self.tables = nn.Parameter(torch.empty(sum(spec.extent), spec.d_model))  # the tables one below the other
        # sqrt(D) as for token tables, over sqrt(P) because the variances of P rows add up
        self.ratio, self.scale = ratio, (spec.d_model / spec.num_axes) ** 0.5
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the tables from N(0, ratio²/D)."""
        nn.init.normal_(self.tables, std=self.ratio * self.spec.d_model**-0.5)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the indices of the tables' rows for `positions`: (L, P)."""
        cell_indices(positions, self.spec.extent, self.name)  # refuses positions without a row
        starts = torch.tensor((0, *self.spec.extent[:-1]), device=positions.device, dtype=torch.long).cumsum(0)
        return positions.long() + starts

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus one row of each table."""
        return x + (self.tables[state].sum(dim=1) * self.scale).to(x.dtype)  # (L, P, D) to (L, D)
