"""Sinusoids: the fixed vectors of positions that `add` and `concat` share."""

import math

import torch
from torch import Tensor


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


def sinusoid(positions: Tensor, width: int, base: float = 10000.0, ratio: float = 1.0) -> Tensor:
    r"""Return fixed sinusoids of geometrically spaced wavelengths, axis after axis.

    Each axis has ``n = width / P`` channels; its channel pair i holds sine and cosine of
    p · base^(-2i/n). The vectors are scaled by sqrt(2) · ratio, which makes their root mean square
    equal to ratio at every position.

    Args:
        positions: (L, P), any real numbers.
        width: Channels; a multiple of 2P.
        base: Base of the wavelengths, dimensionless: with many, the longest is near base · 2π. 10000 in the paper.
        ratio: Root mean square of every row.

    Returns:
        (L, width), 32-bit.

    Source:
        Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762. The concatenation of one
        sinusoid per axis for grids is that of He et al. 2022 (MAE), https://arxiv.org/abs/2111.06377.

    Example:
        >>> sinusoid(torch.tensor([[1.0]]), 4) / math.sqrt(2)  # sin 1, cos 1, sin .01, cos .01
        tensor([[0.8415, 0.5403, 0.0100, 0.9999]])
    """
    axes = positions.shape[-1]
    check_width(width, axes, "the width of a sinusoid")
    pairs = width // (2 * axes)
    frequencies = base ** (-torch.arange(pairs, device=positions.device, dtype=torch.float64) / pairs)
    angles = positions.double().unsqueeze(-1) * frequencies  # (L, P, pairs)
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (L, width)
    # sin² + cos² = 1 in every pair, so that a row's mean square is 1/2 at every position: hence the sqrt(2)
    return (waves * (math.sqrt(2) * ratio)).float()
