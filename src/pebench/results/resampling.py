"""Bootstrap over seeds: interquartile means, average ranks and probabilities of improvement of resampled runs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DIGITS = 5
"""Digits of scores that are ranked: metrics in single precision that are equal but for rounding are a tie."""

CHUNK = 400_000
"""Drawn runs held in memory at a time."""


def normalised(values: "Array") -> "Array":
    """Scale values to scores: 0 for the worst, 1 for the best, 1 for all if they are equal; NaN stays.

    Args:
        values: Values of any shape, more being better.

    Example:
        >>> import numpy as np
        >>> normalised(np.array([[2.0, 4.0], [3.0, np.nan]])).tolist()
        [[0.0, 1.0], [0.5, nan]]
    """
    import numpy as np

    known = values[np.isfinite(values)]
    if not known.size or known.min() == known.max():
        return values * 0 + 1  # not ones: what is NaN stays NaN
    return (values - known.min()) / (known.max() - known.min())


def interquartile_mean(scores: "Array") -> float:
    """Return the mean without the lowest and the highest quarter, each rounded down to whole runs.

    Example:
        >>> import numpy as np
        >>> interquartile_mean(np.array([9.0, 1.0, 2.0, 3.0, 4.0, -9.0]))  # without -9 and 9
        2.5
    """
    from scipy.stats import trim_mean

    return float(trim_mean(scores, 0.25, axis=None))


def resampled(
    scores: Sequence["Array"], reference: int | None, replicates: int
) -> Iterator[tuple["Array", "Array", "Array"]]:
    """Yield the `figures` of resamples of the seeds of each task, some at a time."""
    import numpy as np

    bits = np.random.PCG64(0)  # its raw stream is the same in every version of numpy, so pages can be made again
    step = max(1, CHUNK // sum(values.shape[1] for values in scores))
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        counts = []
        for n in (values.shape[1] for values in scores):
            # The remainder of 64 random bits favours low numbers by less than n in 2^64.
            drawn = (bits.random_raw(size * n) % np.uint64(n)).astype(np.int64).reshape(size, n)
            # Each resample gets n bins of its own, so that one count does all of them.
            flat = drawn + n * np.arange(size)[:, None]
            counts.append(np.bincount(flat.ravel(), minlength=size * n).reshape(size, n).astype(np.float64))
        yield figures(scores, counts, reference)


def figures(
    scores: Sequence["Array"], counts: Sequence["Array"], reference: int | None
) -> tuple["Array", "Array", "Array"]:
    """Return interquartile means, average ranks and probabilities of improvement of weighted seeds.

    Nothing is drawn or sorted for each resample: a seed's weight is how often it was drawn.

    Args:
        scores: Scores (encodings, seeds) of each task.
        counts: Times that each seed counts (resamples, seeds), of each task.
        reference: Place of the encoding to improve on.

    Returns:
        Each of shape (resamples, encodings).
    """
    import numpy as np
    from scipy.stats import rankdata

    together, weights = np.concatenate(scores, axis=1), np.concatenate(counts, axis=1)
    iqm = np.stack([_weighted_iqm(row, weights) for row in together], axis=1)
    means = [weight @ values.T / values.shape[1] for values, weight in zip(scores, counts, strict=True)]
    rank = np.mean([rankdata(-np.round(mean, DIGITS), axis=1) for mean in means], axis=0)
    improvement = np.full_like(iqm, 0.5)  # without a reference nobody asks for it
    if reference is not None:
        parts = [_improvement(v, v[reference], weight) for v, weight in zip(scores, counts, strict=True)]
        improvement = np.mean(parts, axis=0)
    return iqm, rank, improvement


def _weighted_iqm(scores: "Array", weights: "Array") -> "Array":
    """Return the `interquartile_mean` of repeated scores (runs,) for each line of weights (resamples, runs)."""
    import numpy as np

    order = np.argsort(scores, kind="stable")
    cut = scores.size // 4
    passed = np.cumsum(weights[:, order], axis=1)  # how many runs lie at or below a score
    np.clip(passed, cut, scores.size - cut, out=passed)
    # the sum of scores times kept runs, which are the steps of what has passed, by parts
    ends = (scores.size - cut) * scores[order[-1]] - cut * scores[order[0]]
    return (ends - passed[:, :-1] @ np.diff(scores[order])) / (scores.size - 2 * cut)


def _improvement(scores: "Array", reference: "Array", weights: "Array") -> "Array":
    """Return how often a run of each encoding scores above one of the reference (resamples, encodings)."""
    import numpy as np

    order = np.argsort(reference, kind="stable")
    passed = np.cumsum(weights[:, order], axis=1)
    passed = np.concatenate([np.zeros((len(passed), 1)), passed], axis=1)
    found = []
    for row in scores:
        below, upto = (np.searchsorted(reference[order], row, side=side) for side in ("left", "right"))
        # Runs of the reference strictly below, and up to and with ties: their mean counts a tie as half.
        found.append(np.einsum("ij,ij->i", weights, passed[:, below] + passed[:, upto]) / 2 / row.size**2)
    return np.stack(found, axis=1)
