"""Plans: the time and space that the rest will take, by earlier runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from pebench.config import RunConfig
from pebench.runs.forecast import SAMPLE, forecast
from pebench.runs.records import FILE_NAME, Record, write_record
from pebench.tasks import configure
from tests.runs.plans import RATE, plan_of, record


def took(seconds: float, out: Path, encoding: str = "add", seed: int = 0, **settings: Any) -> Record:
    """Leave the record of a run of this duration."""
    dotted = {name.replace("_", ".", 1): value for name, value in settings.items()}
    config = configure("vit-digits", encoding, seed, "smoke", dotted)
    found = replace(record(config, 0.5), duration_s=seconds)
    write_record(found, out)
    return found


def to_come(encoding: str = "add", seeds: int = 1, **settings: Any) -> list[RunConfig]:
    dotted = {name.replace("_", ".", 1): value for name, value in settings.items()}
    return [configure("vit-digits", encoding, 100 + seed, "smoke", dotted) for seed in range(seeds)]


def test_a_run_takes_as_long_as_earlier_ones_of_its_kind(tmp_path: Path) -> None:
    took(10.0, tmp_path, seed=0)
    took(20.0, tmp_path, seed=1)
    took(70.0, tmp_path, "rope")
    found = forecast([*to_come("add", 3), *to_come("rope")], tmp_path)
    assert (found.seconds, found.unknown, found.sampled) == (pytest.approx(3 * 15 + 70), 0, 3)


def test_other_steps_are_scaled(tmp_path: Path) -> None:
    took(10.0, tmp_path, train_max_steps=2)
    found = forecast([*to_come(train_max_steps=2), *to_come(train_max_steps=6)], tmp_path)
    assert (found.seconds, found.unknown) == (pytest.approx(10 + 30), 0)


def test_starting_and_testing_are_not_scaled(tmp_path: Path) -> None:
    """Of 10 s four steps of 8 images took 2, at 16 images a second."""
    found = took(10.0, tmp_path, train_max_steps=4, train_batch_size=8)
    write_record(replace(found, throughput=16.0), tmp_path)
    assert forecast(to_come(train_max_steps=400, train_batch_size=8), tmp_path).seconds == pytest.approx(8 + 200)


def test_a_new_encoding_takes_as_long_a_step_as_others_of_its_task(tmp_path: Path) -> None:
    took(10.0, tmp_path, "add")
    took(30.0, tmp_path, "rope")
    new = to_come("none", train_max_steps=4)
    assert forecast([*to_come("add"), *to_come("rope"), *new], tmp_path).seconds == pytest.approx(10 + 30 + 2 * 20)
    assert forecast(new, tmp_path).seconds == pytest.approx(2 * 20)


def test_rows_of_equal_size_take_as_long_as_their_reference(tmp_path: Path) -> None:
    """What matching changes is the width of feed-forward layers."""
    took(10.0, tmp_path)
    assert forecast(to_come("concat", model_d_ff=50), tmp_path).seconds == pytest.approx(10)


def test_what_selects_takes_as_long_as_what_is_tested(tmp_path: Path) -> None:
    took(10.0, tmp_path)
    plan = plan_of(encodings=["add"], select={RATE: [1e-3, 1e-2]})
    assert forecast(plan.selecting(), tmp_path).seconds == pytest.approx(20)


@pytest.mark.parametrize(
    "settings", [{"model_num_layers": 2}, {"data_patch_size": 4}, {"train_batch_size": 8}], ids=lambda s: next(iter(s))
)
def test_what_resembles_nothing_is_unknown(settings: dict[str, Any], tmp_path: Path) -> None:
    took(10.0, tmp_path)
    found = forecast([*to_come(), *to_come(seeds=2, **settings)], tmp_path)
    assert (found.seconds, found.unknown) == (pytest.approx(10), 2)


def test_another_task_tells_nothing(tmp_path: Path) -> None:
    took(10.0, tmp_path)
    found = forecast([configure("lm-grammar", "add", tier="smoke")], tmp_path)
    assert (found.seconds, found.unknown, found.sampled) == (0, 1, 0)


def test_failed_and_damaged_runs_tell_nothing(tmp_path: Path) -> None:
    write_record(replace(record(to_come()[0], None), duration_s=1.0), tmp_path)
    (tmp_path / took(10.0, tmp_path, seed=5).config.directory / FILE_NAME).write_text("{")
    found = forecast(to_come(), tmp_path)
    assert (found.seconds, found.unknown, found.bytes_per_run, found.sampled) == (0, 1, None, 0)


def test_no_more_than_a_few_runs_are_looked_at(tmp_path: Path) -> None:
    for seed in range(SAMPLE + 2):
        took(10.0, tmp_path, seed=seed)
    assert forecast(to_come(), tmp_path).sampled == SAMPLE


def test_the_bytes_of_a_run_are_those_of_all_its_files(tmp_path: Path) -> None:
    sizes = []
    for seed, extra in enumerate((1000, 3000)):
        folder = tmp_path / took(10.0, tmp_path, seed=seed).config.directory
        (folder / "curves").mkdir()
        (folder / "curves" / "events").write_bytes(b"x" * extra)
        sizes.append((folder / FILE_NAME).stat().st_size + extra)
    assert forecast(to_come(), tmp_path).bytes_per_run == pytest.approx(sum(sizes) / 2)


def test_an_estimate_is_plain_numbers(tmp_path: Path) -> None:
    took(10.0, tmp_path)
    assert json.loads(json.dumps(asdict(forecast(to_come(), tmp_path))))["seconds"] == 10.0
