"""The study of first positions repeats published runs, and measures shares without their first positions."""

from dataclasses import replace

from pebench.benchmarks.studies import first_positions
from pebench.runs.records import Record
from pebench.tasks import configure


def test_shares_without_the_first_positions_are_those_of_records_but_for_them(recorded):
    first = recorded("lm-grammar")
    again = first_positions.retrain(first.config)
    assert again.metrics == first.metrics
    assert [*again.position_shares] == ["0", "1", "8", "16"]
    assert again.position_shares["0"] == first.position_shares["trained"]
    assert again.position_shares["1"] != again.position_shares["0"]
    metrics = {first_positions.METRIC: 1.5}
    lines = first_positions.grid([replace(first, metrics=metrics)], [replace(again, metrics=metrics)]).splitlines()
    assert len(lines) == 2 + 4


def test_shares_stand_below_their_block_and_the_last_below_the_output():
    known = [
        Record(
            configure("lm-grammar", "none", 0, "smoke", {"model.num_layers": len(shares) - 1}),
            metrics={first_positions.METRIC: 1.5},
            position_shares={"8": shares},
        )
        for shares in ([0.1, 0.2], [0.3, None, 0.5, 0.25])
    ]
    lines = first_positions.grid(known, known).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert cells == [
        ["1", "0", "1.500000", "1.500000", "8", "10.00", "", "", "20.00"],
        ["3", "0", "1.500000", "1.500000", "8", "30.00", "", "50.00", "25.00"],
    ]


def test_it_repeats_published_runs_without_an_encoding():
    first, *others = first_positions.published([8], [1])
    assert others == []
    assert (first.config.seed, first.config.model.num_layers, first.config.encoding) == (1, 8, "none")
