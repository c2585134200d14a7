"""Ranks with intervals: constructed rows whose separable pairs are known."""

import pytest

from pebench.results.scorecard.ranks import Rank, ranks

SEEDS = range(8)


def row(mean: float, noise: float, phase: int) -> dict[int, float]:
    """Eight seeds around a mean; with another phase they scatter otherwise."""
    return {seed: mean + noise * (1 if (seed >> phase) % 2 else -1) for seed in SEEDS}


def intervals(rows: dict[str, dict[int, float]], higher_is_better: bool = False) -> dict[str, str]:
    return {label: rank.text for label, rank in ranks(rows, higher_is_better).items()}


def test_rows_that_are_all_separable_have_one_rank_each() -> None:
    rows = {"c": row(3.0, 0.01, 0), "a": row(1.0, 0.01, 1), "b": row(2.0, 0.01, 2)}
    assert intervals(rows) == {"a": "1", "b": "2", "c": "3"}
    assert intervals(rows, higher_is_better=True) == {"c": "1", "b": "2", "a": "3"}


def test_rows_of_which_no_two_are_separable_may_have_any_rank() -> None:
    rows = {"a": row(1.0, 1.0, 0), "b": row(1.01, 1.0, 1), "c": row(1.02, 1.0, 2)}
    assert intervals(rows) == {"a": "1 (1 to 3)", "b": "2 (1 to 3)", "c": "3 (1 to 3)"}


def test_two_that_are_not_separable_share_their_ranks_between_others_that_are() -> None:
    rows = {
        "best": row(1.0, 0.01, 0), "one": row(2.0, 0.1, 1), "other": row(2.01, 0.1, 2), "worst": row(3.0, 0.01, 0)
    }  # fmt: skip
    assert intervals(rows) == {"best": "1", "one": "2 (2 to 3)", "other": "3 (2 to 3)", "worst": "4"}


def test_separable_is_after_holms_correction_over_all_pairs() -> None:
    """The pair alone has p = 0.023; beside three rows that scatter widely it is one of ten pairs."""
    pair = {"a": dict.fromkeys(SEEDS, 1.0), "b": {seed: 1.0 + (seed - 1) / 10 for seed in SEEDS}}
    assert intervals(pair) == {"a": "1", "b": "2"}
    found = intervals(pair | {label: row(1.3, 0.9, phase) for phase, label in enumerate("cde")})
    assert (found["a"], found["b"]) == ("1 (1 to 5)", "2 (1 to 5)")


def test_the_middle_of_a_chain_may_lie_on_either_side() -> None:
    """The ends are separable and the middle is separable from neither."""
    rows = {"low": row(1.0, 0.1, 0), "middle": row(1.5, 1.5, 1), "high": row(2.0, 0.1, 2)}
    assert intervals(rows) == {"low": "1 (1 to 2)", "middle": "2 (1 to 3)", "high": "3 (2 to 3)"}


@pytest.mark.parametrize("other", [{0: 2.0}, {9: 2.0, 10: 2.1}])
def test_without_two_common_seeds_nothing_is_told_apart(other: dict[int, float]) -> None:
    assert intervals({"a": row(1.0, 0.01, 0), "b": other}) == {"a": "1 (1 to 2)", "b": "2 (1 to 2)"}


def test_an_interval_holds_the_place_by_the_mean() -> None:
    """At common seeds b is better, while a's other seeds make its mean the best."""
    rows = {"a": {**row(2.0, 0.01, 0), 20: -90.0}, "b": row(1.0, 0.01, 1)}
    assert ranks(rows, higher_is_better=False) == {"a": Rank(1, 1, 2), "b": Rank(2, 1, 2)}


def test_no_rows_have_no_ranks() -> None:
    assert ranks({}, higher_is_better=True) == {}
