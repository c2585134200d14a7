"""The study of first positions repeats published runs, and measures shares without their first positions."""

from dataclasses import replace

from pebench.benchmarks.studies import first_positions


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


def test_it_repeats_published_runs_without_an_encoding():
    first, *others = first_positions.published([8], [1])
    assert others == []
    assert (first.config.seed, first.config.model.num_layers, first.config.encoding) == (1, 8, "none")
