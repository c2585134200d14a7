"""What a page says of its rows: every encoding and every option that is there, and no others."""

from dataclasses import replace

import pytest

from pebench.encodings.registry import encoding_cards
from pebench.results.legend import legend
from pebench.results.page import Page
from pebench.results.writers.markdown import inline
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from pebench.tasks import configure


def ran(encoding: str, **options: object) -> Record:
    config = replace(configure("vit-digits", "add"), encoding=encoding, encoding_args=options)
    return Record(config, status="ok", metrics={"test/accuracy": 0.5})


def lines(*records: Record, suite: Suite | None = None) -> dict[str, str]:
    found = map(inline, legend(Page.of(records, suite)))
    return {line.split("**")[1]: line for line in found}


def test_an_encoding_is_told_in_a_sentence_and_so_are_the_options_that_some_row_sets():
    said = lines(ran("add"), ran("concat"), ran("concat", table="learned"), ran("concat", ratio=0.5))
    assert said["add"] == "**add**: Fixed sinusoid, added to the input; on grids one half of the channels per axis."
    assert "`table`: `sinusoid`, or `learned`: a trained vector per position" in said["concat"]
    assert said["concat"].index("`ratio`: ") < said["concat"].index("`table`: ")
    assert "`base`" not in said["concat"]
    assert "``" not in "".join(said.values())


def test_so_are_encodings_that_another_one_is_made_of():
    said = lines(ran("embed-scale", of="concat(ratio=0.5)"))
    assert [*said] == ["concat", "embed-scale"]
    assert "`ratio`" in said["concat"]
    assert "`of`: The other encoding" in said["embed-scale"]


def test_so_are_rows_that_are_still_to_run_wherever_that_is():
    suite = Suite(
        name="s", question="?", tasks=["vit-digits", "lm-grammar"], encodings=["add", "rope", "fox"], where_served=True
    )
    assert [*lines(ran("add"), suite=suite)] == ["add", "fox", "rope"]  # fox serves no images


def test_encodings_that_are_not_ours_are_told_by_their_records_alone():
    """A page must not depend on which packages its reader has."""
    assert [*lines(ran("add"), ran("theirs", width=3))] == ["add"]
    facts = {"place": "mine:Theirs", "sha256": "0123456789abcdef", "summary": "Adds theirs"}
    said = lines(ran("add"), replace(ran("theirs"), environment={"plugins": {"theirs": facts}}))
    assert said["theirs"] == "**theirs**: Adds theirs. (mine:Theirs, source 0123456789ab)"


@pytest.mark.parametrize("name", encoding_cards())
def test_every_option_of_every_encoding_has_a_meaning_in_its_docstring(name: str):
    card = encoding_cards()[name]
    assert [*card.options] == [option for option in card.options if card.meanings.get(option)]
