"""Sinusoids: the fixed vectors of positions that `add` and `concat` share."""

import math

import torch
from torch import Tensor

from pebench.encodings.positions import in_32_bit, in_64_bit
from pebench.encodings.spec import grid_positions


def check_width(width: int, axes: int, what: str) -> None:
    """Refuse a width that cannot hold sine and cosine for every axis.

    Raises:
        ValueError: Unless `width` is a positive multiple of ``2 * axes``.
    """
    if width <= 0 or width % (2 * axes):
        raise ValueError(f"{what} must be a positive multiple of {2 * axes} for {axes} position axes, got {width}")


def quarter(width: int, step: int) -> int:
    """Return a quarter of a width, rounded down to a multiple of ``step``, and at least ``step``."""
    return max(step, width // 4 // step * step)


def check_choice(name: str, width: int, extent: tuple[int, ...], slowest_of: int | None, centered: bool) -> None:
    """Refuse options of a sinusoid that cannot be met.

    Args:
        name: The encoding's name, for the message.
        width: Channels.
        extent: Trained positions per axis.
        slowest_of: As `sinusoid` takes it.
        centered: True if the mean over the trained positions is subtracted.

    Raises:
        ValueError: For a sinusoid that is to be the slowest part of a narrower one, or one position to centre.
    """
    if slowest_of is not None:
        check_width(slowest_of, len(extent), f"slowest_of of encoding {name!r}")
        if slowest_of < width:
            raise ValueError(f"slowest_of of encoding {name!r} must be at least its {width} channels, got {slowest_of}")
    if centered and math.prod(extent) == 1:
        raise ValueError(f"encoding {name!r} with centered=True needs two trained positions or more, got one")


def sinusoid(
    positions: Tensor,
    width: int,
    base: float = 10000.0,
    ratio: float = 1.0,
    slowest_of: int | None = None,
    center: tuple[int, ...] | None = None,
) -> Tensor:
    r"""Return fixed sinusoids of geometrically spaced wavelengths, axis after axis.

    Each axis has ``n = width / P`` channels; its channel pair i holds sine and cosine of
    p · base^(-2i/n). The vectors are scaled by sqrt(2) · ratio, which makes their root mean square
    equal to ratio at every position.

    Args:
        positions: (L, P), any real numbers.
        width: Channels; a multiple of 2P.
        base: Base of the wavelengths, dimensionless: with many, the longest is near base · 2π. 10000 in the paper.
        ratio: Root mean square of every row; of a centred one, root mean square over the trained positions.
        slowest_of: Width of the sinusoid of which these are the slowest channels of each axis; ``None`` takes all.
        center: Trained positions per axis, over which the mean is subtracted, before the scale is set; from other
            positions the same vector is subtracted. ``None`` subtracts nothing.

    Returns:
        (L, width), 32-bit.

    Source:
        Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762. The concatenation of one
        sinusoid per axis for grids is that of He et al. 2022 (MAE), https://arxiv.org/abs/2111.06377.

    Example:
        >>> sinusoid(torch.tensor([[1.0]]), 4) / math.sqrt(2)  # sin 1, cos 1, sin .01, cos .01
        tensor([[0.8415, 0.5403, 0.0100, 0.9999]])
        >>> sinusoid(torch.tensor([[1.0]]), 2, slowest_of=4) / math.sqrt(2)
        tensor([[0.0100, 0.9999]])
        >>> sinusoid(torch.tensor([[0.0], [1.0], [2.0]]), 2, center=(2,))  # minus (sin 1, 1 + cos 1) / 2, over 0.3390
        tensor([[-1.2411,  0.6780],
                [ 1.2411, -0.6780],
                [ 1.4412, -3.4994]])
    """
    axes = positions.shape[-1]
    check_width(width, axes, "the width of a sinusoid")
    pairs, every = width // (2 * axes), (slowest_of or width) // (2 * axes)
    wide = in_64_bit(positions)
    frequencies = base ** (-torch.arange(every, device=wide.device, dtype=wide.dtype) / every)
    frequencies = frequencies[every - pairs :]  # they fall
    waves = _waves(wide, frequencies)
    if center is not None:
        trained = _waves(in_64_bit(grid_positions(center, wide.device)), frequencies)
        mean = trained.mean(dim=0)
        waves = (waves - mean) * (ratio / (trained - mean).square().mean().sqrt())
        return in_32_bit(waves, positions.device)
    # sin² + cos² = 1 in every pair, so that a row's mean square is 1/2 at every position: hence the sqrt(2)
    return in_32_bit(waves * (math.sqrt(2) * ratio), positions.device)


def _waves(positions: Tensor, frequencies: Tensor) -> Tensor:
    """Return sine and cosine of 64-bit positions (L, P) at some frequencies (F,): (L, 2PF)."""
    angles = positions.unsqueeze(-1) * frequencies  # (L, P, F)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
