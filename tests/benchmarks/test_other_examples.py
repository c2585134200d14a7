"""The study of other test examples: scores have a run's mean, their variance is found, and outcomes are kept."""

import doctest
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pebench.benchmarks.studies import example_variance, other_examples
from pebench.benchmarks.studies.example_variance import Comparison, Outcome, variance_of_examples
from pebench.config import RunConfig
from pebench.results.stats import Difference
from pebench.results.tables import Row
from pebench.tasks import configure


@pytest.mark.parametrize("task", ["lm-grammar", "text-order", "vit-digits"])
def test_outcomes_of_examples_have_the_mean_that_a_run_has(recorded, task):
    first = recorded(task)
    again = other_examples.retrain(first.config)  # which refuses another mean of its examples
    assert again.metric == first.metrics[other_examples.metric(first.config)]
    assert len(again.scores) == first.dataset["sizes"]["test"]
    scores, sizes = again.units
    assert (scores.sum(), sizes.sum()) == pytest.approx((sum(again.scores), sum(again.sizes)))
    assert len(scores) == (60 if task == "lm-grammar" else len(again.scores))
    with pytest.raises(RuntimeError, match="to have the mean"):
        replace(again, metric=again.metric + 0.1)


def test_what_examples_add_to_a_difference_is_found():
    assert doctest.testmod(example_variance).failed == 0
    noise, (seeds, units) = np.random.default_rng(0), (4, 20_000)
    of_seed, of_unit = noise.normal(0, 2.0, (seeds, 1)), noise.normal(0, 0.3, units)
    first = 2 + of_seed + of_unit + noise.normal(0, 1.0, (seeds, units))
    outcomes = [Outcome("", row.mean(), row.tolist(), [1] * units) for row in first]
    nothing = [Outcome("", 0.0, [0.0] * units, [1] * units)] * seeds
    variance, counted = variance_of_examples(outcomes, nothing)
    assert counted == units
    assert variance == pytest.approx(0.3**2 / units, rel=0.1)  # neither what seeds add nor the rest


def test_an_interval_over_both_is_wider_by_what_examples_add():
    row = Row("", (), {}, {}, None, Difference(0.3, 0.1 * 2.306004, 9, None))  # standard error 0.1, t(0.975; 8)
    alone, both = (Comparison(row, variance, 100, 2, 0.0) for variance in (0.0, 0.01))
    assert alone.half_width == pytest.approx(0.1 * 2.306004)
    assert alone.p_values(0.486) == pytest.approx((0.0170, 0.05), abs=1e-4)  # t = 3, and -1.86
    assert both.error == pytest.approx((0.02**0.5, 29.607), abs=1e-3)  # 0.02^2 / (0.01^2 / 8 + 0.01^2 / 99)
    assert both.half_width == pytest.approx(0.2890, abs=1e-4)
    assert both.p_values(0.486)[0] == pytest.approx(0.0424, abs=1e-4)  # t = 2.1213
    assert both.p_values(0.3)[1] == 0.5


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that have been trained again; seed 3 is interrupted."""
    seeds: list[int] = []

    def at_once(function: object, configs: Sequence[RunConfig], jobs: int) -> Iterator[tuple[int, Outcome]]:
        for place, config in enumerate(configs):
            if config.seed == 3:
                raise KeyboardInterrupt
            seeds.append(config.seed)
            yield place, Outcome(config.key, 0.5, [0, 1], [1, 1], "cpu")

    monkeypatch.setattr(other_examples, "as_finished", at_once)
    return seeds


def test_outcomes_that_are_known_are_not_trained_again(trained, tmp_path):
    configs = [configure("vit-digits", "add", seed, "smoke") for seed in range(2)]
    for asked in (configs[:1], configs, configs):
        *_, found = other_examples.add_outcomes(asked, tmp_path / "outcomes.jsonl", 1)
    assert trained == [0, 1]
    assert (
        {*other_examples.read_outcomes(tmp_path / "outcomes.jsonl")} == {config.key for config in configs} == {*found}
    )


def test_an_interruption_keeps_the_outcomes_of_before(trained, tmp_path):
    configs = [configure("vit-digits", "add", seed, "smoke") for seed in (2, 3, 4)]
    with pytest.raises(KeyboardInterrupt):
        [*other_examples.add_outcomes(configs, tmp_path / "outcomes.jsonl", 1)]
    assert [*other_examples.read_outcomes(tmp_path / "outcomes.jsonl")] == [configs[0].key]


def test_the_published_page_is_made_of_its_outcomes(capsys):
    page = (Path(__file__).parents[2] / "results" / "studies" / "other_examples.md").read_text(encoding="utf-8")
    (asked,) = re.findall(
        r"^`python -m benchmarks.studies.other_examples(.*) --output results/studies/other_examples.md`$", page, re.M
    )
    assert other_examples.main(shlex.split(asked)) == 0
    assert capsys.readouterr().out.partition("\n\nDifferences")[2] == page.partition("\n\nDifferences")[2]
