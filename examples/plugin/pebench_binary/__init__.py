"""Binary: positions written in the digits 0 and 1."""

import torch
from torch import Tensor

from pebench import EncodingSpec, PositionalEncoding


class BinaryEncoding(PositionalEncoding):
    """Digits of the position in binary, added to the input as -1 and 1; the channels take turns.

    Args:
        spec: The model.
        bits: Digits; positions that differ by a multiple of 2^bits look alike.
        ratio: Root mean square of the digits relative to the content's at initialisation.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Source:
        None; an example.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = BinaryEncoding(spec, bits=2)
        >>> encoding.prepare(torch.tensor([[0.0], [1.0], [2.0]]))  # the lowest digit first
        tensor([[-1., -1., -1., -1.],
                [ 1., -1.,  1., -1.],
                [-1.,  1., -1.,  1.]])
    """

    def __init__(self, spec: EncodingSpec, *, bits: int = 8, ratio: float = 1.0) -> None:
        super().__init__(spec)
        if bits < 1:
            raise ValueError(f"encoding 'binary' needs at least one of its bits, got {bits}")
        self.bits, self.ratio = bits, ratio

    def prepare(self, positions: Tensor) -> Tensor:
        """The digits at `positions`: (L, D); channel c has digit c // P of axis c % P, over and over."""
        channels = torch.arange(self.spec.d_model, device=positions.device)
        axis, digit = channels % self.spec.num_axes, channels // self.spec.num_axes % self.bits
        digits = torch.floor(positions[:, axis] / 2.0**digit) % 2
        return self.ratio * (2 * digits - 1)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Content plus digits."""
        return x + state.to(x.dtype)
