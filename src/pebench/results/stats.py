"""Statistics over seeds: means with intervals, paired differences, tests of both, and Holm's correction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean
from typing import TypeVar

from pebench.tasks import ROUNDING

Place = TypeVar("Place", bound=float)

ALPHA = 0.05
"""Chance, over a whole table, of calling two equal encodings different (or two different ones equivalent)."""

MIN_PAIRS = 8
"""Fewest pairs with which equivalence is claimed: the standard deviation of fewer is hardly known."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Args:
        mean: The arithmetic mean.
        half_width: Half the width of its 95 % interval, in the unit of the values; ``None`` for one seed.
        n: Number of seeds.
    """

    mean: float
    half_width: float | None
    n: int


@dataclass(frozen=True)
class Difference(Estimate):
    """A mean over seeds of differences between two encodings at the same seed.

    Args:
        mean: The mean difference.
        half_width: Half the width of its 95 % interval; ``None`` for one seed.
        n: Number of seeds that both have.
        p_value: p-value of the paired t-test, two-sided, not adjusted; ``None`` for one seed.
    """

    p_value: float | None

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean; ``None`` for one seed."""
        return None if self.half_width is None else self.half_width / _t_quantile(self.n - 1)


def estimate(values: Iterable[float]) -> Estimate:
    """Return the mean with its 95 % Student-t interval.

    The half-width is t(0.975; n - 1) s / sqrt(n), with s the sample standard deviation.

    Args:
        values: One value per seed, at least one.

    Source:
        Student 1908, "The probable error of a mean", Biometrika 6(1).

    Example:
        >>> round(estimate([1.0, 2.0, 3.0]).half_width, 4)  # s = 1, t(0.975; 2) = 4.30265; 4.30265 / sqrt(3)
        2.4841
        >>> estimate([0.5])
        Estimate(mean=0.5, half_width=None, n=1)
    """
    sample = list(values)
    if len(sample) == 1:
        return Estimate(sample[0], None, 1)
    return Estimate(fmean(sample), _t_quantile(len(sample) - 1) * _standard_error(sample), len(sample))


def over_seeds(runs: Sequence[Mapping[Place, float]]) -> list[tuple[Place, float, float, float]]:
    """Return the places that all runs have, each with the mean, lowest and highest value there.

    Args:
        runs: One mapping per seed, from a place such as a step to a value.

    Example:
        >>> over_seeds([{500: 2.0, 1000: 1.0}, {500: 4.0}])
        [(500, 3.0, 2.0, 4.0)]
    """
    # Where one seed has no point, a mean of the others would jump without anything having happened.
    places = sorted(set.intersection(*map(set, runs))) if runs else []
    values = [[run[place] for run in runs] for place in places]
    return [(place, fmean(seeds), min(seeds), max(seeds)) for place, seeds in zip(places, values, strict=True)]


def paired_difference(values: Mapping[int, float], reference: Mapping[int, float]) -> Difference | None:
    """Return the mean of `values` minus `reference` over the seeds that both have; ``None`` if they share none.

    Args:
        values: Seed to value.
        reference: Seed to value of what is subtracted.

    Example:
        >>> d = paired_difference({0: 3.0, 1: 5.0, 2: 7.0, 9: 0.0}, {0: 2.0, 1: 3.0, 2: 4.0})  # 1, 2, 3
        >>> d.mean, d.n, round(d.half_width, 4), round(d.p_value, 4)  # t = 2 sqrt(3); p = 1 - t / sqrt(t^2 + 2)
        (2.0, 3, 2.4841, 0.0742)
        >>> paired_difference({0: 1.0}, {1: 1.0}) is None
        True
    """
    # At equal seeds two runs share data order, initial values and augmentation, and their difference is free of those.
    common = sorted(values.keys() & reference.keys())
    if not common:
        return None
    differences = [values[seed] - reference[seed] for seed in common]
    interval = estimate(differences)
    return Difference(interval.mean, interval.half_width, interval.n, _p_value(differences))


def _p_value(differences: Sequence[float]) -> float | None:
    """Return the two-sided p-value of a mean of zero by the t-test; ``None`` for fewer than two differences.

    Equal differences make t infinite or undefined. Fewer than `MIN_PAIRS` may be a coincidence of a small test
    set, whose metric takes few values, so they show nothing (p = 1); as many count as p = 0.
    """
    from scipy.special import stdtr  # 0.3 s: not needed to list or to run

    if len(differences) < 2:
        return None
    mean, error = fmean(differences), _standard_error(differences)
    # Relative to large means, absolute for small ones: metrics are in single precision, so equal ones differ in the
    # last digits.
    if error <= ROUNDING * max(1.0, abs(mean)):
        return 0.0 if abs(mean) > ROUNDING and len(differences) >= MIN_PAIRS else 1.0
    return float(2 * stdtr(len(differences) - 1, -abs(mean) / error))


