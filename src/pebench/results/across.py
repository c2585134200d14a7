"""Encodings across tasks: normalised scores, average ranks, and their intervals and tests."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pebench.config import REFERENCE_ENCODING
from pebench.results.resampling import DIGITS, figures, interquartile_mean, normalised, resampled
from pebench.results.stats import ALPHA
from pebench.results.tables import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

REPLICATES = 2000
"""Resamples that an interval is made from, up to `ENOUGH` runs."""

ENOUGH = 10_000
"""With more runs there are fewer resamples, at least a tenth: intervals are then narrow, and drawing takes long."""

MIN_TASKS = 5
"""Fewest tasks whose ranks are tested: with fewer, the critical difference is wider than most lists are long."""


class Interval(NamedTuple):
    """A figure of all runs, and the middle 95 % of its resamples; no limits where a task has one seed."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Standing:
    """One encoding on all tasks.

    Args:
        label: Label of its row in the tables.
        iqm: Interquartile mean of its scores: their mean without the lowest and the highest quarter.
        rank: Mean over the tasks of its place by mean score; 1 is the best.
        improvement: Probability that a run of it scores above one of the reference on the same task, a tie
            counting half, averaged over tasks; ``None`` for the reference, or without one.
        failed: Runs that failed, whose score is 0.
        iqm_finished: `iqm` without them; ``None`` if all failed.
    """

    label: str
    iqm: Interval
    rank: Interval
    improvement: Interval | None
    failed: int
    iqm_finished: float | None


@dataclass(frozen=True)
class Summary:
    """Several encodings on the same tasks and seeds.

    A score is 0 for a task's worst finished run and 1 for its best, among the rows and seeds summarised.

    Args:
        rows: The encodings, best rank first.
        tasks: Name of each task to the number of seeds that all rows have.
        lacking: Encodings that are left out, each with the tasks that they have no runs of.
        unpaired: Runs that are left out because another row has none at their seed.
        replicates: Resamples that the intervals are made from.
        friedman_p: p-value of Friedman's test that all encodings are alike; ``None`` with too few tasks or encodings.
        critical_difference: Smallest significant difference of average ranks (Nemenyi, 5 %); ``None`` likewise.
        groups: Largest sets of encodings whose ranks do not differ significantly.
        reference: Label of the encoding that improvements are on.
    """

    rows: tuple[Standing, ...]
    tasks: dict[str, int]
    lacking: dict[str, tuple[str, ...]]
    unpaired: int
    replicates: int
    friedman_p: float | None = None
    critical_difference: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    reference: str = REFERENCE_ENCODING

    @property
    def fewest(self) -> int:
        """Number of seeds of the task that has fewest; with one there are no intervals."""
        return min(self.tasks.values())


def comparable(tables: Iterable[Table]) -> list[list[Table]]:
    """Group tables of different tasks by their rules: protocol, tier, regime, selection, and changes to budgets.

    Learning rates may differ between tasks, as those of their budgets do, where each task has one table. Tables that
    compare with no other are left out.
    """
    groups = []
    for group in _grouped(tables, ("train.learning_rate",)):
        each = len({table.task.name for table in group}) == len(group)
        groups += [group] if each else _grouped(group, ())
    return [group for group in groups if len(group) > 1]


def _grouped(tables: Iterable[Table], apart: Sequence[str]) -> list[list[Table]]:
    """Group tables by their rules, but for some settings."""
    groups: dict[tuple[Any, ...], list[Table]] = {}
    for table in tables:
        # Changes to the budget, not settings: budgets differ between tasks, and what was changed must be the same on
        # all.
        config, changed = table.config, {name: value for name, value in table.settings.items() if name not in apart}
        rules = table.protocol, config.tier, config.regime, config.selected, json.dumps(changed, sort_keys=True)
        groups.setdefault(rules, []).append(table)
    return [*groups.values()]


