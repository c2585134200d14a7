"""From a new encoding to its row in the table, by these commands in this folder.

pebench verify own_encoding:TriangleEncoding
pebench run --task vit-digits --task text-order --pe add --pe none --pe own_encoding:TriangleEncoding --seeds 5
pebench plot-encoding own_encoding:TriangleEncoding --output triangle.svg
"""

import torch
from torch import Tensor

from pebench import PositionalEncoding


class TriangleEncoding(PositionalEncoding):
    """The sinusoid of ``add`` with straight flanks: is it the wavelengths that matter, or the sine?"""

    def prepare(self, positions: Tensor) -> Tensor:
        """Waves at `positions` (L, P): (L, D), of root mean square 1 over a wavelength."""
        pairs = self.spec.d_model // (2 * self.spec.num_axes)
        steps = torch.arange(pairs, device=positions.device, dtype=torch.float32)  # whatever type a model has
        wavelengths = 2 * torch.pi * 10000 ** (steps / pairs)
        turns = positions.unsqueeze(-1) / wavelengths  # (L, P, pairs)
        both = torch.stack((turns, turns - 0.25), dim=-1).flatten(1)
        return 3**0.5 * (1 - 4 * (both - both.round()).abs())

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Content (B, L, D) plus position."""
        return x + state.to(x.dtype)
