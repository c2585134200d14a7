"""Learned: one trained vector per position, added to the input."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding, grid_positions
from pebench.encodings.positions import cell_indices, check_positive, check_ratio
from pebench.encodings.registry import register
from pebench.encodings.sinusoid import sinusoid


@register("learned")
class LearnedEncoding(PositionalEncoding):
    """Learned table, added to the input; one row per position, on grids one per cell.

    A position outside the trained extent is an error, as the table has no row for it.

    Args:
        spec: Sizes of the model; the table has one row for each of its ``max_len`` positions.
        ratio: Root mean square of the table's output relative to the content's at initialisation.
        start: Initial values of the table: ``normal``, or ``sinusoid`` for the vectors of ``add``.
        frozen: Do not train the table; every seed of a run draws another one.
        pace: How many times as fast as other parameters it moves under Adam; ``None`` takes sqrt(D), as tables of
            tokens move here.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: For a position that is negative, fractional or outside the extent; for an unknown start; for a
            pace that is not positive or a ratio that is negative.

    Source:
        Gehring et al. 2017, https://arxiv.org/abs/1705.03122; as in BERT, GPT-2 and ViT,
        Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929.

    Differs from the paper:
        1. The table is stored like the token table, N(0, ratio²/D), and scaled by sqrt(D) on use, so that on text
           both move at the same pace under Adam, whatever their initial ratio; images have no token table, and
           position's moves sqrt(D) times as fast as the weights of their patches. Elsewhere tables are drawn
           unscaled, as with ``pace=1.0``: from N(0, 0.02²) in ViT, and from N(0, 0.01²) in GPT-2, with tokens from
           N(0, 0.02²).

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = LearnedEncoding(spec)
        >>> sum(p.numel() for p in encoding.parameters())
        32
        >>> encoding.prepare(torch.tensor([[0.0], [7.0]]))
        tensor([0, 7])
    """

    formula = r"x + E_p, \quad E \in \mathbb{R}^{L \times D}"
    cite = ("gehring2017convolutional", "dosovitskiy2021image")
    aliases = ("ape", "learnable", "learnedabsolute")
    mark = 2
    beyond = "refuses"
    size = "max_len * d_model"
    paper = ("refuses",)
    paper_size = 256  # 8 rows of 32
    layouts = (("table", "cells"),)

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        ratio: float = 1.0,
        start: str = "normal",
        frozen: bool = False,
        pace: float | None = None,
    ) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        if start not in ("normal", "sinusoid"):
            raise ValueError(f"start of encoding 'learned' must be normal or sinusoid, got {start!r}")
        self.table = nn.Parameter(torch.empty(spec.max_len, spec.d_model), requires_grad=not frozen)
        self.start, self.pace = start, spec.d_model**0.5 if pace is None else pace
        check_positive(self.name, pace=self.pace)
        self.scale = ratio * (
            spec.d_model**-0.5 if pace is None else 1 / pace
        )  # two formulas, as published runs depend on the last bit
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table from N(0, ratio²/pace²), or set it to the sinusoid at the same scale."""
        if self.start == "normal":
            nn.init.normal_(self.table, std=self.scale)
        else:
            waves = sinusoid(grid_positions(self.spec.extent), self.spec.d_model)
            with torch.no_grad():
                self.table.copy_(waves * self.scale)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the indices of the table's rows for `positions`: (L,)."""
        return cell_indices(positions, self.spec.extent, self.name)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus the table's rows."""
        return x + (self.table[state] * self.pace).to(x.dtype)
