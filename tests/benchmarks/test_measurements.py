"""The benchmarks that measure encodings and growth: do they measure what they say, and write their pages?"""

import doctest
import json
import re
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pebench.config import Options, RunConfig
from pebench.models import LanguageModel
from pebench.results.stats import Difference
from pebench.results.tables import Row
from pebench.tasks import configure
from pebench.training.runner import train

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # Lightning 2.6.6 with torch 2.15


@pytest.fixture
def growth(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("growth")


@pytest.fixture
def encoding_costs(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("encoding_costs")


@pytest.fixture
def other_examples(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("other_examples")


def test_growth_counts_the_operations_that_a_step_takes(growth):
    work = replace(growth.SMALL, depth=1, width=16, heads=2, batch=3, size=8)
    module = LanguageModel("rope", vocab_size=work.outputs, max_len=8, d_model=16, num_layers=1, num_heads=2)
    tokens = torch.zeros(3, 8, dtype=torch.long)
    with module.trunk.using_kernel("matmul"), FlopCounterMode(display=False) as counter:  # the fused one hides products
        module.loss((tokens, tokens)).backward()
    assert growth.flops("rope", work) == counter.get_total_flops()


def test_growth_says_where_a_point_is_worse_than_arithmetic(growth):
    row = [{"seconds": s, "flops": f} for s, f in ((1.0, 1), (1.0, 2), (3.0, 3))]
    assert growth.worse(row) == [1.0, 1.0, 2.0]
    points = {"add": [{"seconds": 1.0, "gib": 0.5, "worse": 1.2}, {"seconds": 3.0, "gib": 0.5, "worse": 2.0}]}
    assert growth.grid(points, [64, 128], "encoding").endswith("| 1.000 s, 0.50 GiB | 3.000 s, 0.50 GiB (x2.00) |")


def test_growth_measures_a_point(growth, capsys):
    growth.main(["--point", json.dumps(["alibi", 8, 16, 2, None])])
    told = json.loads(capsys.readouterr().out)
    assert told["seconds"] > 0
    assert 0 <= told["gib"] < 1


def test_growth_draws_its_picture(growth, tmp_path):
    row = [{"seconds": 1.0, "flops": 5, "gib": 0.1}, {"seconds": 2.0, "flops": 11, "gib": 0.2}]
    growth.draw({"add": row}, [64, 128], tmp_path / "growth.svg")
    assert (tmp_path / "growth.svg").read_text().startswith("<?xml")


def test_costs_of_encodings_are_measured_on_text_and_images(encoding_costs, tmp_path):
    output = tmp_path / "costs.md"
    asked = [word for name in ("add", "alibi", "t5-bias", "transformer-xl") for word in ("--pe", name)]
    encoding_costs.main([*asked, "--quick", "--rounds", "1", "--device", "cpu", "--output", str(output)])
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.read_text().splitlines()]
    cells = {line[0]: line[1:] for line in lines if len(line) > 1}
    assert cells["`alibi`"][-1] == "sdpa with bias"
    assert cells["`t5-bias`"][-1] == "matmul with bias"
    assert cells["`transformer-xl`"].count("does not serve") == 2
    assert [name for name in cells if name.startswith("`")] == ["`add`", "`alibi`", "`t5-bias`", "`transformer-xl`"]
    page = output.read_text()
    assert "- `add`: " in page
    assert "- `rope`: " not in page


def test_shares_without_the_first_positions_are_those_of_records_but_for_them(script, tmp_path):
    first_positions = script("first_positions")
    config = configure("lm-grammar", "none", 0, "smoke")
    recorded = train(config, Options(tmp_path, device="cpu", threads=1))
    again = first_positions.again(config)
    assert again.metrics == recorded.metrics
    assert [*again.position_shares] == ["0", "1", "8", "16"]
    assert again.position_shares["0"] == recorded.position_shares["trained"]
    assert again.position_shares["1"] != again.position_shares["0"]
    first, *_ = first_positions.published([8], [1])
    assert (first.config.seed, first.config.model.num_layers, first.config.encoding) == (1, 8, "none")
    metrics = {first_positions.METRIC: 1.5}
    lines = first_positions.grid([replace(recorded, metrics=metrics)], [replace(again, metrics=metrics)]).splitlines()
    assert len(lines) == 2 + 4


@pytest.mark.parametrize("task", ["lm-grammar", "text-order", "vit-digits"])
def test_outcomes_of_examples_have_the_mean_that_a_run_tells(other_examples, tmp_path, task):
    config = configure(task, "add", 0, "smoke")
    recorded = train(config, Options(tmp_path, device="cpu", threads=1))
    again = other_examples.again(config)  # which refuses another mean of its examples
    assert again.metric == recorded.metrics[other_examples.metric(config)]
    assert len(again.scores) == recorded.dataset["sizes"]["test"]
    scores, sizes = again.units
    assert (scores.sum(), sizes.sum()) == pytest.approx((sum(again.scores), sum(again.sizes)))
    assert len(scores) == (60 if task == "lm-grammar" else len(again.scores))
    with pytest.raises(RuntimeError, match="to have the mean"):
        replace(again, metric=again.metric + 0.1)


def test_what_examples_add_to_a_difference_is_found(other_examples):
    assert doctest.testmod(other_examples).failed == 0
    noise, (seeds, units) = np.random.default_rng(0), (4, 20_000)
    of_seed, of_unit = noise.normal(0, 0.5, (seeds, 1)), noise.normal(0, 0.3, units)
    first = 2 + of_seed + of_unit + noise.normal(0, 1.0, (seeds, units))
    outcomes = [other_examples.Outcome("", row.mean(), row.tolist(), [1] * units) for row in first]
    nothing = [other_examples.Outcome("", 0.0, [0.0] * units, [1] * units)] * seeds
    variance, counted = other_examples.variance_of_examples(outcomes, nothing)
    assert counted == units
    assert variance == pytest.approx(0.3**2 / units, rel=0.1)  # neither what seeds add nor the rest


def test_an_interval_over_both_is_wider_by_what_examples_add(other_examples):
    row = Row("", (), {}, {}, None, Difference(0.3, 0.1 * 2.306004, 9, None))  # standard error 0.1, t(0.975; 8)
    alone, both = (other_examples.Comparison(row, variance, 100, 2, 0.0) for variance in (0.0, 0.01))
    assert alone.half_width == pytest.approx(0.1 * 2.306004)
    assert alone.p_values(0.486) == pytest.approx((0.0170, 0.05), abs=1e-4)  # t = 3, and -1.86
    assert both.error == pytest.approx((0.02**0.5, 29.607), abs=1e-3)  # 0.02^2 / (0.01^2 / 8 + 0.01^2 / 99)
    assert both.half_width == pytest.approx(0.2890, abs=1e-4)
    assert both.p_values(0.486)[0] == pytest.approx(0.0424, abs=1e-4)  # t = 2.1213
    assert both.p_values(0.3)[1] == 0.5


def test_outcomes_that_are_known_are_not_trained_again(other_examples, monkeypatch, tmp_path):
    trained = []

    class AtOnce(ThreadPoolExecutor):  # whose threads see what is patched here
        def __init__(self, jobs: int, context: object) -> None:
            super().__init__(jobs)

    def again(config: RunConfig) -> object:
        trained.append(config.seed)
        return other_examples.Outcome(config.key, 0.5, [0, 1], [1, 1], "cpu")

    monkeypatch.setattr(other_examples, "ProcessPoolExecutor", AtOnce)
    monkeypatch.setattr(other_examples, "again", again)
    configs = [configure("vit-digits", "add", seed, "smoke") for seed in range(2)]
    for asked in (configs[:1], configs, configs):
        other_examples.add_outcomes(asked, tmp_path / "outcomes.jsonl", 1)
    assert trained == [0, 1]
    assert {*other_examples.read_outcomes(tmp_path / "outcomes.jsonl")} == {config.key for config in configs}


def test_the_page_of_other_examples_is_made_of_its_outcomes(other_examples, capsys):
    page = (Path(__file__).parents[2] / "results" / "other_examples.md").read_text(encoding="utf-8")
    (asked,) = re.findall(
        r"^`python benchmarks/studies/other_examples.py(.*) --output results/other_examples.md`$", page, re.M
    )
    other_examples.main(shlex.split(asked))
    assert capsys.readouterr().out.partition("\n\nDifferences")[2] == page.partition("\n\nDifferences")[2]
