"""Position-matrix: a trained matrix per position, multiplied with the content there."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import cell_indices, check_ratio
from pebench.encodings.registry import register


@register("position-matrix")
class PositionMatrixEncoding(PositionalEncoding):
    """A trained matrix of low rank per position, on the content there: x + U_p V_p^T x.

    It generalises ``multiply``, whose matrix is diagonal. A position outside the trained extent is an error.

    Args:
        spec: Sizes of the model, for two tables (max_len, D, rank).
        rank: Rank of the matrices; with ``d_model`` they can be any.
        ratio: Root mean square of the product relative to the content's at initialisation.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: For a rank below 1, a negative ratio, or a position that is negative, fractional or outside
            the extent.

    Source:
        None known: the question "why add and not multiply?" in its general form.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = PositionMatrixEncoding(spec, rank=1)
        >>> _ = encoding.left.data.copy_(torch.tensor([[1.0], [0.0]])), encoding.right.data.fill_(1.0)
        >>> encoding.embed(torch.tensor([[[2.0, 3.0]]]), encoding.prepare(torch.tensor([[1.0]]))).detach()
        tensor([[[7., 3.]]])
    """

    formula = r"x + \mathrm{ratio} \cdot U_p V_p^\top x, \quad U_p, V_p \in \mathbb{R}^{D \times \mathrm{rank}}"
    cite = ("pebench",)
    mark = 29
    beyond = "refuses"
    size = "2 * 4 * max_len * d_model"
    paper = ("refuses",)
    paper_size = 2048  # 8 positions x two factors of 4 x 32
    layouts = (("left", "cells"), ("right", "cells"))

    def __init__(self, spec: EncodingSpec, *, rank: int = 4, ratio: float = 1.0) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        if rank < 1:
            raise ValueError(f"rank of encoding 'position-matrix' must be 1 or more, got {rank}")
        self.rank, self.ratio = rank, ratio
        self.left = nn.Parameter(torch.empty(spec.max_len, spec.d_model, rank))
        self.right = nn.Parameter(torch.empty(spec.max_len, spec.d_model, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both factors from N(0, 1/rank) and N(0, 1/D), so that the product keeps the content's scale."""
        nn.init.normal_(self.left, std=self.rank**-0.5)
        nn.init.normal_(self.right, std=self.spec.d_model**-0.5)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the indices of the tables' rows for `positions`: (L,)."""
        return cell_indices(positions, self.spec.extent, self.name)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus its position's matrix times content."""
        # through the rank r, so that no matrix (L, D, D) is ever made
        small = torch.einsum("bld,ldr->blr", x, self.right[state].to(x.dtype))
        return x + self.ratio * torch.einsum("blr,ldr->bld", small, self.left[state].to(x.dtype))
