"""The statistics against values computed by hand, by scipy or by simulation."""

import math
import random
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from scipy import stats as scipy_stats

from pebench.results.stats import (
    Difference,
    equivalence,
    estimate,
    holm,
    p_values_without_each,
    paired_difference,
)
from pebench.results.verdicts import verdict


def test_the_interval_is_students() -> None:
    result = estimate([60.0, 61.0, 62.0])
    assert (result.mean, result.n) == (61.0, 3)
    assert result.half_width == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)  # t(0.975; 2), s = 1


def test_two_seeds_have_a_wide_interval() -> None:
    assert estimate([1.0, 3.0]).half_width == pytest.approx(12.706205, rel=1e-6)  # t(0.975; 1), s / sqrt(2) = 1


def test_one_seed_has_no_interval() -> None:
    result = estimate([0.5])
    assert (result.mean, result.half_width, result.n) == (0.5, None, 1)


def test_the_order_of_seeds_does_not_change_a_bit() -> None:
    values = [0.1, 0.2, 0.3, 0.7, 1e-9]
    assert {estimate(random.sample(values, 5)) for _ in range(20)} == {estimate(values)}


def test_the_interval_holds_the_truth_in_95_of_100() -> None:
    draw = random.Random(0)
    samples = [estimate([draw.gauss(3.0, 2.0) for _ in range(4)]) for _ in range(2000)]
    assert sum(abs(s.mean - 3.0) <= s.half_width for s in samples) / 2000 == pytest.approx(0.95, abs=0.015)


def test_differences_are_taken_at_equal_seeds_only() -> None:
    result = paired_difference({0: 3.0, 1: 5.0, 2: 7.0, 9: -100.0}, {2: 4.0, 0: 2.0, 1: 3.0, 5: 100.0})
    assert (result.mean, result.n) == (2.0, 3)
    assert result.p_value == pytest.approx(1 - math.sqrt(12 / 14))  # two degrees: 1 - t / sqrt(t^2 + 2), t^2 = 12


def test_the_p_value_is_that_of_the_paired_t_test() -> None:
    a, b = [0.61, 0.64, 0.60, 0.66, 0.63], [0.60, 0.61, 0.61, 0.62, 0.60]
    ours = paired_difference(dict(enumerate(a)), dict(enumerate(b))).p_value
    assert ours == pytest.approx(scipy_stats.ttest_rel(a, b).pvalue, rel=1e-9)


def test_no_common_seed_gives_no_difference_and_one_gives_no_test() -> None:
    assert paired_difference({0: 1.0}, {1: 1.0}) is None
    assert paired_difference({0: 1.0}, {}) is None
    assert paired_difference({0: 3.0}, {0: 1.0}) == Difference(2.0, None, 1, None)


@pytest.mark.parametrize(("n", "shift", "p"), [(2, 0.01, 1.0), (7, 0.01, 1.0), (8, 0.01, 0.0), (8, 0.0, 1.0)])
def test_equal_differences_count_from_eight_seeds_on(n: int, shift: float, p: float) -> None:
    reference = {seed: 0.9 + 0.0123 * seed for seed in range(n)}
    assert paired_difference({seed: x + shift for seed, x in reference.items()}, reference).p_value == p


def test_equal_differences_in_single_precision_count_as_equal() -> None:
    """Errors of 2,000 texts, as a metric records them: one more each is no t of a million."""
    first, second = (
        {seed: torch.tensor(1 - (count + more) / 2000).item() for seed, count in enumerate((1, 2, 3))}
        for more in (0, 1)
    )
    assert len({second[seed] - first[seed] for seed in first}) > 1
    assert paired_difference(second, first).p_value == 1.0
    many = {seed: torch.tensor(1 - seed / 2000).item() for seed in range(10)}
    more = {seed: torch.tensor(1 - (seed + 1) / 2000).item() for seed in range(10)}
    assert paired_difference(more, many).p_value == 0.0
    assert set(p_values_without_each(more, many).values()) == {0.0}


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3p, 0.04 under 2 * 0.03, 2p, 4p


