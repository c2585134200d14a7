"""The cache of a trunk: what one forward pass leaves to the next."""

from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import PositionalEncoding, grid_positions
from pebench.models.attention import Masks


class ForwardCache:
    """Positions, prepared state, masks and checked lengths, kept from one forward pass to the next.

    The rule: an entry serves as long as what it was made from stays the same. Grids and masks are made from sizes and a
    device, which are compared by value. The prepared state is made from a tensor of positions, which is compared by
    identity: comparing numbers would make an accelerator wait. A copy or a pickle of the trunk begins with an empty
    cache.

    Attributes:
        checked_lengths: Lengths with which the encoding's hooks returned what they must.
    """

    def __init__(self) -> None:
        self.checked_lengths = set[int]()
        self._grids: dict[tuple[tuple[int, ...], torch.device], Tensor] = {}
        self._placed: Tensor | None = None
        self._prepared: Any = None
        self._masks: Masks | None = None

    def __reduce__(self) -> tuple[type["ForwardCache"], tuple[()]]:
        """Copy and pickle as an empty cache: everything in it can be made again."""
        return ForwardCache, ()

    def grid(self, extent: tuple[int, ...], device: torch.device) -> Tensor:
        """Return the positions (L, P) of a text or a grid, the same tensor each time."""
        key = (extent, device)
        if key not in self._grids:
            with torch.inference_mode(False):  # an inference tensor could not serve training later
                self._grids[key] = grid_positions(extent, device)
        return self._grids[key]

    def prepared(self, encoding: PositionalEncoding, placed: Tensor) -> Any:
        """Return what an encoding prepares for positions (L, P), as its `place` returned them."""
        if placed is not self._placed:
            # `placed` itself is kept, not its id: a number is given to another tensor once this one is gone.
            # Whatever type positions have, angles and distances are computed from 32 bit.
            self._placed, self._prepared = placed, encoding.prepare(placed.float())
        return self._prepared

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
