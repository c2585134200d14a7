"""Ranks with intervals: constructed rows whose separable pairs are known."""

import random

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


def test_separable_is_after_correction_over_the_comparisons_of_a_row() -> None:
    """The pair alone has p = 0.023; beside a row that scatters widely it is one of two, beside three one of four."""
    pair = {"a": dict.fromkeys(SEEDS, 1.0), "b": {seed: 1.0 + (seed - 1) / 10 for seed in SEEDS}}
    assert intervals(pair) == {"a": "1", "b": "2"}
    wide = {label: row(1.3, 0.9, phase) for phase, label in enumerate("cde")}
    found = intervals(pair | {"c": wide["c"]})
    assert (found["a"], found["b"]) == ("1 (1 to 2)", "2 (2 to 3)")
    found = intervals(pair | wide)
    assert (found["a"], found["b"]) == ("1 (1 to 5)", "2 (1 to 5)")


def test_comparisons_of_other_rows_do_not_count() -> None:
    """With p = 0.012 a pair is separable among four rows, as one of three comparisons, not as one of six pairs."""
    pair = {"a": dict.fromkeys(SEEDS, 1.0), "b": {seed: 1.0 + (seed - 0.6) / 10 for seed in SEEDS}}
    found = intervals(pair | {label: row(1.3, 0.9, phase) for phase, label in enumerate("cd")})
    assert (found["a"], found["b"]) == ("1 (1 to 3)", "2 (2 to 4)")


def test_the_best_has_its_rank_alone_just_when_no_other_may_be_the_best() -> None:
    draw = random.Random(0)
    alone = []
    for _ in range(50):
        rows = {label: {seed: 2 * place + draw.gauss(0, 1) for seed in range(5)} for place, label in enumerate("abcd")}
        best, *others = ranks(rows, higher_is_better=True).values()
        alone.append(best.last == 1)
        assert alone[-1] == all(rank.first > 1 for rank in others)
    assert set(alone) == {True, False}


def test_the_best_of_equal_rows_is_left_out_as_rarely_as_is_said() -> None:
    """Ten equal rows with five seeds each, drawn two hundred times: the first is the best as much as any other."""
    draw = random.Random(0)
    left_out = 0
    for _ in range(200):
        rows = {str(label): {seed: draw.gauss(0, 1) for seed in range(5)} for label in range(10)}
        found = ranks(rows, higher_is_better=True)["0"]
        left_out += (found.first, found.last) != (1, 10)
    assert left_out <= 20  # 5 % are 10; twice as many have a chance of 0.2 %


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


def test_rows_with_equal_means_share_a_place() -> None:
    rows = {"b": row(1.0, 0.0, 0), "c": row(0.5, 0.01, 0), "a": row(1.0, 0.0, 0), "d": row(0.2, 0.01, 1)}
    assert intervals(rows, higher_is_better=True) == {"b": "1 (1 to 2)", "a": "1 (1 to 2)", "c": "3", "d": "4"}


def test_no_rows_have_no_ranks() -> None:
    assert ranks({}, higher_is_better=True) == {}
