"""Cards: what an encoding declares, read from sources and from classes, and refused where it is wrong."""

import re
import sys
from pathlib import Path

import pytest

from pebench.encodings.cards import card_of, read_card
from pebench.encodings.registry import encoding_card, encoding_cards, load_encoding, normal_options
from pebench.encodings.sources import find_source, parse_source
from pebench.errors import UserError

from .workplace import ROWS, Workplace


@pytest.mark.parametrize("name", encoding_cards())
def test_the_card_that_is_read_is_what_the_class_is(name: str) -> None:
    assert encoding_card(name) == card_of(name, load_encoding(name))


def test_a_source_is_parsed_once_for_all_cards_that_need_it() -> None:
    assert (path := find_source("pebench.encodings.base"))
    assert parse_source(path) is parse_source(path)


def test_a_card_is_read_without_importing_anything(here: Workplace) -> None:
    module = here.module(ROWS)
    (here.folder / "parts").mkdir()
    (here.folder / "parts" / "__init__.py").write_text("raise SystemExit('imported')\n")
    here.module(ROWS, fresh=False, name="parts.rows")
    for place in (f"{module}:Rows", "parts.rows:Rows"):
        card = encoding_card(place)
        assert (card.name, card.summary) == (place, "Adds a number. And more")
        assert (card.options, card.types) == ({"scale": 1.0, "of": None}, {"scale": float, "of": str})
        assert (card.hooks, card.declared["size"], card.declared["axes"]) == (("embed",), "d_model", (1, 2))
        assert card.module not in sys.modules


def test_a_card_holds_what_is_inherited_from_ours_and_over_files(here: Workplace) -> None:
    first = here.module("from pebench.encodings.rope import RotaryEncoding as R\nclass First(R):\n    axes = (1,)\n")
    second = here.module(f"from {first} import First\nclass Second(First):\n    '''Twice.'''\n    beyond = 'clamps'\n")
    card = encoding_card(f"{second}:Second")
    assert second not in sys.modules
    assert (card.hooks, card.options, card.declared["axes"]) == (
        ("query_key",),
        {"theta": None, "interleaved": False, "pairing": "halves"},
        (1,),
    )
    assert (card.declared["relative"], card.declared["beyond"]) == (True, "clamps")
    assert card == card_of(card.name, load_encoding(card.name))
    of_rope = encoding_cards()["rope"].declared
    for own, usual in (("formula", None), ("aliases", ()), ("mark", None), ("paper", None), ("paper_size", None)):
        assert of_rope[own] != usual
        assert card.declared[own] == usual  # these are rope's alone


def test_a_module_is_imported_where_its_source_is_not_enough(here: Workplace) -> None:
    text = ROWS.replace("scale: float = 1.0", "scale: float = 2 * HALF").replace("class Rows", "HALF = 0.5\nclass Rows")
    module = here.module(text)
    assert encoding_card(f"{module}:Rows").options["scale"] == 1.0
    assert module in sys.modules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no 'Rows'"),
        ("Rows = 3", "expected a class that inherits from pebench.PositionalEncoding"),
        ("class Rows: ...", "expected a class that inherits from pebench.PositionalEncoding"),
        ("raise KeyError('gone')\nRows = 3", r"importing \w+ failed with KeyError: 'gone'"),
        ("raise SystemExit(3)\nRows = 3", r"importing \w+ failed with SystemExit: 3"),
        ("def", r"importing \w+ failed with SyntaxError"),
        ("import not_there_at_all as Rows", r"importing \w+ failed with ModuleNotFoundError"),
        (ROWS.replace("spec, *, scale", "spec, scale"), r"'scale' .* keyword-only: __init__\(self, spec, \*, scale"),
        (ROWS.replace("class Rows", "class rows"), r"has no 'Rows'\. Did you mean \w+:rows\?"),
        (ROWS.replace("scale: float = 1.0", "scale: float"), "option 'scale' of encoding .* needs a default"),
        (ROWS.replace("scale: float = 1.0", "scale: list = [1]"), r"option 'scale' .* must be .* got list = \[1\]"),
        (ROWS.replace("scale: float = 1.0", "scale=None"), "option 'scale' .* got no annotation = None"),
    ],
)
def test_what_is_no_encoding_is_refused_by_name(text: str, reason: str, here: Workplace) -> None:
    place = f"{here.module(text)}:Rows"
    for ask in (load_encoding, encoding_card):
        with pytest.raises(UserError, match=reason) as error:
            ask(place)
        assert place in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["not_there_at_all:Rows", "not_there_at_all.sub:Rows"])
def test_a_module_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UserError, match="no module 'not_there_at_all' is installed or in this folder"):
        encoding_card(name)


@pytest.mark.parametrize("name", ["theirs", "theirs.py", "theirs.Rows", "theirs.py:Rows"])
def test_a_file_named_for_its_class_gets_a_hint(name: str, here: Workplace) -> None:
    here.module(ROWS, fresh=False, name="theirs")
    with pytest.raises(UserError, match="theirs:Class"):
        encoding_card(name)


@pytest.mark.parametrize("name", ["mine:", ":Rows", "mine:Ro ws", "../mine:Rows", "rop", "a:b:c"])
def test_what_is_no_name_is_unknown(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown encoding .* module:Class"):
        encoding_card(name)


def test_options_of_a_plug_in_are_checked_as_ours_are(here: Workplace) -> None:
    place = f"{here.module(ROWS)}:Rows"
    assert normal_options(place, {"scale": 2, "of": None}) == {"scale": 2.0}
    with pytest.raises(UserError, match=r"expects float, got 'x'"):
        normal_options(place, {"scale": "x"})
    with pytest.raises(UserError, match="Did you mean 'scale'"):
        normal_options(place, {"scal": 1.0})


def test_a_card_of_ours_can_be_read_by_its_place() -> None:
    assert read_card("x", "pebench.encodings.rope", "RotaryEncoding").hooks == ("query_key",)


def test_the_last_definition_of_a_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one_base.py").write_text(
        'from pebench import PositionalEncoding\n\nclass Rows(PositionalEncoding):\n    """Of the base."""\n'
    )
    (tmp_path / "one_own.py").write_text(
        'from one_base import Rows\n\nclass Rows(Rows):\n    """Our own."""\n    relative = True\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    card = read_card("x", "one_own", "Rows")
    assert (card.summary, card.declared["relative"]) == ("Our own", True)


def test_other_names_and_marks_belong_to_one_encoding_each() -> None:
    cards = encoding_cards()
    others = [other for card in cards.values() for other in card.declared["aliases"]]
    marks = [card.declared["mark"] for card in cards.values() if card.declared["mark"] is not None]
    assert all(re.fullmatch("[a-z0-9]+", other) for other in others)
    assert len(set(others) | {re.sub("[^a-z0-9]", "", name) for name in cards}) == len(others) + len(cards)
    assert len(set(marks)) == len(marks)
