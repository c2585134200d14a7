"""The variance that test examples add to a mean difference between two encodings."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from pebench.results.stats import ALPHA, Difference
from pebench.results.tables import Row, Table

BLOCKS = 60
"""Parts of equal length into which running text is cut: WikiText-2's test split has as many articles."""

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Outcome:
    """The score of every test example in one run.

    Args:
        key: The run's key.
        metric: The metric of the whole split, as the run measured it.
        scores: (N,) 1 where an example was classified rightly, else 0; of a window of text its loss in bits.
        sizes: (N,) bytes of a window's text; 1 for an example that was classified.
        device: Device that it ran on.
    """

    key: str
    metric: float
    scores: Sequence[float]
    sizes: Sequence[int]
    device: str = ""

    def __post_init__(self) -> None:
        mean = sum(self.scores) / sum(self.sizes)
        if not math.isclose(mean, self.metric, rel_tol=1e-4):
            raise RuntimeError(f"expected examples of {self.key} to have the mean {self.metric}, got {mean}")

    @property
    def units(self) -> tuple[Values, Values]:
        """Scores and sizes of units that may be taken for independent: examples, or blocks of running text."""
        scores, sizes = np.array(self.scores, float), np.array(self.sizes, float)
        if (sizes == 1).all():
            return scores, sizes
        edges = np.linspace(0, len(sizes), BLOCKS, endpoint=False).astype(int)
        return np.add.reduceat(scores, edges), np.add.reduceat(sizes, edges)


def variance_of_examples(first: Sequence[Outcome], second: Sequence[Outcome]) -> tuple[float, int]:
    """Return how much a mean difference, over any number of seeds, would vary with the test examples.

    Seeds and examples are crossed: the difference of one seed at one unit is a mean, a part of the seed, a part of the
    unit and a rest. The variance of the units' part is that of the means over seeds less what the rest adds to it. For
    running text a unit's value is its part of the ratio of sums that bits per byte are.

    Args:
        first: Outcomes of one encoding, seed by seed.
        second: Outcomes of the other, at the same seeds.

    Returns:
        The variance, of a mean over all units; and the number of units.

    Source:
        Cornfield and Tukey 1956, Average Values of Mean Squares in Factorials, Ann. Math. Stat. 27(4):907-949.

    Example:
        >>> right = lambda *scores: Outcome("", sum(scores) / 4, scores, [1] * 4)
        >>> variance_of_examples([right(1, 1, 0, 0)] * 2, [right(0, 1, 0, 0)] * 2)  # 1, 0, 0, 0: 0.25 over four
        (0.0625, 4)
        >>> variance_of_examples([right(1, 0, 0, 0), right(0, 0, 0, 1)], [right(0, 0, 0, 0)] * 2)  # units do not agree
        (0.0, 4)
    """
    sizes = first[0].units[1]
    differences = np.array([one.units[0] - other.units[0] for one, other in zip(first, second, strict=True)])
    ratios = differences.sum(1, keepdims=True) / sizes.sum()
    values = (differences - ratios * sizes) / sizes.mean()  # (seeds, units); each seed's mean is zero
    seeds, units = values.shape
    means = values.mean(0)
    rest = ((values - means) ** 2).sum() / ((seeds - 1) * (units - 1))
    return max(0.0, float(means.var(ddof=1) - rest / seeds) / units), units


@dataclass(frozen=True)
class Comparison:
    """A published difference to the reference, and the variance that test examples add to it.

    Args:
        row: Row of the published table.
        variance: Variance that examples add.
        units: Number of examples, or of blocks of text.
        seeds: Number of seeds that were trained again.
        moved: The largest difference between a published metric and that of the run trained again: rounding's doing.
    """

    row: Row
    variance: float
    units: int
    seeds: int
    moved: float

    @property
    def difference(self) -> Difference:
        """The difference over all published seeds, at the published examples."""
        assert self.row.difference is not None
        return self.row.difference

    @property
    def error(self) -> tuple[float, float]:
        """The standard error of the difference over seeds and test examples, and its degrees of freedom.

        Source:
            Satterthwaite 1946, An Approximate Distribution of Estimates of Variance Components, Biometrics 2(6).
        """
        assert self.difference.standard_error is not None
        last, of_seeds = self.difference.n - 1, self.difference.standard_error**2
        both = of_seeds + self.variance
        return both**0.5, both**2 / (of_seeds**2 / last + self.variance**2 / (self.units - 1))

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval over both."""
        error, degrees = self.error
        return float(stdtrit(degrees, 1 - ALPHA / 2) * error)

    def p_values(self, margin: float) -> tuple[float, float]:
        """Return the p-values over both of no difference, and of one as large as a margin or larger."""
        error, degrees = self.error
        size = abs(self.difference.mean)
        return float(2 * stdtr(degrees, -size / error)), float(stdtr(degrees, (size - margin) / error))


def comparisons(table: Table, found: Mapping[str, Outcome]) -> Iterator[Comparison]:
    """Yield the comparisons of a table for which two seeds or more were trained again.

    Args:
        table: Published table.
        found: Outcomes by key of the run.
    """
    runs = {}
    for row in table.rows:
        runs[row.label] = {record.config.seed: found.get(record.config.key) for record in row.records}
    for row in table.rows:
        pairs = [(runs[row.label][seed], runs[table.reference].get(seed)) for seed in runs[row.label]]
        known = [(one, other) for one, other in pairs if one and other]
        if row.difference and len(known) > 1:
            first, second = zip(*known, strict=True)
            moved = max(abs(run.metric - row.values[seed]) for seed, run in runs[row.label].items() if run)
            yield Comparison(row, *variance_of_examples(first, second), len(known), moved)