def p_values_without_each(values: Mapping[int, float], reference: Mapping[int, float]) -> dict[int, float]:
    """Return the p-value of `paired_difference` without each seed, by that seed.

    Args:
        values: Seed to value.
        reference: Seed to value of what is subtracted; of the seeds that both have there must be three.

    Example:
        >>> first, reference = {0: 3.0, 1: 5.0, 2: 7.0}, {0: 2.0, 1: 3.0, 2: 4.0}
        >>> found = p_values_without_each(first, reference)
        >>> del first[1]
        >>> round(found[1], 4), round(paired_difference(first, reference).p_value, 4)
        (0.2952, 0.2952)
    """
    import numpy as np
    from scipy.special import stdtr

    seeds = sorted(values.keys() & reference.keys())
    differences = np.array([values[seed] - reference[seed] for seed in seeds])
    n, mean = len(seeds) - 1, differences.mean()
    away = differences - mean
    # In closed form for all seeds at once: pages ask for it in every row of every table.
    means, squares = mean - away / n, (away**2).sum() - away**2 * (n + 1) / n  # of the others, about their own mean
    errors = np.sqrt(np.maximum(squares, 0.0) / (n - 1) / n)
    known = errors > ROUNDING * np.maximum(1.0, abs(means))  # else equal but for rounding
    p = np.where((abs(means) > ROUNDING) & (n >= MIN_PAIRS), 0.0, 1.0)
    p[known] = 2 * stdtr(n - 1, -abs(means[known]) / errors[known])
    return dict(zip(seeds, p.tolist(), strict=True))


def equivalence(difference: Difference, margin: float) -> float | None:
    """Return the p-value of two one-sided paired t-tests that the true difference is a margin or larger.

    It is the larger of the p-values against -margin and against +margin. Below 5 %, the 90 % interval of the
    difference lies within the margin.

    Args:
        difference: Paired difference of an encoding to the reference.
        margin: The largest difference that does not matter, in the unit of the values.

    Returns:
        The p-value, not adjusted; ``None`` with fewer than `MIN_PAIRS` pairs.

    Source:
        Schuirmann 1987, "A comparison of the two one-sided tests procedure and the power approach for assessing
        the equivalence of average bioavailability", J. Pharmacokinet. Biopharm. 15(6).

    Example:
        >>> half_width = 0.1 * 2.306004  # standard error 0.1, t(0.975; 8)
        >>> round(equivalence(Difference(0.2, half_width, 9, 0.08), 0.386), 3)  # t = (0.2 - 0.386) / 0.1 = -1.86
        0.05
    """
    from scipy.special import stdtr

    error = difference.standard_error
    if difference.n < MIN_PAIRS or error is None:
        return None
    # Of the two one-sided tests the one against the nearer margin has the larger p-value.
    distance = abs(difference.mean) - margin
    if error <= ROUNDING * max(1.0, abs(difference.mean)):
        return 0.0 if distance < 0 else 1.0  # without scatter the mean alone decides
    return float(stdtr(difference.n - 1, distance / error))


def _standard_error(sample: Sequence[float]) -> float:
    mean = fmean(sample)  # statistics.stdev, which adds fractions, takes seven times as long
    return sqrt(fsum((x - mean) ** 2 for x in sample) / (len(sample) - 1) / len(sample))


def _t_quantile(degrees: int) -> float:
    """Return t(0.975) with this many degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - ALPHA / 2))


def holm(p_values: Sequence[float | None], declared: int = 0) -> list[float | None]:
    """Adjust p-values so that the chance of any false finding among all comparisons stays at its level.

    The k-th smallest of m is multiplied by m - k + 1, never falling below a smaller one's, at most 1.

    Args:
        p_values: p-values by comparison; ``None`` where nothing was tested, which stays ``None`` and does not count.
        declared: Number of comparisons that were meant, if more than were tested. The others count as if they found
            nothing, so that a verdict given early is not taken back for their number alone.

    Source:
        Holm 1979, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6(2).

    Example:
        >>> holm([0.03, None, 0.01, 0.5])  # 2 * 0.03, 3 * 0.01, 1 * 0.5
        [0.06, None, 0.03, 0.5]
        >>> holm([0.03], declared=3)
        [0.09]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    count, largest = max(len(tested), declared), 0.0
    for rank, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, (count - rank) * p))  # a larger p-value is never adjusted below a smaller one
        adjusted[place] = largest
    return adjusted
