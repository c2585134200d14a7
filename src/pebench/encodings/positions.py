"""Helpers of encodings: checks of options, numbers of more digits, and tables by cell."""

from math import inf

import torch
from torch import Tensor


def check_positive(name: str, **options: float) -> None:
    """Refuse an option that is not a positive number.

    Args:
        name: The encoding's name, for the message.
        options: Values by name.

    Raises:
        ValueError: If one is zero, negative, infinite or not a number.

    Example:
        >>> check_positive("rope", theta=-1.0)
        Traceback (most recent call last):
        ...
        ValueError: theta of encoding 'rope' must be positive and finite, got -1.0
    """
    for option, value in options.items():
        if not 0 < value < inf:
            raise ValueError(f"{option} of encoding {name!r} must be positive and finite, got {value}")


def check_ratio(name: str, ratio: float) -> None:
    """Refuse a ratio of root mean squares that is negative or not finite.

    Args:
        name: The encoding's name, for the message.
        ratio: Position's root mean square over the content's; with zero there is no position to begin with.

    Raises:
        ValueError: If it is negative, infinite or not a number.

    Example:
        >>> check_ratio("add", -1.0)
        Traceback (most recent call last):
        ...
        ValueError: ratio of encoding 'add' must be zero or more and finite, got -1.0
    """
    if not 0 <= ratio < inf:
        raise ValueError(f"ratio of encoding {name!r} must be zero or more and finite, got {ratio}")


WIDE = ("cpu", "cuda")
"""Types of devices that have 64-bit numbers. Others have none, as Apple's ``mps``, or are not known to have them."""


def in_64_bit(x: Tensor) -> Tensor:
    """Return numbers in 64 bit, as angles at far positions need them: on their own device, or on the CPU in its place.

    Whatever is computed from them ends with `in_32_bit`.
    """
    return x.to(x.device if x.device.type in WIDE else "cpu", torch.float64)


def in_32_bit(x: Tensor, device: torch.device) -> Tensor:
    """Return numbers in 32 bit on a device."""
    return x.to(torch.float32).to(device)  # one after the other: a device without 64 bit is not even sent them


def cell_indices(positions: Tensor, extent: tuple[int, ...], name: str) -> Tensor:
    """Return the row-major indices of the cells at some positions, for an encoding with a row for each cell.

    Args:
        positions: (L, P).
        extent: Size of each axis, in positions.
        name: The encoding's name, for the message.

    Returns:
        (L,) integers.

    Raises:
        ValueError: For a position that is negative, fractional or outside the extent.

    Example:
        >>> cell_indices(torch.tensor([[2.0, 1.0]]), (3, 5), "learned").tolist()
        [11]
    """
    sizes = torch.tensor(extent, device=positions.device, dtype=torch.long)
    # NaN is refused by the last condition, as it differs from its own floor; as an integer it would be some cell
    if (positions < 0).any() or (positions >= sizes).any() or (positions != positions.floor()).any():
        raise ValueError(
            f"encoding {name!r} knows the integer positions below {extent}, "
            f"got positions from {positions.amin(0).tolist()} to {positions.amax(0).tolist()}"
        )
    rows = torch.zeros(len(positions), dtype=torch.long, device=positions.device)
    # Horner's scheme, the last axis fastest
    for axis, size in enumerate(extent):
        rows = rows * size + positions[:, axis].long()
    return rows