def summarise(tables: Sequence[Table]) -> Summary | None:
    """Return scores, ranks and intervals of encodings across the tasks of comparable tables.

    Args:
        tables: Tables of one protocol, tier and regime; see `comparable`.

    Returns:
        ``None`` unless the tables compare, and two encodings have runs of every task at a common seed.

    Source:
        Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", sec. 4
        (interquartile mean, probability of improvement, bootstrap within tasks). Unlike there, the encodings of a
        task are resampled together, since their runs are paired by seed.
    """
    import numpy as np

    groups = comparable(tables)
    if len(groups) != 1:
        return None
    (tables,) = groups
    lacking = _lacking(tables)
    labels = sorted({row.label for table in tables for row in table.rows} - lacking.keys())
    # A row that lacks a seed would be compared on other draws of data order than the rest.
    seeds = [_common_seeds(table, labels) for table in tables]
    if len(labels) < 2 or not all(seeds):
        return None
    runs = [_values(table, labels, common) for table, common in zip(tables, seeds, strict=True)]
    scores = [np.nan_to_num(normalised(values)) for values in runs]  # a failed run's is 0
    finished = np.concatenate([np.isfinite(values) for values in runs], axis=1)
    # Fewer, the more runs there are beyond `ENOUGH`: drawing takes about as long as with that many.
    replicates = max(REPLICATES // 10, min(REPLICATES, REPLICATES * ENOUGH // finished.size))
    reference = tables[0].reference
    rows = _standings(labels, scores, finished, labels.index(reference) if reference in labels else None, replicates)
    runs_of_rows = sum(len(row.records) for table in tables for row in table.rows if row.label not in lacking)
    return Summary(
        tuple(sorted(rows, key=lambda row: (row.rank.mean, row.label))),
        {table.task.name: len(common) for table, common in zip(tables, seeds, strict=True)},
        lacking,
        runs_of_rows - finished.size,
        replicates,
        *_test_ranks(labels, np.stack([values.mean(axis=1) for values in scores])),
        reference=reference,
    )


def _lacking(tables: Sequence[Table]) -> dict[str, tuple[str, ...]]:
    """Return the encodings that some tables have no row of, each with the tasks of these."""
    found = {}
    for label in sorted({row.label for table in tables for row in table.rows}):
        if tasks := tuple(table.task.name for table in tables if table.row(label) is None):
            found[label] = tasks
    return found


def _standings(
    labels: Sequence[str], scores: Sequence["Array"], finished: "NDArray[np.bool_]", reference: int | None,
    replicates: int,
) -> list[Standing]:  # fmt: skip
    """Return the figures of each encoding with their intervals.

    Args:
        labels: The encodings.
        scores: Scores (encodings, seeds) of each task.
        finished: True for runs that did not fail (encodings, seeds of all tasks).
        reference: Place of the encoding to improve on; ``None`` without one.
        replicates: Number of resamples to make intervals from.
    """
    import numpy as np

    # Each seed counted once: the figures of the runs themselves, by the function that makes those of the resamples.
    whole = figures(scores, [np.ones((1, values.shape[1])) for values in scores], reference)
    drawn = [np.concatenate(parts) for parts in zip(*resampled(scores, reference, replicates), strict=True)]
    limits = [np.quantile(values, [ALPHA / 2, 1 - ALPHA / 2], axis=0) for values in drawn]
    one_seed = min(values.shape[1] for values in scores) < 2  # there is nothing else to draw
    together = np.concatenate(scores, axis=1)
    rows = []
    for place, label in enumerate(labels):
        intervals = []
        for figure, (low, high) in zip(whole, limits, strict=True):
            ends = (None, None) if one_seed else (float(low[place]), float(high[place]))
            intervals.append(Interval(float(figure[0, place]), *ends))
        iqm, rank, improvement = intervals
        known = finished[place]
        rows.append(
            Standing(
                label, iqm, rank, improvement if reference not in (None, place) else None,
                int((~known).sum()), interquartile_mean(together[place, known]) if known.any() else None,
            )
        )  # fmt: skip
    return rows


def _common_seeds(table: Table, labels: Sequence[str]) -> list[int]:
    """Return the seeds at which all these rows have a run, finished or failed."""
    rows = [row.values.keys() | row.failed.keys() for row in table.rows if row.label in labels]
    return sorted(set.intersection(*map(set, rows))) if rows else []


def _values(table: Table, labels: Sequence[str], seeds: Sequence[int]) -> "Array":
    """Return the headline metric (encodings, seeds), its sign such that more is better; NaN where a run failed."""
    import numpy as np

    sign, rows = (1.0 if table.task.higher_is_better else -1.0), {row.label: row.values for row in table.rows}
    return np.array([[sign * rows[label].get(seed, np.nan) for seed in seeds] for label in labels])


def _test_ranks(
    labels: Sequence[str], means: "Array"
) -> tuple[float | None, float | None, tuple[tuple[str, ...], ...]]:
    """Return Friedman's p-value, the critical difference and the groups that it leaves, where tasks are enough.

    Args:
        labels: The encodings.
        means: Mean scores (tasks, encodings).
    """
    import numpy as np
    from scipy.stats import friedmanchisquare, rankdata

    tasks, encodings = means.shape
    if tasks < MIN_TASKS or encodings < 3:
        return None, None, ()
    # Else two rows that are equal but for rounding in single precision would not share a rank.
    rounded = np.round(means, DIGITS)
    if (rounded == rounded[:, :1]).all():  # nothing to rank: the statistic would be 0 / 0
        return 1.0, critical_difference(encodings, tasks), (tuple(sorted(labels)),)
    p = float(friedmanchisquare(*rounded.T).pvalue)
    # Of the negative, as the highest score has rank 1.
    ranks = dict(zip(labels, rankdata(-rounded, axis=1).mean(axis=0).tolist(), strict=True))
    width = critical_difference(encodings, tasks)
    # Nemenyi's test follows a significant Friedman's alone; without one no ranks differ, and all rows are one group.
    return p, width, groups(ranks, width if p < ALPHA else float("inf"))


def critical_difference(encodings: int, tasks: int) -> float:
    """Return the smallest difference of two average ranks that is significant at 5 %, whichever two are compared.

    q sqrt(k (k + 1) / 6 N), with q the quantile of the studentized range of k values over sqrt 2.

    Args:
        encodings: Number of encodings that are ranked, k.
        tasks: Number of rankings, N.

    Source:
        Nemenyi 1963; Demšar 2006, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7,
        sec. 3.2.2.

    Example:
        >>> round(critical_difference(4, 14), 2)  # Demšar's: 2.569 sqrt(4 * 5 / (6 * 14))
        1.25
    """
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - ALPHA, encodings, float("inf")) / 2**0.5
    return float(quantile * (encodings * (encodings + 1) / (6 * tasks)) ** 0.5)


def groups(ranks: dict[str, float], width: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest sets of at least two encodings whose ranks differ by less than a width.

    Example:
        >>> groups({"a": 1.0, "b": 1.5, "c": 2.25, "d": 4.0}, 1.0)
        (('a', 'b'), ('b', 'c'))
    """
    order = sorted(ranks, key=lambda name: (ranks[name], name))
    found: list[tuple[str, ...]] = []
    for start, name in enumerate(order):
        members = tuple(other for other in order[start:] if ranks[other] - ranks[name] < width)
        # Rows stand by rank, so a set that is part of another is part of the last one.
        if len(members) > 1 and not (found and set(members) <= set(found[-1])):
            found.append(members)
    return tuple(found)
