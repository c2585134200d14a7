"""Attention by distance: how far, on average, a head looks."""

import torch
from torch import Tensor

from pebench.training.analysis.capture import Capture
from pebench.training.analysis.logits import layer_logits


def attention(capture: Capture) -> dict[str, list[list[float]]] | None:
    """Measure the mean distance of attention, and its entropy, by layer and head.

    Distances are Euclidean, in tokens or patches. ``uniform`` is the distance of a head that looks at all keys alike;
    ``entropy`` is relative to such a head's: 1 for uniform attention, 0 for one key.

    Returns:
        ``distance``, ``uniform`` and ``entropy``, each with a number for each layer and head; None where the encoding's
        hook is not affine in queries and keys.
    """
    distances = torch.cdist(capture.positions.float(), capture.positions.float())  # (L, L)
    found: dict[str, list[list[float]]] = {"distance": [], "uniform": [], "entropy": []}
    try:
        for layer in capture.layers:
            sums: dict[str, list[Tensor]] = {name: [] for name in found}
            count = 0
            for logits in layer_logits(capture, layer):
                queries = logits.allowed.any(-1)  # (B, 1, L)
                for name, values in _of_queries(logits.total, logits.allowed, distances).items():
                    sums[name].append((values * queries).sum((0, 2)).double())  # (H,)
                count += int(queries.sum())
            for name, parts in sums.items():
                found[name].append((torch.stack(parts).sum(0) / count).tolist())
    except ValueError:
        return None
    return found


def _of_queries(total: Tensor, allowed: Tensor, distances: Tensor) -> dict[str, Tensor]:
    """Return each figure for every query: (B, H, L)."""
    # A finite number: a row of padding alone must stay a number, which its query's weight of 0 then removes.
    weights = total.masked_fill(~allowed, -1e30).softmax(-1)
    uniform = (allowed / allowed.sum(-1, keepdim=True).clamp(min=1)).expand_as(weights)
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)
    largest = allowed.sum(-1).clamp(min=2).log()  # of one key it is 0, and the ratio 0 too
    return {
        "distance": (weights * distances).sum(-1),
        "uniform": (uniform * distances).sum(-1),
        "entropy": entropy / largest,
    }
