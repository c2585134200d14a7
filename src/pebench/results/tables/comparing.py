"""Comparisons within a table: of every row with the reference, of every two rows, and with single seeds left out."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pebench.results.stats import ALPHA, Difference, holm, p_values_without_each, paired_difference
from pebench.results.tables.row import Row
from pebench.results.verdicts import verdict

ENOUGH = 5
"""Fewest seeds with which a page lists the differences that hang on single ones; with fewer almost all do."""


def compare_to_reference(
    rows: Sequence[Row], higher_is_better: bool, reference: str, declared: int = 0
) -> tuple[Row, ...]:
    """Return the rows with their differences to the reference.

    Args:
        rows: The rows of one table.
        higher_is_better: The direction of the metric.
        reference: Label of the row that the others are compared to.
        declared: Number of comparisons to correct for, if more are declared than have runs.
    """
    values = _values_of(rows, reference)
    # A reference compared with itself would add a comparison to Holm's correction.
    differences = [None if row.label == reference else paired_difference(row.values, values) for row in rows]
    adjusted = holm([d.p_value if d else None for d in differences], declared)
    return tuple(
        replace(row, difference=d, p_adjusted=p, verdict=verdict(d, p, higher_is_better) if d else None)
        for row, d, p in zip(rows, differences, adjusted, strict=True)
    )


def _values_of(rows: Sequence[Row], label: str) -> Mapping[int, float]:
    """Return seed to value of a row; nothing if it is not there."""
    return next((row.values for row in rows if row.label == label), {})


def compare_pairs(
    values: Mapping[str, Mapping[int, float]], declared: int = 0
) -> dict[tuple[str, str], tuple[Difference, float | None]]:
    """Return two labels to the later row minus the earlier one, and its p-value after Holm's correction.

    Args:
        values: Label to seed to value, for the rows of one table.
        declared: Number of pairs to correct for, if more are declared than have runs.
    """
    found = differences_of_pairs(values)
    p_values = holm([difference.p_value for difference in found.values()], declared)
    return {pair: (found[pair], p) for pair, p in zip(found, p_values, strict=True)}


def differences_of_pairs(values: Mapping[str, Mapping[int, float]]) -> dict[tuple[str, str], Difference]:
    """Return two labels to the later row minus the earlier one; rows without a common seed have no difference."""
    pairs = itertools.combinations(values, 2)
    found = {(later, earlier): paired_difference(values[later], values[earlier]) for earlier, later in pairs}
    return {pair: difference for pair, difference in found.items() if difference}


def fragile_rows(rows: Sequence[Row], reference: str, declared: int) -> dict[str, int]:
    """Return the rows called different that would not be with one seed less, each with how many seeds do that.

    Args:
        rows: The rows of one table, compared to the reference.
        reference: Label of the row that the others are compared to.
        declared: Number of comparisons that their p-values are corrected for.
    """
    compared = [(row, row.difference) for row in rows if row.difference]
    counts = {
        row.label: 0
        for row, difference in compared
        if row.p_adjusted is not None and row.p_adjusted < ALPHA and difference.n >= ENOUGH
    }
    if not counts:
        return {}
    values = _values_of(rows, reference)
    without = {  # of two seeds none can be left out
        row.label: p_values_without_each(row.values, values) if difference.n > 2 else {} for row, difference in compared
    }
    for seed in {seed for p_values in without.values() for seed in p_values}:
        # a row that lacks the seed keeps its p-value: Holm's family is the same whichever seed is left out
        p_values = [without[row.label].get(seed, difference.p_value) for row, difference in compared]
        for (row, _), p in zip(compared, holm(p_values, declared), strict=True):
            if row.label in counts and seed in without[row.label] and p is not None and p >= ALPHA:
                counts[row.label] += 1
    return {label: count for label, count in counts.items() if count}
