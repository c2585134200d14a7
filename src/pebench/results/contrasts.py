"""Declared comparisons: equivalence within a margin, contrasts of two rows, and changes along a setting."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pebench.formatting import natural
from pebench.results.stats import ALPHA, Difference, Estimate, equivalence, estimate, holm, paired_difference
from pebench.results.tables import Table
from pebench.results.verdicts import Outcome, Verdict, verdict

Pair = tuple[str, str]
"""Labels of two rows: the first, and the one that is subtracted."""


@dataclass(frozen=True)
class Equivalence:
    """The test that a difference is small enough not to matter.

    Args:
        margin: The largest difference that does not matter, in the unit of the metric.
        p_adjusted: p-value of the test, after Holm's correction over the table; ``None`` with too few pairs.
    """

    margin: float
    p_adjusted: float | None

    @property
    def holds(self) -> bool:
        """True if the two may be called equivalent."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


@dataclass(frozen=True)
class Contrast:
    """Two rows that a suite declared to be compared.

    Args:
        first: Label of one.
        second: Label of the row that is subtracted.
        difference: Their difference at equal seeds.
        p_adjusted: p-value of the paired t-test, after Holm's correction over the table's contrasts.
        verdict: The finding on the first row beside the second.
        equivalent: The test that the difference is too small to matter; ``None`` without a margin.
    """

    first: str
    second: str
    difference: Difference
    p_adjusted: float | None
    verdict: Verdict
    equivalent: Equivalence | None


@dataclass(frozen=True)
class Change:
    """How the difference of two rows changes along a setting, from its first value to its last.

    Args:
        first: Label of one.
        second: Label of the row that is subtracted.
        ends: Their difference at the first value and at the last, at the seeds that all four rows have.
        difference: The last difference minus the first.
        p_adjusted: p-value of the paired t-test of the change, after Holm's correction over the comparisons of the
            series.
    """

    first: str
    second: str
    ends: tuple[Estimate, ...]
    difference: Difference
    p_adjusted: float | None

    @property
    def verdict(self) -> Verdict:
        """The finding on the change, if it is significant: narrower, wider, turned (its sign is another) or changed."""
        before, after = self.ends
        # Only whether it is significant is asked here, so the direction does not matter.
        found = verdict(self.difference, self.p_adjusted, higher_is_better=True)
        if not found.significant:
            return found
        if before.mean * after.mean < 0:
            # A difference that may be zero at one end has not been shown to have a sign there.
            signs = [end.half_width is not None and abs(end.mean) > end.half_width for end in self.ends]
            return Verdict(Outcome.TURNED if all(signs) else Outcome.CHANGED, found.n)
        # By size: which of the two rows is ahead is the same at both ends.
        return Verdict(Outcome.NARROWER if abs(after.mean) < abs(before.mean) else Outcome.WIDER, found.n)


@dataclass(frozen=True)
class Series:
    """Tables of one task that differ in one setting.

    Args:
        setting: The dotted name of the setting.
        tables: Tables by its value, in order.
        untested: The other values that the suite asked for.
    """

    setting: str
    tables: dict[Any, Table]
    untested: tuple[Any, ...] = ()

    @property
    def first(self) -> Table:
        """The table of the first value; its task, protocol and reference are those of all."""
        return next(iter(self.tables.values()))

    @property
    def ordered(self) -> list[Table]:
        """The tables alone."""
        return [*self.tables.values()]

    @property
    def labels(self) -> list[str]:
        """Every encoding of the tables."""
        return sorted({row.label for table in self.tables.values() for row in table.rows}, key=natural)

    def end_differences(self, pair: Pair) -> list[dict[int, float]]:
        """Return the difference of two rows by seed, at the first value and at the last, at seeds that all have.

        Less than two where a row is missing.
        """
        ends = []
        for table in (self.ordered[0], self.ordered[-1]):
            first, second = (table.row(label) for label in pair)
            if first and second:
                ends.append((first.values, second.values))
        # The same seeds at both ends: else their change would be one of seeds, too.
        shared = [set(first) & set(second) for first, second in ends]
        seeds = sorted(set.intersection(*shared)) if shared else []
        return [{seed: first[seed] - second[seed] for seed in seeds} for first, second in ends]


def equivalences(differences: Sequence[Difference], margin: float, declared: int) -> list[Equivalence]:
    """Test that differences are within a margin.

    Args:
        differences: Differences of one table.
        margin: The largest difference that does not matter, in the unit of the metric.
        declared: Number of comparisons to correct for, if more are declared than have runs.
    """
    adjusted = holm([equivalence(difference, margin) for difference in differences], declared)
    return [Equivalence(margin, p) for p in adjusted]


def compare_contrasts(
    pairs: Sequence[Pair], table: Table, margin: float | None, labels: Iterable[str]
) -> list[Contrast]:
    """Compare the rows that a suite declared to be compared, as far as a table has both at a seed.

    Args:
        pairs: The declared contrasts.
        table: The table whose rows they name.
        margin: The largest difference that does not matter; ``None`` without one.
        labels: The rows that the table has or is to have: contrasts of these are corrected for.
    """
    found: list[tuple[Pair, Difference]] = []
    for pair in pairs:
        first, second = (table.row(label) for label in pair)
        if first and second and (difference := paired_difference(first.values, second.values)):
            found.append((pair, difference))
    differences = [difference for _, difference in found]
    # Contrasts whose runs are still to come count too, so that no verdict changes only because others arrive.
    declared = len(possible_pairs(pairs, labels))
    # A family of their own: comparisons with the reference are corrected among themselves.
    adjusted = holm([difference.p_value for difference in differences], declared)
    small = [None] * len(found) if margin is None else equivalences(differences, margin, declared)
    return [
        Contrast(*pair, d, p, verdict(d, p, table.task.higher_is_better), equivalent)
        for (pair, d), p, equivalent in zip(found, adjusted, small, strict=True)
    ]


def compare_changes(
    series: Series, reference: str, contrasts: Sequence[Pair], labels_of: Callable[[Table], set[str]]
) -> list[Change]:
    """Compare the first and the last value of a setting in the differences to the reference and the contrasts.

    Args:
        series: Tables by the setting's value.
        reference: Label of the row that the others are compared to.
        contrasts: The declared contrasts.
        labels_of: Returns the rows that a table has or is to have.
    """
    of_tables = [labels_of(table) for table in series.ordered]
    labels = sorted(set[str]().union(*of_tables), key=natural)
    pairs = [(label, reference) for label in labels if label != reference]
    pairs += [(first, second) for first, second in contrasts]
    # Each once: a declared contrast may be one with the reference.
    pairs = possible_pairs(dict.fromkeys(pairs), of_tables[0] & of_tables[-1])
    found = []
    for pair in pairs:
        ends = series.end_differences(pair)
        if len(ends) == 2 and (change := paired_difference(ends[1], ends[0])):
            found.append((pair, tuple(estimate(end.values()) for end in ends), change))
    adjusted = holm([change.p_value for *_, change in found], len(pairs))
    return [Change(*pair, ends, change, p) for (pair, ends, change), p in zip(found, adjusted, strict=True)]


def possible_pairs(pairs: Iterable[Pair], labels: Iterable[str]) -> list[Pair]:
    """Return those pairs of which both labels are among some."""
    known = set(labels)
    return [pair for pair in pairs if known.issuperset(pair)]