def test_holm_leaves_out_what_was_not_tested_and_stops_at_one() -> None:
    assert holm([None, 0.9, 0.8]) == [None, 1.0, 1.0]
    assert holm([]) == []


def test_holm_counts_what_has_not_run_as_if_it_found_nothing() -> None:
    for p_values in ([0.01], [0.02, 0.01, 0.3], [0.04, 0.04]):
        assert holm(p_values, len(p_values) + 3) == pytest.approx(holm([*p_values, 1.0, 1.0, 1.0])[: len(p_values)])
        assert holm(p_values, 1) == holm(p_values)


@pytest.mark.parametrize(
    ("mean", "p", "higher", "expected"),
    [
        (0.1, 0.049, True, "better"),
        (0.1, 0.049, False, "worse"),
        (-0.1, 0.0, True, "worse"),
        (-0.1, 0.0, False, "better"),
        (0.1, 0.05, True, "not separable at 5 seeds"),
        (0.1, None, True, "no test with 5 seeds"),
    ],
)
def test_the_verdict_follows_the_direction_of_the_metric(mean: float, p: float, higher: bool, expected: str) -> None:
    assert verdict(Difference(mean, 0.1, 5, p), p, higher).text == expected


def test_equivalence_by_hand() -> None:
    # differences of mean 0.25 and s = 0.5 over 9 pairs: error 1/6; (0.25 - 0.56) / (1/6) = -1.86 = t(0.05; 8)
    spread = [0.5 * x / math.sqrt(0.75) for x in (-1, 1, -1, 1, -1, 1, 0, 0, 0)]
    difference = paired_difference({s: 0.25 + x for s, x in enumerate(spread)}, dict.fromkeys(range(9), 0.0))
    assert equivalence(difference, 0.56) == pytest.approx(0.05, abs=1e-4)
    assert equivalence(replace(difference, mean=-0.25), 0.56) == equivalence(difference, 0.56)


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.03])
def test_equivalence_is_the_worse_of_two_one_sided_tests(margin: float) -> None:
    draw = random.Random(0)
    a, b = ([0.8 + draw.gauss(0, 0.01) for _ in range(10)] for _ in range(2))
    ours = equivalence(paired_difference(dict(enumerate(a)), dict(enumerate(b))), margin)
    sides = (
        scipy_stats.ttest_rel(a, [x + side * margin for x in b], alternative=which).pvalue
        for side, which in ((-1, "greater"), (1, "less"))
    )
    assert ours == pytest.approx(max(sides), rel=1e-6)


def test_no_equivalence_is_claimed_with_few_pairs() -> None:
    assert equivalence(Difference(0.0, 1e-6, 7, 1.0), 0.1) is None
    assert equivalence(Difference(0.0, 1e-6, 8, 1.0), 0.1) < 1e-6


@pytest.mark.parametrize(("shift", "p"), [(0.01, 0.0), (0.2, 1.0), (-0.2, 1.0)])
def test_equal_differences_are_within_the_margin_or_not(shift: float, p: float) -> None:
    reference = {seed: 0.5 + 0.0123 * seed for seed in range(8)}
    assert equivalence(paired_difference({s: x + shift for s, x in reference.items()}, reference), 0.1) == p


def test_importing_loads_no_heavy_package() -> None:
    code = (
        "import sys, pebench.results.across, pebench.results.writers.markdown; "
        "print({'torch', 'scipy', 'numpy', 'rich'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


@pytest.mark.parametrize("n", [3, 8, 9])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_p_values_without_each_are_those_of_the_others(n: int, noise: float) -> None:
    draw = random.Random(n)
    reference = {seed: 0.9 + 0.0123 * seed for seed in range(n)}
    values = {seed: x + 0.01 + draw.gauss(0, noise) for seed, x in reference.items()}
    for seed, p in p_values_without_each(values, reference).items():
        others = {other: x for other, x in values.items() if other != seed}
        assert p == pytest.approx(paired_difference(others, reference).p_value)
