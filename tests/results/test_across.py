"""Figures across tasks, against published examples, the definitions as loops, scipy, and by hand."""

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from pebench.results import across, resampling
from pebench.results.across import Interval, Standing, Summary, critical_difference, groups, summarise
from pebench.results.document.facts import across_facts
from pebench.results.grids import standings
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record
from pebench.tasks import configure

TASKS = ("vit-digits", "text-order", "lm-grammar", "vit-cifar10", "text-imdb", "text-sst2", "lm-wikitext2")
RANKS = [  # of C4.5, with the parameter m, with cf, with both, on 14 data sets: Demšar 2006, table 6
    (4, 3, 2, 1), (1, 2, 3, 4), (4, 1, 2, 3), (4, 1, 3, 2), (4, 2, 3, 1), (1, 2.5, 4, 2.5), (3, 2, 4, 1),
    (2.5, 2.5, 4, 1), (4, 3, 2, 1), (2.5, 2.5, 2.5, 2.5), (4, 2.5, 1, 2.5), (3, 2, 4, 1), (4, 1, 2, 3), (3, 1, 4, 2),
]  # fmt: skip
METHODS = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def runs(task: str, encoding: str, values: Sequence[float | None], **changes: Any) -> list[Record]:
    """Records of one encoding on one task, by seed; None failed."""
    config = configure(task, encoding, tier="smoke")
    metric = "bits_per_byte" if task.startswith("lm") else "accuracy"
    return [
        Record(config.with_seed(seed), metrics={f"test/{metric}": value}, **changes)
        if value is not None
        else Record(config.with_seed(seed), status="failed", error={"kind": "diverged", "reason": "nan"}, **changes)
        for seed, value in enumerate(values)
    ]


def summary(*records: list[Record]) -> Summary:
    found = summarise(build_tables([record for some in records for record in some]))
    assert found is not None
    return found


def standing(found: Summary, label: str) -> Standing:
    return next(row for row in found.rows if row.label == label)


SMALL = [
    *runs("vit-digits", "add", [0.50, 0.60, 0.70, 0.80]),
    *runs("vit-digits", "rope", [0.55, 0.65, 0.75, 1.00]),
    *runs("lm-grammar", "add", [3.0, 2.5, 2.0, 1.5]),
    *runs("lm-grammar", "rope", [1.0, 2.0, 2.5, 2.5]),
]
ADD = [0.0, 0.2, 0.4, 0.6, 0.0, 0.25, 0.5, 0.75]  # as scores: (x - 0.5) / 0.5, and (3 - x) / 2
ROPE = [0.1, 0.3, 0.5, 1.0, 1.0, 0.5, 0.25, 0.25]


def test_scores_run_from_the_worst_run_of_a_task_to_its_best() -> None:
    found = summary(SMALL)
    for label, scores in (("add", ADD), ("rope", ROPE)):
        assert standing(found, label).iqm.mean == pytest.approx(sum(sorted(scores)[2:6]) / 4)
    assert found.tasks == {"vit-digits": 4, "lm-grammar": 4}


def test_the_interquartile_mean_is_scipys_trimmed_mean_also_where_quarters_are_no_whole_runs() -> None:
    draw = np.random.default_rng(0)
    for n in range(1, 12):
        values = draw.normal(size=n)
        one = resampling._weighted_iqm(values, np.ones((1, n)))
        assert one == pytest.approx([scipy_stats.trim_mean(values, 0.25)])
        assert resampling.interquartile_mean(values) == pytest.approx(one[0])


def test_weights_stand_for_repeated_runs() -> None:
    draw = np.random.default_rng(1)
    scores, reference = draw.integers(0, 4, (2, 9)) / 4.0  # many ties
    counts = np.bincount(draw.integers(0, 9, 9), minlength=9)
    repeated, others = np.repeat(scores, counts), np.repeat(reference, counts)
    weights = counts[None].astype(float)
    assert resampling._weighted_iqm(scores, weights) == pytest.approx([scipy_stats.trim_mean(repeated, 0.25)])
    wins = np.mean([(x > y) + (x == y) / 2 for x, y in itertools.product(repeated, others)])
    assert resampling._improvement(scores[None], reference, weights)[0] == pytest.approx([wins])


