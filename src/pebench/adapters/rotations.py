"""The rotations that a model ships with: RoPE with the model's own frequencies, however they were scaled."""

from typing import Any

from torch import Tensor

from pebench.encodings.positions import in_64_bit
from pebench.encodings.rope import RotaryEncoding
from pebench.encodings.spec import EncodingSpec


class ModelRotation(RotaryEncoding):
    """Rotary embedding with given frequencies.

    Args:
        spec: Sizes of the model, whose tokens have one position axis.
        own: Frequencies (K/2,), in radians a position.
        growth: Factor of queries and keys, as of YaRN.
        options: Options of ``rope`` that change no frequency.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.
    """

    def __init__(self, spec: EncodingSpec, *, own: Tensor, growth: float = 1.0, **options: Any) -> None:
        super().__init__(spec, **options)
        self.own, self.growth = in_64_bit(own.detach().cpu()), growth

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the given frequencies (K/2,), for any length of text."""
        return self.own

    def prepare(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of every pair's angle, times the factor of queries and keys: (L, K/2) each."""
        cos, sin = super().prepare(positions)
        return self.growth * cos, self.growth * sin
