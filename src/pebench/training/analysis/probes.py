"""Probes: whether a linear map finds the token and its position again in each layer."""

from collections.abc import Iterator

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture
from pebench.training.analysis.shift import r_squared

FREQUENT = 256
"""Tokens that a probe tells apart: rarer ones occur too seldom to fit and to test."""

RIDGE = 1e-3
"""Ridge, relative to the mean variance of a channel."""


def probes(capture: Capture) -> dict[str, list[float] | float]:
    """Measure what linear probes read from each layer on examples that they were not fitted on.

    A class (a position; one of the most frequent tokens) is found by linear discriminant analysis, a quantity by ridge
    regression: both in closed form, so that every layer and model has the same budget.

    Returns:
        For each layer, and last for the input of the output layer: ``position``, the accuracy of the exact position;
        ``position_r2``, R² of its coordinates; ``content_r2``, R² of the content vector that entered; for text also
        ``token``, the accuracy over the most frequent tokens. ``position_chance`` and ``token_chance`` are those of the
        most frequent class.

    Source:
        Linear discriminant analysis: Hastie, Tibshirani and Friedman 2009, The Elements of Statistical Learning, 4.3.
    """
    places = torch.arange(capture.valid.shape[1], device=capture.valid.device).expand_as(capture.valid)
    found: dict[str, list[float] | float] = {"position": [], "position_r2": [], "content_r2": []}
    found["position_chance"] = _most_frequent(places[capture.held_out][capture.valid[capture.held_out]])
    tokens = None if capture.tokens is None else frequent(capture.tokens, capture.valid, capture.fit)
    if tokens is not None:
        found["token"] = []
        held_out = tokens[capture.held_out]
        found["token_chance"] = _most_frequent(held_out[held_out >= 0])
    for name, value in _by_layer(capture, places, tokens):
        found[name].append(value)  # type: ignore[union-attr]
    return found


def _by_layer(capture: Capture, places: Tensor, tokens: Tensor | None) -> Iterator[tuple[str, float]]:
    coordinates = capture.positions.double().expand(len(capture.valid), -1, -1)  # (L, P) to (B, L, P)
    for x in capture.vectors():
        x = x.double()
        yield "position", classify(x, places, capture.valid, capture)
        yield "position_r2", regress(x, coordinates, capture)
        yield "content_r2", regress(x, capture.content.double(), capture)
        if tokens is not None:
            yield "token", classify(x, tokens, tokens >= 0, capture)


def frequent(tokens: Tensor, valid: Tensor, fit: slice) -> Tensor:
    """Return ranks of tokens (B, L) by frequency; -1 at padding and for all but the most frequent tokens.

    Only examples that probes are fitted on are counted: no probe finds a token that it was not fitted on.
    """
    kinds, counts = tokens[fit][valid[fit]].unique(return_counts=True)
    chosen = kinds[counts.argsort(descending=True)[:FREQUENT]]
    ranks = torch.full((int(tokens.max()) + 1,), -1, device=tokens.device, dtype=torch.long)
    ranks[chosen] = torch.arange(len(chosen), device=tokens.device)
    return ranks[tokens].masked_fill(~valid, -1)


def _most_frequent(labels: Tensor) -> float:
    return float(labels.unique(return_counts=True)[1].max()) / len(labels)


def classify(x: Tensor, labels: Tensor, known: Tensor, capture: Capture) -> float:
    """Return the held-out accuracy of linear discriminant analysis.

    Args:
        x: (B, L, D) vectors.
        labels: (B, L), classes from 0.
        known: (B, L), True where there is a class.
        capture: Capture that says which examples are fitted on.
    """
    fit, test = known[capture.fit], known[capture.held_out]
    rows, classes = x[capture.fit][fit], labels[capture.fit][fit]
    count = int(labels[known].max()) + 1
    sizes = torch.zeros(count, dtype=x.dtype, device=x.device).index_add(0, classes, torch.ones_like(rows[:, 0]))
    means = torch.zeros(count, x.shape[-1], dtype=x.dtype, device=x.device).index_add(0, classes, rows)
    means = means / sizes.clamp(min=1)[:, None]
    within = rows - means[classes]
    weights = torch.linalg.solve(_ridged(within.T @ within / len(rows)), means.T)  # (D, classes)
    priors = (sizes / len(rows)).log()  # minus infinity for a class that was not seen: it is never chosen
    scores = x[capture.held_out][test] @ weights - 0.5 * (means.T * weights).sum(0) + priors
    return float((scores.argmax(-1) == labels[capture.held_out][test]).double().mean())


def regress(x: Tensor, targets: Tensor, capture: Capture) -> float:
    """Return the held-out R² of ridge regression from vectors (B, L, D) to targets (B, L, T)."""
    fit, test = capture.valid[capture.fit], capture.valid[capture.held_out]
    rows, wanted = x[capture.fit][fit], targets[capture.fit][fit]
    mean, aim = rows.mean(0), wanted.mean(0)
    centred = rows - mean
    weights = torch.linalg.solve(_ridged(centred.T @ centred / len(rows)), centred.T @ (wanted - aim) / len(rows))
    predicted = (x[capture.held_out][test] - mean) @ weights + aim
    return r_squared(predicted, targets[capture.held_out][test])


def _ridged(covariance: Tensor) -> Tensor:
    """Return a covariance (D, D) with a ridge, so that directions without variance do no harm."""
    ridge = RIDGE * covariance.diagonal().mean().clamp(min=1e-12)
    return covariance + ridge * torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