def test_the_probability_of_improvement_is_mann_whitneys_averaged_over_tasks() -> None:
    u = [scipy_stats.mannwhitneyu(ROPE[i : i + 4], ADD[i : i + 4]).statistic / 16 for i in (0, 4)]
    improvement = standing(summary(SMALL), "rope").improvement
    assert improvement is not None
    assert improvement.mean == pytest.approx(sum(u) / 2)
    assert standing(summary(SMALL), "add").improvement is None


def test_ranks_are_averaged_over_tasks_and_ties_share_one() -> None:
    flat = [record for task in TASKS[:2] for record in runs(task, "none", [0.0, 0.0])]
    found = summary(
        runs("vit-digits", "add", [0.5, 0.6]), runs("vit-digits", "rope", [0.6, 0.5]),
        runs("text-order", "add", [0.5, 0.6]), runs("text-order", "rope", [0.9, 0.9]), flat,
    )  # fmt: skip
    assert {row.label: row.rank.mean for row in found.rows} == {"rope": 1.25, "add": 1.75, "none": 3.0}
    assert [row.label for row in found.rows] == ["rope", "add", "none"]


def test_intervals_come_from_seeds_drawn_again_within_each_task() -> None:
    found = summary(SMALL)
    draw, iqm = random.Random(0), []
    for _ in range(4000):  # rope's runs, drawn four of four in each task
        sample = sorted(draw.choice(ROPE[start : start + 4]) for start in (0, 4) for _ in range(4))
        iqm.append(sum(sample[2:6]) / 4)
    low, high = np.quantile(iqm, [0.025, 0.975])
    assert standing(found, "rope").iqm[1:] == pytest.approx((low, high), abs=0.03)


def test_no_resample_has_more_runs_of_one_task_than_of_another() -> None:
    # always first on one task and last on the other: the middle half is half ones, unless tasks were mixed
    found = summary(
        runs("vit-digits", "add", [0.1, 0.2, 0.3, 0.2]), runs("vit-digits", "rope", [0.9] * 4),
        runs("text-order", "add", [0.8, 0.7, 0.9, 0.7]), runs("text-order", "rope", [0.1] * 4),
    )  # fmt: skip
    assert standing(found, "rope").iqm == Interval(0.5, 0.5, 0.5)


def test_intervals_of_few_seeds_are_as_narrow_as_the_page_says() -> None:
    (told,) = [line for line in across_facts(summary(SMALL)) if "too narrow" in line]
    draw, said = np.random.default_rng(0), re.search(r"hold (\d+) % of the time with three seeds, and (\d+) %", told)
    assert said is not None
    for n, percent in zip((3, 8), map(int, said.groups()), strict=True):
        values = draw.normal(size=(4000, n))
        means = np.take_along_axis(values[:, None], draw.integers(0, n, (4000, 400, n)), 2).mean(2)
        low, high = np.quantile(means, [0.025, 0.975], axis=1)
        assert np.mean((low < 0) & (high > 0)) == pytest.approx(percent / 100, abs=0.02)


def test_seeds_are_drawn_for_all_encodings_together() -> None:
    # always 0.01 above add at the same seed, though seeds differ by far more: no resample may rank add first
    values = [0.1, 0.5, 0.9, 0.3]
    found = summary(*(runs(t, e, [v + d for v in values]) for t in TASKS[:2] for e, d in (("add", 0), ("rope", 0.01))))
    assert standing(found, "rope").rank == Interval(1.0, 1.0, 1.0)


def test_the_figures_do_not_depend_on_the_order_of_records_or_on_how_many_are_drawn_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = summary(SMALL)
    assert summary(random.Random(0).sample(SMALL, len(SMALL))) == whole
    monkeypatch.setattr(across, "REPLICATES", 50)
    whole = summary(SMALL)
    monkeypatch.setattr(resampling, "CHUNK", 8 * 50)
    assert summary(SMALL) == whole


