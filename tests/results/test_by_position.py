"""The loss by position on a page: a picture and a table of what is lost beside sliding windows."""

from typing import Any

import pytest
from matplotlib.colors import to_rgb

from pebench.errors import UserError
from pebench.results import grids
from pebench.results.figures import by_position
from pebench.results.figures.style import MUTED
from pebench.results.page import Page
from pebench.results.publish import FORMATS
from pebench.results.raw import raw_rows
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record
from pebench.tasks import configure


def record(name: str, seed: int, beyond: dict[str, Any]) -> Record:
    config = configure("lm-grammar", name, seed, "smoke")
    return Record(config, metrics={"test/bits_per_byte": 2.0}, beyond=beyond)


def curves(**sizes: list[float | None]) -> dict[str, Any]:
    found = {f"bits_per_byte@{size[1:]}": values for size, values in sizes.items()}
    return {"by_position": {name: {"longer": values, "sliding": [2.0] * len(values)} for name, values in found.items()}}


def table_of(*records: Record) -> Table:
    (table,) = build_tables(records)
    return table


LEVEL = [2.5, 2.25, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
RISING = [2.5, 2.25, 2.0, 2.0, 2.5, 3.0, 3.5, 4.0]


def two_rows() -> Table:
    return table_of(
        record("add", 0, curves(_2x=RISING)),
        record("add", 1, curves(_2x=[value + 0.5 for value in RISING])),
        record("alibi", 0, curves(_2x=LEVEL)),
        record("learned", 0, {"policy": "refuses"}),
    )


def test_the_picture_has_a_line_a_row_beside_the_control_and_marks_the_trained_length():
    axes = by_position.draw(two_rows()).axes[0]
    add, alibi, *marks = axes.lines
    assert add.get_xdata().tolist() == [0.125 + part / 4 for part in range(8)]
    assert add.get_ydata().tolist() == [value - 2.0 + 0.25 for value in RISING]
    assert alibi.get_ydata().tolist() == [value - 2.0 for value in LEVEL]
    (dotted,) = (line for line in marks if line.get_linestyle() == ":")
    assert [*dotted.get_xdata()] == [1.0, 1.0]
    assert to_rgb(dotted.get_color()) == to_rgb(MUTED)
    (control,) = (line for line in marks if [*line.get_ydata()] == [0.0, 0.0])
    assert control is not dotted
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1x", "2x"]
    assert by_position.draw(table_of(record("add", 0, {}))) is None


def test_the_table_has_means_up_to_the_trained_length_and_to_its_doubles():
    grid = grids.by_position(two_rows())
    assert [*grid] == ["Encoding", "up to 1x", "1x to 2x"]
    assert grid["1x to 2x"].texts == ["+1.5000 ± 3.1766", "+0.0000", grids.NOTHING]  # 12.706 times 0.25
    assert grid["up to 1x"].texts == ["+0.4375 ± 3.1766", "+0.1875", grids.NOTHING]
    assert grids.by_position(table_of(record("add", 0, {"policy": "goes on"}))) == {}


def test_the_longest_size_that_all_runs_have_is_shown():
    long = [2.0] * 7 + [None] + [6.0] * 8
    table = table_of(record("add", 0, curves(_2x=LEVEL, _4x=long)), record("add", 1, curves(_2x=RISING)))
    assert [len(curve) for curve in grids.beside_control(table.rows[0], table.task)] == [8, 8]
    table = table_of(record("add", 0, curves(_2x=LEVEL, _4x=long)), record("add", 1, {}))
    (curve,) = grids.beside_control(table.rows[0], table.task)
    assert curve[3.875] == 4.0
    assert 1.875 not in curve  # which is not finite
    assert grids.by_position(table)["2x to 4x"].texts == ["+4.0000 (n=1)"]


def test_a_size_that_ends_within_a_part_has_its_middle():
    table = table_of(record("add", 0, curves(**{"_1.125x": [2.0] * 5})))
    (curve,) = grids.beside_control(table.rows[0], table.task)
    assert [*curve] == [0.125, 0.375, 0.625, 0.875, 1.0625]


def test_every_page_has_it_only_where_a_record_does():
    old, new = ([record("add", seed, found) for seed in (0, 1)] for found in ({}, curves(_2x=RISING)))
    for records, there in ((old, False), (new, True)):
        page = Page.of(records)
        text = FORMATS["markdown"](page)
        assert ("Loss by position" in text) is there
        assert ("by_position" in raw_rows(page, page.tables[0])[0]) is there


def test_a_record_keeps_it_and_refuses_what_is_no_curve():
    written = record("add", 0, {"policy": "goes on", **curves(_2x=RISING)}).to_dict()
    assert Record.from_dict(written).to_dict() == written
    assert "beyond" not in record("add", 0, {}).to_dict()
    for wrong in ({"policy": 3}, {"by_position": {"a": {"longer": ["x"]}}}, {"by_position": [1]}):
        with pytest.raises(UserError, match="beyond"):
            Record.from_dict(record("add", 0, wrong).to_dict())
