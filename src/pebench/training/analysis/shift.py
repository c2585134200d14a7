"""The shift property: whether one linear map takes the vector of every position to that of a later one."""

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture

SHIFTS = (1, 2, 4, 8, 16, 32)
"""Offsets in tokens."""


def shift(capture: Capture) -> dict[str, list[float | None]] | None:
    """Measure how well a linear map from p(t) to p(t + k) fits positions that it was not fitted on.

    The map is the least-squares one of smallest norm, fitted on a random half of the pairs. R² is 1 for a perfect map,
    0 for the mean of the held-out vectors, and below 0 for worse. Wide vectors of few positions are fitted perfectly
    in sample whatever they are, so that only the held-out figure says anything.

    Returns:
        ``held_out`` and ``in_sample``, one R² for each of `SHIFTS`; None where there are fewer than eight pairs. None
        for grids, and where position does not enter at the input.

    Source:
        The property is claimed of the sinusoid in Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762.
    """
    if capture.position is None or capture.positions.shape[1] != 1:
        return None
    position = capture.position.double()
    found = [fit_shift(position, offset) if len(position) - offset >= 8 else (None, None) for offset in SHIFTS]
    return {"held_out": [pair[0] for pair in found], "in_sample": [pair[1] for pair in found]}


def fit_shift(position: Tensor, offset: int) -> tuple[float, float]:
    """Return R² of the map from p(t) to p(t + offset), on held-out pairs and on those that it was fitted on.

    Args:
        position: (L, D), consecutive positions.
        offset: Offset in rows.
    """
    before, after = position[:-offset], position[offset:]
    order = torch.randperm(len(before), generator=torch.Generator().manual_seed(0))
    fitted, held_out = order[::2], order[1::2]
    # gelsd: the one of smallest norm, as more channels than pairs have many perfect maps
    found = torch.linalg.lstsq(before[fitted], after[fitted], driver="gelsd").solution
    return r_squared(before[held_out] @ found, after[held_out]), r_squared(before[fitted] @ found, after[fitted])


def r_squared(predicted: Tensor, target: Tensor) -> float:
    """Return the share of the targets' variance (N, D) that predictions explain, over all channels together."""
    return 1.0 - float((predicted - target).square().sum() / (target - target.mean(0)).square().sum())
