"""Energies: which channels content and position occupy at the input, and whether the two share them."""

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture

SHARE = 0.9
"""Part of position's energy that its principal components must hold to count as its subspace."""


def energies(capture: Capture) -> dict[str, float | list[float]] | None:
    """Measure how far content and position share channels at the input; None where position does not enter there.

    Energy is the mean square of a channel after its mean is taken off, over tokens: in texts of many lengths a late
    position counts as often as there is a token at it. ``overlap`` is 1 where both spread their energy
    over the channels alike, and 0 where they use different channels, as a concatenation does. ``inside`` is the part of
    content's energy in the principal components that hold 90 % of position's; random directions would have ``chance``.

    Returns:
        ``overlap``, ``inside``, ``chance``, ``position_rank`` (number of those components), the stable ranks and the
        participation ratios of both; ``constant``, the part of position's mean square that is the same vector at every
        position; and ``content_channels`` and ``position_channels``, the part of each one's energy in every channel,
        those with the most of position's first.

    Source:
        Overlap: Bhattacharyya 1943, On a measure of divergence. Stable rank: Rudelson and Vershynin 2007,
        https://arxiv.org/abs/math/0503442, section 1. Participation ratio: Gao et al. 2017, bioRxiv 214262.
    """
    if capture.position is None:
        return None
    added = capture.position_rows()
    content, position = centred(capture.rows()), centred(added)
    directions = principal_directions(position)
    whole = float(added.double().square().sum())
    content_channels, position_channels = by_channel(content), by_channel(position)
    order = position_channels.argsort(descending=True, stable=True)
    return {
        "overlap": overlap(content, position),
        "inside": float((content @ directions).square().sum() / content.square().sum()),
        "chance": directions.shape[1] / position.shape[1],
        "position_rank": float(directions.shape[1]),
        "content_stable_rank": stable_rank(content),
        "position_stable_rank": stable_rank(position),
        "content_participation": participation_ratio(content),
        "position_participation": participation_ratio(position),
        "constant": 1.0 - float(position.square().sum()) / whole,
        "content_channels": content_channels[order].tolist(),
        "position_channels": position_channels[order].tolist(),
    }


def centred(rows: Tensor) -> Tensor:
    """Return rows (N, D) less their mean, in double precision."""
    rows = rows.double()
    return rows - rows.mean(0)


def overlap(first: Tensor, second: Tensor) -> float:
    """Return the Bhattacharyya coefficient of two sets' energies over channels: 1 for equal ones, 0 for disjoint ones.

    Args:
        first: (N, D), centred.
        second: (M, D), centred.

    Example:
        >>> overlap(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[0.0, 2.0], [0.0, -2.0]]))
        0.0
    """
    return float((by_channel(first) * by_channel(second)).sqrt().sum())


def by_channel(rows: Tensor) -> Tensor:
    """Return the part (D,) of the energy of centred rows (N, D) that is in each channel."""
    return rows.square().sum(0) / rows.square().sum()


def principal_directions(rows: Tensor, share: float = SHARE) -> Tensor:
    """Return the fewest principal directions (D, k) that hold a share of the energy of centred rows (N, D)."""
    _, values, directions = torch.linalg.svd(rows, full_matrices=False)
    held = values.square().cumsum(0) / values.square().sum()
    count = min(int((held < share - 1e-12).sum()) + 1, len(values))
    return directions[:count].T


def stable_rank(rows: Tensor) -> float:
    """Return the squared Frobenius norm over the squared spectral norm of rows (N, D)."""
    values = torch.linalg.svdvals(rows).square()
    return float(values.sum() / values.max())


def participation_ratio(rows: Tensor) -> float:
    """Return the number of directions that the energy of rows (N, D) is spread over: D if it is the same in all."""
    values = torch.linalg.svdvals(rows).square()
    return float(values.sum().square() / values.square().sum())
