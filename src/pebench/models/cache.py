"""The cache of a trunk: what one forward pass leaves to the next."""

from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import PositionalEncoding, grid_positions
from pebench.memo import Memo
from pebench.models.attention import Masks


class ForwardCache:
    """Positions, prepared state, masks and checked lengths, kept from one forward pass to the next.

    The rule: an entry serves as long as what it was made from stays the same. Grids and masks are made from sizes and a
    device, which are compared by value. The prepared state is made from a tensor of positions; see
    `pebench.memo.Memo`. A copy or a pickle of the trunk begins with an empty cache.

    Its size has a bound: of each kind there is one entry, that of the last pass, and none once a text has more tokens
    than the model is trained for. State of all pairs of tokens is quadratic in their number, and so never grows beyond
    what training needs.

    Args:
        longest: Number of tokens above which nothing is kept.

    Attributes:
        checked_lengths: Lengths with which the encoding's hooks returned what they must.
    """

    def __init__(self, longest: int) -> None:
        self.longest, self.checked_lengths = longest, set[int]()
        self._clear()

    def __reduce__(self) -> tuple[type["ForwardCache"], tuple[int]]:
        """Copy and pickle as an empty cache: everything in it can be made again."""
        return ForwardCache, (self.longest,)

    def _clear(self) -> None:
        self._grid: tuple[tuple[int, ...], Tensor] | None = None
        self._prepared: Memo[Any] = Memo()
        self._masks: Masks | None = None

    def grid(self, extent: tuple[int, ...], device: torch.device) -> Tensor:
        """Return the positions (L, P) of a text or a grid, the same tensor as long as the size stays."""
        if self._grid is None or (self._grid[0], self._grid[1].device) != (extent, device):
            with torch.inference_mode(False):  # an inference tensor could not serve training later
                self._grid = extent, grid_positions(extent, device)
        return self._grid[1]

    def prepared(self, encoding: PositionalEncoding, placed: Tensor) -> Any:
        """Return what an encoding prepares for positions (L, P), as its `place` returned them."""
        # Whatever type positions have, angles and distances are computed from 32 bit.
        return self._prepared.made_of(placed, lambda: encoding.prepare(placed.float()))

    def masks(self, causal: bool, length: int, device: torch.device, valid: Tensor | None) -> Masks:
        """Return the masks of a batch: those of the last one where it had the same size and nothing is padded.

        Args:
            causal: Hide the future.
            length: Number of tokens L.
            device: Device of the masks.
            valid: (B, L), False at padding; None where there is none.
        """
        if valid is not None:  # every batch is padded in its own way
            return Masks(causal, length, device, valid)
        # `causal` is not compared: it belongs to the model, which has this cache to itself.
        if self._masks is None or (self._masks.length, self._masks.device) != (length, device):
            self._masks = Masks(causal, length, device, None)
        return self._masks

    def end_pass(self, length: int) -> None:
        """Drop what no later pass may have: all of a long text, and what has the gradient of this pass.

        To be called however the pass ended.
        """
        if length > self.longest:
            self._clear()
        elif self._masks is not None:
            self._masks.end_pass()
