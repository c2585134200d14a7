"""Shares of the products of content, position and constants in the attention logits, by layer and head."""

from collections.abc import Iterable

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture
from pebench.training.analysis.logits import Logits, layer_logits

Shares = dict[str, list[float | None]]


def terms(capture: Capture) -> dict[str, list[list[float | None]]] | None:
    """Measure how much each product of content and position contributes to the keys that a query prefers.

    Softmax ignores what is the same for all keys of a query, so that logits are centred over the keys that it may look
    at. The share of a term is its covariance with their sum over the variance of their sum: the shares add up to 1, and
    a term that works against the others has a negative one.

    Returns:
        For each of ``content-content``, ``content-position`` (a query's content with a key's position),
        ``position-content``, ``position-position``, ``constant-content`` and ``constant-position`` (keys that every
        query prefers alike), ``bias`` (the encoding's term) and ``rest`` (keys' constants, which differ between keys
        only by the divisor of their norm, or where the encoding changes them): a share for each layer and head. None
        where the encoding's hook is not affine in queries and keys.

    Source:
        The four terms: Ke et al. 2020, equation 6, https://arxiv.org/abs/2006.15595.
    """
    found: dict[str, list[list[float | None]]] = {}
    try:
        for layer in capture.layers:
            for name, by_head in shares(layer_logits(capture, layer)).items():
                found.setdefault(name, []).append(by_head)
    except ValueError:
        return None
    return found


def shares(chunks: Iterable[Logits]) -> Shares:
    """Return the share of each term in the variance of centred logits, for each head; None for a head without any."""
    sums: dict[str, list[Tensor]] = {}
    wholes: list[Tensor] = []
    for logits in chunks:
        total = centred(logits.total, logits.allowed)
        wholes.append(total.square().sum((0, 2, 3)).double())
        for name, term in logits.terms.items():
            sums.setdefault(name, []).append((centred(term, logits.allowed) * total).sum((0, 2, 3)).double())
    variance = torch.stack(wholes).sum(0)  # (H,)
    found: Shares = {}
    for name, parts in sums.items():
        by_head = torch.stack(parts).sum(0) / variance
        found[name] = [float(share) if energy > 0 else None for share, energy in zip(by_head, variance, strict=True)]
    return found


def centred(values: Tensor, allowed: Tensor) -> Tensor:
    """Return values (B, H, L, L) less their mean over the keys that a query may look at; 0 at the others."""
    kept = values.masked_fill(~allowed, 0.0)
    mean = kept.sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True).clamp(min=1)
    return (kept - mean).masked_fill(~allowed, 0.0)
