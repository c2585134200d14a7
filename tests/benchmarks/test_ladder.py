"""The line of a difference against the size of the model: its slope, its interval, and what it predicts."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.benchmarks import ladder
from pebench.errors import UserError
from pebench.runs.records import Record, write_record
from pebench.tasks import configure

SIZES = {96: 1e6, 192: 1e7, 288: 1e8}
NOISE = (0.004, -0.004, 0.0, 0.002, -0.002)


def records(slope: float, seeds: int = 5, noise: float = 1.0) -> list[Record]:
    """Runs of add, and of concat at -0.01 of it at 10 million parameters, which changes by `slope` for ten times."""
    found = []
    for width, parameters in SIZES.items():
        settings = {"model.d_model": width, "model.num_heads": 3}
        for seed in range(seeds):
            gap = -0.01 + slope * math.log10(parameters / 1e7) + noise * NOISE[seed]
            for name, value in (("add", 1.5 - seed / 100), ("concat", 1.5 - seed / 100 + gap)):
                config = configure("lm-grammar", name, seed, "smoke", settings)
                found.append(
                    Record(config, metrics={"test/bits_per_byte": value}, parameters={"total": int(parameters)})
                )
    return found


def test_a_line_has_the_slope_that_it_was_made_with() -> None:
    line = ladder.fit(ladder.differences(records(0.004), "lm-grammar", "concat"))
    assert line.slope.mean == pytest.approx(0.004)
    assert line.at(1e8).mean == pytest.approx(-0.006)
    assert line.slope.low < 0.004 < line.slope.high
    # The standard error of a slope over three sizes of five seeds: that of a mean, over the root of two.
    error = math.sqrt(sum(value**2 for value in NOISE) / 4 / 5 / 2)
    assert (line.slope.high - line.slope.low) / 2 == pytest.approx(1.96 * error, rel=0.1)


def test_differences_without_noise_leave_an_interval_of_nothing() -> None:
    line = ladder.fit(ladder.differences(records(0.004, noise=0.0), "lm-grammar", "concat"))
    assert line.slope.low == pytest.approx(line.slope.high)
    beyond = line.at(1e9)
    assert (beyond.low, beyond.high) == pytest.approx((-0.002, -0.002))


def test_the_interval_widens_away_from_the_sizes() -> None:
    line = ladder.fit(ladder.differences(records(0.0), "lm-grammar", "concat"))
    within, beyond = line.at(1e7), line.at(1e9)
    assert beyond.high - beyond.low > 1.5 * (within.high - within.low)


def test_two_seeds_have_the_spread_of_more() -> None:
    """Resampled means of two differ by the root of a half of what two seeds would."""
    line = ladder.fit({10: [0.0, 2.0], 100: [0.0, 2.0]})
    assert (line.levels[1:].std(), line.levels.mean()) == pytest.approx((1 / math.sqrt(2), 1.0), rel=0.05)


@pytest.mark.parametrize("points", [{}, {10: [1.0, 2.0]}, {10: [1.0, 2.0], 100: [1.0]}])
def test_fewer_sizes_or_seeds_are_no_line(points: ladder.Points) -> None:
    with pytest.raises(UserError, match="a line needs two sizes or more with two seeds or more each, got"):
        ladder.fit(points)


def test_the_page_is_made_of_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for record in records(0.004)[:-4]:  # two seeds of the largest size are missing
        write_record(record, tmp_path)
    assert ladder.main([str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## lm-grammar\n")
    assert text.count("| concat ") == 1
    assert "| add " not in text
    assert "1.0 M -0.0140 (n=5), 10.0 M -0.0100 (n=5), 100.0 M -0.0060 (n=3)" in text
    assert text.rstrip().endswith("|")
    assert "-0.0060 (" in text.rpartition("| ")[0]


def test_records_without_a_line_are_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for record in records(0.004)[:4]:
        write_record(record, tmp_path)
    assert ladder.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("ladder: no row has two sizes or more")


def test_runs_of_one_width_and_several_depths_are_sizes_of_their_own() -> None:
    found = [
        Record(
            configure("lm-grammar", name, seed, "smoke", {"model.num_layers": layers}),
            metrics={"test/bits_per_byte": 1.5 + gap},
            parameters={"total": 1000 * layers},
        )
        for layers, row in {1: 0.1, 3: 0.3}.items()
        for name, gap in {"add": 0.0, "concat": row}.items()
        for seed in range(2)
    ]
    points = ladder.differences(found, "lm-grammar", "concat")
    assert points == {1000: pytest.approx([0.1, 0.1]), 3000: pytest.approx([0.3, 0.3])}
    selecting = [replace(run, config=replace(run.config, stage="select"), metrics={}) for run in found]
    assert ladder.differences([*found, *selecting], "lm-grammar", "concat") == points


def test_the_largest_size_is_predicted_by_the_others() -> None:
    bent = [
        replace(run, metrics={"test/bits_per_byte": run.metrics["test/bits_per_byte"] + 0.5})
        if (run.config.encoding, run.parameters["total"]) == ("concat", 10**8) else run
        for run in records(0.004, noise=0.0)
    ]  # fmt: skip
    measured, predicted = ladder.page(bent).splitlines()[-1].split("|")[2:6:3]
    assert measured.endswith("100.0 M +0.4940 (n=5) ")
    assert predicted.strip() == "-0.0060 (-0.0060 to -0.0060)"
