"""Ranks of a column's rows, each with the ranks that it may have, given which rows are separable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pebench.results.stats import ALPHA, estimate
from pebench.results.tables.comparing import differences_of_pairs
from pebench.tasks import ROUNDING

Values = Mapping[int, float]
"""Seed to value."""


FEWEST = 3
"""Fewest seeds that a ranked row has in common with most others."""


@dataclass(frozen=True)
class Rank:
    """Place of a row among others; 1 is the best.

    Args:
        place: Place by the mean; rows with equal means share one.
        first: The best place that it may have: one more than there are rows that are separably better.
        last: The worst: as many as there are rows, less those that are separably worse.
    """

    place: int
    first: int
    last: int

    @property
    def text(self) -> str:
        """The place with its interval: ``3 (2 to 7)``, or ``3`` where it may have no other."""
        return f"{self.place}" if self.first == self.last else f"{self.place} ({self.first} to {self.last})"


def may_be_ranked(values: Mapping[str, Values], failed: Mapping[str, int]) -> dict[str, Values]:
    """Return the rows that can be ranked: no run failed, and most rows share three or more of their seeds.

    The runs of a row that did not fail are those that went well. With one seed, or with other seeds than all others,
    no row is separably better than even the worst one.

    Args:
        values: Label to seed to value, for rows with a value.
        failed: Label to number of failed runs; rows without any may be left out.
    """
    counts = Counter(seed for seeds in values.values() for seed in seeds)
    shared = {seed for seed, count in counts.items() if count > len(values) / 2}
    return {
        label: seeds
        for label, seeds in values.items()
        if len(shared & seeds.keys()) >= FEWEST and not failed.get(label, 0)
    }


def separable_pairs(values: Mapping[str, Values], higher_is_better: bool) -> Iterator[tuple[str, str]]:
    """Yield the pairs of rows that are separable, the better one first; see `ranks`."""
    for (one, other), difference in differences_of_pairs(values).items():
        if difference.p_value is not None and difference.p_value * (len(values) - 1) < ALPHA:
            yield (one, other) if (difference.mean > 0) == higher_is_better else (other, one)


def ranks(
    values: Mapping[str, Values], higher_is_better: bool, pairs: Iterable[tuple[str, str]] | None = None
) -> dict[str, Rank]:
    """Return the rank of every row, the best mean first, with the interval of its rank.

    Two rows are separable if their paired t-test has p < 5 % after Bonferroni's correction over the comparisons of a
    row with all others. Each interval holds its row's true rank with 95 % confidence, as that of a mean holds the mean:
    it misses only if a row is called separable that is equal, or on the other side, of which the correction keeps the
    chance below 5 %. The rows that may be the first hold the best one with the same confidence. Holm's correction would
    call a pair separable by the comparisons of one of its rows and not by those of the other.
    Rows with one seed, or without a common seed, cannot be told apart.

    Args:
        values: Label to seed to value, for rows with a value.
        higher_is_better: The direction of the metric.
        pairs: The pairs of `separable_pairs`, where they are known; else they are found here.

    Source:
        Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for Ranks", Review of Economic Studies 91(1), the marginal
        confidence set, which takes a bootstrap for the comparisons; https://doi.org/10.1093/restud/rdad006.

    Example:
        >>> rows = {"a": {0: 1.0, 1: 1.1, 2: 1.2}, "b": {0: 5.0, 1: 5.1, 2: 5.2001}, "c": {0: 1.3, 1: 1.0, 2: 1.5}}
        >>> [(label, rank.text) for label, rank in ranks(rows, higher_is_better=False).items()]
        [('a', '1 (1 to 2)'), ('c', '2 (1 to 2)'), ('b', '3')]
    """
    means = {label: estimate(seeds.values()).mean for label, seeds in values.items()}
    order = sorted(values, key=lambda label: means[label], reverse=higher_is_better)
    better, worse = dict.fromkeys(values, 0), dict.fromkeys(values, 0)  # numbers of rows separably better, and worse
    for winner, loser in separable_pairs(values, higher_is_better) if pairs is None else pairs:
        better[loser] += 1
        worse[winner] += 1
    found: dict[str, Rank] = {}
    place, last = 0, None  # of the row before
    for number, label in enumerate(order, start=1):
        if last is None or abs(means[label] - last) > ROUNDING:
            place, last = number, means[label]
        # with other seeds in each row a mean may lie outside
        found[label] = Rank(place, min(place, 1 + better[label]), max(place, len(order) - worse[label]))
    return found