def test_a_failed_run_counts_as_the_worst_score_and_is_marked() -> None:
    found = standing(summary(SMALL, runs("vit-digits", "learned", [1.0, 1.0, None, 0.5]),
                             runs("lm-grammar", "learned", [1.0, 1.0, 1.0, 1.0])), "learned")  # fmt: skip
    assert found.failed == 1
    assert found.iqm.mean == pytest.approx(1.0)  # 0 0 [1 1 1 1] 1 1
    assert found.iqm_finished == pytest.approx(1.0)  # 0 [1 1 1 1 1] 1
    worse = standing(summary(SMALL, runs("vit-digits", "learned", [None, None, None, 0.75]),
                             runs("lm-grammar", "learned", [None, 2.0, 2.0, 2.0])), "learned")  # fmt: skip
    assert worse.failed == 4
    assert worse.iqm.mean == pytest.approx((0 + 0 + 0.5 + 0.5) / 4)
    assert worse.iqm_finished == pytest.approx(0.5)


def test_an_encoding_without_a_finished_run_is_last() -> None:
    found = summary(SMALL, runs("vit-digits", "none", [None] * 4), runs("lm-grammar", "none", [None] * 4))
    assert found.rows[-1].label == "none"
    assert (found.rows[-1].iqm, found.rows[-1].iqm_finished) == (Interval(0.0, 0.0, 0.0), None)


def test_an_encoding_that_lacks_a_task_is_named_and_left_out() -> None:
    found = summary(SMALL, runs("vit-digits", "learned", [1.0] * 4))
    assert found.lacking == {"learned": ("lm-grammar",)}
    assert found.rows == summary(SMALL).rows
    assert found.unpaired == 0


def test_a_seed_that_one_row_lacks_counts_for_none() -> None:
    more = [*runs("vit-digits", "add", [0.50, 0.60, 0.70, 0.80, 0.99])[4:], *SMALL]
    assert summary(more).rows == summary(SMALL).rows
    assert (summary(more).unpaired, summary(SMALL).unpaired) == (1, 0)


def test_tables_that_do_not_compare_have_no_summary() -> None:
    other = runs("lm-grammar", "add", [1.0, 2.0], protocol="0.0") + runs("lm-grammar", "rope", [1.0, 2.0])
    assert summarise(build_tables(SMALL[:8])) is None
    assert summarise(build_tables([*SMALL[:8], *other[:2]])) is None
    assert summarise(build_tables([*SMALL[:4], *SMALL[12:]])) is None
    assert summarise([]) is None


@pytest.mark.parametrize("rule", [{"regime": "parameters"}, {"selected": ("train.learning_rate",)}, {"tier": "quick"}])
def test_tasks_that_were_run_by_other_rules_do_not_compare(rule: dict[str, Any]) -> None:
    def table(task: str, tier: str = "smoke", **rules: Any) -> Table:
        config = replace(configure(task, "add", tier=tier), **rules)
        (made,) = build_tables([Record(config, metrics={"test/accuracy": 0.5})])
        return made

    assert len(across.comparable([table("vit-digits", **rule), table("text-order", **rule)])) == 1
    assert across.comparable([table("vit-digits", **rule), table("text-order")]) == []


def test_tasks_may_have_learning_rates_of_their_own_but_no_other_setting() -> None:
    def changed(task: str, **settings: Any) -> list[Record]:
        config = configure(task, "add", tier="smoke", settings=settings)
        return [Record(config, metrics={"test/accuracy": 0.5})]

    rate = {"train.learning_rate": 0.5}
    tables = build_tables([*changed("vit-digits", **rate), *changed("text-order")])
    (group,) = across.comparable(tables)
    assert {table.task.name for table in group} == {"vit-digits", "text-order"}
    tables = build_tables([*changed("vit-digits", **{"train.warmup": 0.5}), *changed("text-order")])
    assert across.comparable(tables) == []
    # Of two tables of one task it would not be known which compares.
    twice = build_tables([*changed("vit-digits", **rate), *changed("vit-digits"), *changed("text-order")])
    (group,) = across.comparable(twice)
    assert {table.task.name: dict(table.settings) for table in group} == {"vit-digits": {}, "text-order": {}}


def test_without_the_reference_there_is_no_improvement() -> None:
    records = [r for t in TASKS[:2] for e, v in (("none", 0.5), ("rope", 0.6)) for r in runs(t, e, [v, v + 0.1])]
    assert {row.improvement for row in summary(records).rows} == {None}


