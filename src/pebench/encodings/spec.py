"""Sizes of the model that an encoding is built for, and the positions of its tokens."""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor


@dataclass(frozen=True)
class EncodingSpec:
    """Sizes of the model that an encoding is built for.

    Args:
        d_model: Width D of the residual stream.
        num_heads: Attention heads H.
        num_layers: Number of blocks.
        extent: Positions per axis in training: ``(256,)`` for text, ``(8, 8)`` for a grid of patches.
        causal: True if a token attends only to itself and to earlier tokens.

    Raises:
        ValueError: If the extent is no tuple, there is no channel, head, axis or position, a negative number of blocks,
            or a width that is not a multiple of the heads.
    """

    d_model: int
    num_heads: int
    num_layers: int
    extent: tuple[int, ...]
    causal: bool

    def __post_init__(self) -> None:
        for name, least in (("d_model", 1), ("num_heads", 1), ("num_layers", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, got {getattr(self, name)}")
        if not isinstance(self.extent, tuple | list):  # a number is a slip that Python would report as no iterable
            raise ValueError(f"extent expects a tuple of lengths, such as (128,), got {self.extent!r}")
        if min(self.extent, default=0) < 1:
            raise ValueError(f"extent must have 1 or more positions on each of 1 or more axes, got {self.extent}")
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model must be a multiple of num_heads, got {self.d_model} and {self.num_heads}")

    @property
    def head_dim(self) -> int:
        """Width K of a head."""
        return self.d_model // self.num_heads

    @property
    def num_axes(self) -> int:
        """Number P of position axes."""
        return len(self.extent)

    @property
    def max_len(self) -> int:
        """Number of tokens in training."""
        return prod(self.extent)

    def check_positions(self, positions: Tensor) -> None:
        """Refuse positions that are not one row per token with a place on each axis: (L, P), or (B, L, P).

        Raises:
            ValueError: With the shape that was expected.
        """
        if positions.ndim not in (2, 3) or positions.shape[-1] != self.num_axes:
            one = "; one axis is positions[:, None]" * (positions.ndim == 1 and self.num_axes == 1)
            raise ValueError(f"expected positions of shape (L, {self.num_axes}), got {tuple(positions.shape)}{one}")


def grid_positions(extent: tuple[int, ...], device: torch.device | str | None = None) -> Tensor:
    """Return the integer positions of a full grid in row-major order, as floats.

    Args:
        extent: Size of each axis, in positions.
        device: The tensor's device.

    Returns:
        (L, P) with L the product of the sizes.

    Example:
        >>> grid_positions((2, 2)).tolist()
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    # floats, as fractions of a position are allowed; "ij" puts rows first, the default order columns
    axes = [torch.arange(n, device=device, dtype=torch.float32) for n in extent]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(-1, len(extent))  # (n1, ..., P) to (L, P)
