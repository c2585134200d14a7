"""Collisions: whether a sum of a token and a position comes near the sum of another token and another position."""

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture

QUERIES, NEAR_POSITIONS, KINDS = 1024, 128, 2048
"""Sums that are looked at; positions and kinds of content that they are compared with."""


def collisions(capture: Capture) -> dict[str, float] | None:
    """Measure how near sums of content and position come to those of other content.

    For sampled pairs of content and position, the nearest sum of *other* content at any position is searched.
    ``margin`` is the median distance to it, and ``smallest`` the smallest one, relative to the mean norm of content;
    ``margin_alone`` is the median without positions, where only content can be near content. ``same_content`` is the
    part of pairs whose nearest other sum has the same content at another position: 1 if position moves a word less
    than another word differs from it.

    Returns:
        The figures above; None where position does not enter at the input.
    """
    if capture.position is None:
        return None
    content = kinds_of_content(capture)
    return measure_collisions(content.double(), capture.position[:NEAR_POSITIONS].double())


def kinds_of_content(capture: Capture) -> Tensor:
    """Return the content vectors (N, D) of different tokens, the most frequent ones, or of patches at random.

    They are the same tokens or patches for every model, whatever vectors it has for them.
    """
    rows = capture.rows()
    if capture.tokens is None:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:KINDS]
        return torch.unique(rows[order.to(rows.device)], dim=0)  # some patches are equal, such as those of one color
    tokens, inverse, counts = capture.tokens[capture.valid].unique(return_inverse=True, return_counts=True)
    first = torch.full((len(tokens),), len(inverse), dtype=torch.long).scatter_reduce(
        0, inverse.cpu(), torch.arange(len(inverse)), "amin"
    )  # where each token occurs first
    return rows[first.to(rows.device)][counts.argsort(descending=True)][:KINDS]


def measure_collisions(content: Tensor, position: Tensor, queries: int = QUERIES) -> dict[str, float]:
    """Return the figures of `collisions` for content (N, D), each row another, and positions (L, D)."""
    generator = torch.Generator().manual_seed(0)
    kinds = torch.randint(len(content), (queries,), generator=generator)
    places = torch.randint(len(position), (queries,), generator=generator)
    sums = content[kinds] + position[places]  # (Q, D)
    other = torch.full((queries,), torch.inf, dtype=content.dtype)
    same = other.clone()
    for place, vector in enumerate(position):  # a block at a time: all sums together would not fit in memory
        distances = torch.cdist(sums, content + vector)  # (Q, N)
        own = distances.gather(1, kinds[:, None])[:, 0]
        same = torch.where(places == place, same, torch.minimum(same, own))
        other = torch.minimum(other, distances.scatter(1, kinds[:, None], torch.inf).amin(1))
    alone = torch.cdist(content[kinds], content).scatter(1, kinds[:, None], torch.inf).amin(1)
    norm = float(content.norm(dim=1).mean())
    return {
        "margin": float(other.median()) / norm,
        "smallest": float(other.min()) / norm,
        "margin_alone": float(alone.median()) / norm,
        "same_content": float((same < other).double().mean()),
    }
