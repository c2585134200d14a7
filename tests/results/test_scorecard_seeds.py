"""Rows of few seeds or with failed runs on the scorecard: shown with their runs, neither ranked, bold nor advised."""

from dataclasses import replace

import pytest

from pebench.results.cells import Cell
from pebench.results.scorecard import MEASURES, Scorecard, advice, scorecard
from pebench.results.scorecard.ranks import may_be_ranked
from pebench.results.writers.html.scorecard import scorecard_html
from pebench.results.writers.scorecard import entry_cell, scorecard_json, scorecard_markdown
from pebench.runs.records import Record
from pebench.tasks import configure
from tests.results.test_scorecard import line

NEED = "a language model at its trained length"


def seeds(encoding: str, means: list[float], failed: int = 0) -> list[Record]:
    """A run for each mean; the last ones failed."""
    found = [
        Record(
            configure("lm-wikitext2", encoding, seed, "core", {}, {}),
            metrics={"test/bits_per_byte": mean, "test/bits_per_byte@4x": mean},
            parameters={"encoding": 7, "total": 300},
        )
        for seed, mean in enumerate(means)
    ]
    broken = {"reason": "diverged", "kind": "diverged"}
    return [
        replace(record, status="failed", error=broken, metrics={}) if place >= len(means) - failed else record
        for place, record in enumerate(found)
    ]


def card_of(others: list[Record]) -> Scorecard:
    good, bad = [1.5, 1.51, 1.52, 1.53, 1.54], [2.0, 2.03, 2.0, 2.02, 2.05]
    return scorecard([*seeds("rope", good), *seeds("add", bad), *seeds("none", [2.3] * 5), *others])


def cell(card: Scorecard, label: str, key: str = "language") -> Cell:
    (measure,) = [measure for measure in MEASURES if measure.key == key]
    return entry_cell(line(card, label).entries[key], measure, card.usual_seeds[key])


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (seeds("alibi", [1.0]), "1.0000 (n=1)"),
        (seeds("alibi", [1.0, 1.2]), "1.1000 ± 1.2706 (n=2)"),
        (seeds("alibi", [1.0, *[1.0] * 4], failed=4), "1.0000 (n=1, 4 failed)"),
        (seeds("alibi", [1.0, 1.01, 1.02, 1.03, 9.0], failed=1), "1.0150 ± 0.0205 (n=4, 1 failed)"),
        (seeds("alibi", [9.0]), "9.0000 (n=1)"),
    ],
    ids=["one seed", "two seeds", "four of five failed", "one of five failed", "one bad seed"],
)
def test_a_row_of_few_or_failed_runs_neither_leads_nor_is_advised(runs: list[Record], text: str) -> None:
    card = card_of(runs)
    entry = line(card, "alibi").entries["language"]
    assert (entry.rank, entry.score, entry.leads) == (None, None, False)
    assert (cell(card, "alibi").text, cell(card, "alibi").style) == (text, "")
    (one,) = [one for one in advice(card) if one.need == NEED]
    assert (one.take, dict(one.as_good), one.among) == (("rope",), {}, 3)
    assert line(card, "rope").entries["language"].leads
    assert [line(card, label).entries["language"].score for label in ("rope", "none")] == [1, 0]
    assert f"| {text}" in " ".join(scorecard_markdown(card).split())
    assert f"<span>{text}</span>" in scorecard_html(card)
    assert '"failed": ' in scorecard_json(card)


def test_a_row_whose_runs_all_failed_says_so() -> None:
    assert cell(card_of(seeds("alibi", [1.0] * 5, failed=5)), "alibi").text == "– (5 failed)"


def test_a_value_that_is_infinite_at_a_size_counts_as_failed_there() -> None:
    runs = seeds("alibi", [1.0, 1.03, 1.0, 1.02, 1.05])
    runs[4] = replace(runs[4], metrics=runs[4].metrics | {"test/bits_per_byte@4x": float("inf")})
    card = card_of(runs)
    assert line(card, "alibi").entries["language"].leads
    assert line(card, "alibi").entries["language-4x"].rank is None
    assert cell(card, "alibi", "language-4x").text.endswith(" (n=4, 1 failed)")


def test_more_runs_than_usual_are_ranked_and_told_in_the_title() -> None:
    card = card_of(seeds("alibi", [1.0, 1.0, 1.04, 1.02, 1.03, 1.01]))
    assert cell(card, "alibi").text.endswith("; 1")
    assert cell(card, "rope").text.endswith("; 2")
    assert "(n=" not in cell(card, "alibi").text + cell(card, "rope").text
    assert 'title="6 seeds"' in scorecard_html(card)
    assert "over the seeds that both have" in scorecard_markdown(card)


def test_of_two_usual_numbers_of_seeds_the_smaller_one_is_usual() -> None:
    six = [1.0, 1.0, 1.04, 1.02, 1.03, 1.01]
    names = ("alibi", "t5-bias", "fire", "shaw")
    three, four = (card_of([record for name in names[:count] for record in seeds(name, six)]) for count in (3, 4))
    assert (three.usual_seeds["language"], four.usual_seeds["language"]) == (5, 6)  # beside three rows of five
    (one,) = [one for one in advice(three) if one.need == NEED]
    assert one.fewest == 5


def test_seeds_count_that_most_other_rows_have() -> None:
    rows = {
        "a": dict.fromkeys(range(5), 1.0), "b": dict.fromkeys(range(5), 2.0), "c": dict.fromkeys(range(3), 3.0),
        "elsewhere": dict.fromkeys(range(20, 25), 0.0),
    }  # fmt: skip
    assert [*may_be_ranked(rows, {})] == ["a", "b", "c"]
    assert [*may_be_ranked(rows, {"b": 1, "a": 0})] == ["a", "c"]
    apart = {"a": dict.fromkeys(range(5), 1.0), "b": dict.fromkeys(range(20, 25), 2.0)}
    assert may_be_ranked(apart, {}) == {}  # half of two is not most
    assert [*may_be_ranked({"alone": {7: 1.0, 8: 1.0, 9: 1.0}}, {})] == ["alone"]
