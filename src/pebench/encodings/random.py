"""Random: a Gaussian vector per position, added to the input and never trained."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import cell_indices, check_ratio
from pebench.encodings.registry import register


@register("random")
class RandomEncoding(PositionalEncoding):
    """Frozen random table, added to the input: nearly orthogonal codes without any order in them.

    The control of fixed vectors: it distinguishes positions as a sinusoid does, but neighbours are as different as
    any two positions. A position outside the trained extent is an error.

    Args:
        spec: Sizes of the model; the table has one row for each of its ``max_len`` positions.
        table_seed: Seed of the table, which is the same for all seeds of a run.
        ratio: Root mean square of the table relative to the content's at initialisation.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: For a position that is negative, fractional or outside the extent, or a negative ``ratio``.

    Source:
        None: a control. The learned table of Gehring et al. 2017, https://arxiv.org/abs/1705.03122, starts like this.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = RandomEncoding(spec)
        >>> encoding.embed(torch.zeros(1, 1, 2), encoding.prepare(torch.tensor([[0.0]])))
        tensor([[[-1.1258, -1.1524]]])
    """

    formula = r"x + \mathrm{ratio} \cdot E_p, \quad E_{pc} \sim \mathcal{N}(0, 1) \text{, not trained}"
    cite = ("pebench",)
    mark = 30
    beyond = "refuses"
    table: Tensor
    paper = ("refuses",)
    paper_size = 0
    layouts = (("table", "cells"),)

    def __init__(self, spec: EncodingSpec, *, table_seed: int = 0, ratio: float = 1.0) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        noise = torch.Generator().manual_seed(table_seed)
        # a buffer: it moves with the model and is saved with it, but never trained
        self.register_buffer(
            "table", ratio * torch.randn(spec.max_len, spec.d_model, generator=noise, dtype=torch.float32)
        )

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the indices of the table's rows for `positions`: (L,)."""
        return cell_indices(positions, self.spec.extent, self.name)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus the table's rows."""
        return x + self.table[state].to(x.dtype)
