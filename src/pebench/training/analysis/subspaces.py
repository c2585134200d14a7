"""Subspaces: the angle between the directions of content and those of position at the input."""

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture
from pebench.training.analysis.energies import centred, principal_directions


def subspaces(capture: Capture) -> dict[str, float] | None:
    """Measure how near to orthogonal content and position are; None where position does not enter at the input.

    Bases of many vectors span nearly the whole width, so that angles between whole spans say nothing. ``alignment``
    weights every pair of a content and a position vector by its energy: it is the mean squared cosine times D, 1 for
    random directions and 0 for orthogonal ones. ``angles`` compares the leading principal directions of both, which
    hold 90 % of the energy of position: their mean squared cosine, where random subspaces have ``angles_chance``.

    Source:
        Principal angles: Björck and Golub 1973, https://doi.org/10.2307/2005662.
    """
    if capture.position is None:
        return None
    content, position = centred(capture.rows()), centred(capture.position_rows())
    directions = principal_directions(position)
    rank, width = directions.shape[1], position.shape[1]
    leading = torch.linalg.svd(content, full_matrices=False)[2][:rank].T
    cosines = torch.linalg.svdvals(leading.T @ directions)
    return {
        "alignment": alignment(content, position),
        "angles": float(cosines.square().mean()),
        "angles_chance": rank / width,
        "largest_cosine": float(cosines.max()),
    }


def alignment(first: Tensor, second: Tensor) -> float:
    """Return D times the energy-weighted mean squared cosine of two sets of vectors (N, D) and (M, D).

    Example:
        >>> alignment(torch.eye(2), torch.eye(2))
        1.0
    """
    # ||F S^T||² = tr(F^T F S^T S): (D, D) each, where (N, M) would not fit in memory
    product = float(((first.T @ first) * (second.T @ second)).sum())
    return first.shape[1] * product / float(first.square().sum() * second.square().sum())