def test_very_many_runs_are_drawn_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert summary(SMALL).replicates == 2000
    monkeypatch.setattr(across, "ENOUGH", 4)
    assert summary(SMALL).replicates == 500  # of sixteen runs
    monkeypatch.setattr(across, "ENOUGH", 1)
    assert summary(SMALL).replicates == 200


# Ranks told apart


def test_demsars_example() -> None:
    ranks = np.array(RANKS)
    assert ranks.mean(axis=0) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)  # as published
    p, width, found = across._test_ranks(METHODS, -ranks)
    assert width == pytest.approx(1.25, abs=0.005)
    assert p == pytest.approx(scipy_stats.chi2.sf(9.28, 3), abs=0.01)  # his statistic does not correct for ties
    assert found == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)  # 3.143 - 1.964 = 1.179: not told apart at 5 %


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_values_are_the_published_ones(k: int, q: float) -> None:
    assert critical_difference(k, 10) == pytest.approx(q * (k * (k + 1) / 60) ** 0.5, rel=4e-4)  # Demšar, table 5


def test_friedmans_statistic_by_hand() -> None:
    # five tasks, three encodings, always in the same order: chi2 = 12 * 5 / (3 * 4) * (1 + 4 + 9 - 3 * 16 / 4) = 10
    p, width, found = across._test_ranks(["a", "b", "c"], np.tile([3.0, 2.0, 1.0], (5, 1)))
    assert p == pytest.approx(np.exp(-10 / 2))  # of chi2 with two degrees
    assert width == pytest.approx(2.343 * (3 * 4 / 30) ** 0.5, rel=4e-4)
    assert found == (("a", "b"), ("b", "c"))


def test_where_friedmans_test_finds_nothing_all_are_one_group() -> None:
    mixed = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [1.0, 3.0, 2.0], [3.0, 1.0, 2.0]])
    assert across._test_ranks(["a", "b", "c"], mixed)[2] == (("b", "a", "c"),)  # by rank
    apart = [[4, 2, 1, 0, 5, 3], [5, 1, 4, 0, 3, 2], [3, 4, 1, 0, 5, 2], [1, 4, 0, 3, 5, 2], [2, 0, 3, 1, 4, 5]]
    p, width, found = across._test_ranks("abcdef", np.array(apart, dtype=float))
    assert (round(p or 0, 2), round(width or 0, 2)) == (0.06, 3.37)  # ranks are up to 3.6 apart all the same
    assert [set(group) for group in found] == [set("abcdef")]
    assert across._test_ranks(["a", "b", "c"], np.ones((5, 3)))[2] == (("a", "b", "c"),)


@pytest.mark.parametrize(("tasks", "encodings", "shown"), [(5, 3, True), (4, 3, False), (5, 2, False)])
def test_ranks_are_told_apart_with_enough_tasks_only(tasks: int, encodings: int, shown: bool) -> None:
    names = ("add", "none", "rope")[:encodings]
    found = summary(*(runs(task, e, [i / 4, i / 4 + 0.1]) for task in TASKS[:tasks] for i, e in enumerate(names)))
    assert (found.critical_difference is not None, bool(found.groups)) == (shown, shown)


def test_groups_are_as_large_as_can_be() -> None:
    assert groups({"a": 1.0, "b": 1.5, "c": 1.9, "d": 5.0}, 1.0) == (("a", "b", "c"),)
    assert groups({"b": 1.0, "a": 1.0}, 0.5) == (("a", "b"),)
    assert groups({"a": 1.0, "b": 2.0}, 1.0) == ()


def test_one_seed_of_a_task_has_nothing_to_draw_again() -> None:
    found = summary(SMALL[:1], SMALL[4:5], SMALL[8:])
    row = standing(found, "rope")
    assert row.improvement is not None
    assert [(value.low, value.high) for value in (row.iqm, row.rank, row.improvement)] == [(None, None)] * 3
    assert not [cell for column in standings(found).values() for cell in column.texts if "[" in cell]
    assert "No intervals: one seed has none." in across_facts(found)[0]
    assert "too narrow" not in "\n".join(across_facts(found))
