"""``pebench verify``: what it prints, what it returns, and that it objects to what is wrong."""

import re
from pathlib import Path

import pytest

from pebench.cli import main
from pebench.cli.verify import read_options
from pebench.conformance import PROPERTIES, SETTINGS, Bench, BrokenError, Subject, check
from pebench.conformance.card import acts_on, attention, card, step_cost
from pebench.encodings.add import AddEncoding
from pebench.encodings.base import PositionalEncoding

MINE = '''
from pebench import PositionalEncoding


class Ruler(PositionalEncoding):
    """The position itself, small."""

    def __init__(self, spec, *, scale: float = 0.1):
        super().__init__(spec)
        self.scale = scale

    def prepare(self, positions):
        axes = positions.new_tensor([[1.0], [0.3]])[: positions.shape[1]]
        return self.scale * (positions @ axes) % 7

    def embed(self, x, state):
        signs = 1 - 2 * (self.spec.d_model - 1 - x.new_tensor(range(x.shape[-1]))).remainder(2)
        return x + (state * signs).to(x.dtype)


class Mute(PositionalEncoding):
    """Forgets to say anything."""

    def embed(self, x, state):
        return x


class Breaking(PositionalEncoding):
    """Can be made, and not used."""

    def embed(self, x, state):
        raise RuntimeError("out of paper")


class Crashing(PositionalEncoding):
    """Cannot be made."""

    def __init__(self, spec):
        raise RuntimeError("out of order")
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_encodings.py").write_text(MINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "my_encodings", raising=False)


def test_a_sound_encoding_passes_with_its_card(capsys):
    assert main(["verify", "alibi"]) == 0
    text = capsys.readouterr().out
    assert all(f" {name} " in text for name in PROPERTIES)
    assert "Every property holds." in text
    assert "broken" not in text
    assert "acts on          attention logits" in text
    assert "serves           causal text, text, grid, causal grid" in text
    assert "invariances      a shift, rows exchanged with columns, the mirror image" in text
    assert "attention        fused, with a bias" in text
    assert re.search(r"a step takes +\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\) x none's at 64 tokens", text)


@pytest.mark.slow
def test_a_class_of_ones_own_is_found_in_the_current_folder(mine, capsys):
    main(["verify", "my_encodings:Ruler", "--set", "scale=0.2"])
    text = capsys.readouterr().out
    assert "ok x 4  constructs" in text
    assert "-       size" in text  # the formula is of the default options


@pytest.mark.slow
def test_what_is_broken_is_named(mine, capsys):
    assert main(["verify", "my_encodings:Mute"]) == 1
    text = capsys.readouterr().out
    assert "broken  order " in text
    assert "expected outputs that notice that tokens are moved" in text
    assert "got      a difference of " in text
    assert "\nBroken properties: " in text


def test_an_encoding_that_cannot_be_made_is_broken_and_no_crash(mine, capsys):
    assert main(["verify", "my_encodings:Crashing"]) == 1
    assert "RuntimeError: out of order" in capsys.readouterr().out


def test_one_mistake_behind_many_properties_is_told_once(mine, capsys):
    assert main(["verify", "my_encodings:Breaking"]) == 1
    text = capsys.readouterr().out
    assert text.count("RuntimeError: out of paper") == 1
    assert text.count("        as for ") == text.count("\nbroken ") - 1 > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ropy"], "unknown encoding 'ropy'. Did you mean 'rope'?"),
        (["nowhere:Class"], "no module 'nowhere' is installed or in this folder"),
        (["my_encodings:Nothing"], "has no 'Nothing'"),
        (["pathlib:Path"], "expected a class that inherits from pebench.PositionalEncoding"),
        (["rope", "--set", "theto=3"], "Did you mean 'theta'?"),
        (["rope", "--set", "theta"], "--set expects key=value"),
        (["my_encodings:Ruler", "--set", "scala=3"], "Did you mean 'scale'?"),
        (["concat", "--set", "d_p=7"], "can be built for none of our models: d_p of encoding 'concat' must be"),
    ],
)
def test_mistakes_are_told_in_a_line(mine, capsys, arguments, message):
    assert main(["verify", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_what_refuses_a_length_is_timed_at_others():
    class Short(AddEncoding):
        def __init__(self, spec):
            if spec.max_len > 100:
                raise ValueError("encoding 'short' has 100 places")
            super().__init__(spec)

    assert [length for length, _ in step_cost(Subject(Short), rounds=2)] == [64]


def test_a_setting_goes_before_an_encodings_own_option_even_by_its_default():
    assert read_options("add(ratio=2)", ["ratio=1.0"]) == ("add", {})
    assert read_options("add(ratio=2)", ["d_p=8"]) == ("add", {"ratio": 2.0, "d_p": 8})


def test_a_broken_property_says_what_where_and_how():
    class Mute(PositionalEncoding):
        def embed(self, x, state):
            return x

    with pytest.raises(BrokenError) as caught:
        check(PROPERTIES["order"], Bench(Subject(Mute), SETTINGS[1]))
    assert (caught.value.property, caught.value.setting) == ("order", "text")
    assert str(caught.value).startswith("order (text): expected outputs that notice that tokens are moved, got a diff")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", []),
        ("add", ["the input"]),
        ("cpe", ["the residual stream"]),
        ("rope", ["queries and keys"]),
        ("deberta", ["queries and keys", "attention logits"]),
        ("stack", ["the input", "queries and keys"]),
        ("shifted", ["positions", "the input"]),
        ("some-heads(of='alibi')", ["attention logits"]),
    ],
)
def test_where_an_encoding_acts_is_found_by_watching(name, expected):
    assert acts_on(Bench(Subject(name), SETTINGS[0])) == expected


def test_a_hook_that_writes_into_what_it_is_given_acts_too():
    class Writing(PositionalEncoding):
        def embed(self, x, state):
            return x.add_(1.0)

    assert acts_on(Bench(Subject(Writing), SETTINGS[0])) == ["the input"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rope", "fused, without a bias"),
        ("alibi", "fused, with a bias"),
        ("t5-bias", "matrix products, with a trained bias"),
        ("some-layers(of='alibi', every=2)", "fused, with a bias; fused, without a bias"),
    ],
)
def test_the_path_of_attention(name, expected):
    assert attention(Bench(Subject(name), SETTINGS[0])) == expected


def test_a_card_tells_settings_apart():
    facts = card(Subject("lie-re"), rounds=2)
    assert facts["invariances"] == "a shift (causal text, text)"
    assert facts["parameters"].startswith(
        "28 (causal text), 28 (text), 56 (grid), 56 (causal grid); declared: num_axes"
    )
    learned = card(Subject("concat(table='learned')"), rounds=2)["parameters"]
    assert learned.endswith("declared: max_len * 8"), learned  # of these options, not of the class
    assert "declared" not in card(Subject("shifted(of='learned')"), rounds=2)["parameters"]
    of_images, of_content = card(Subject("rope-mixed"), rounds=2), card(Subject("fox"), rounds=2)
    assert (of_images["serves"], of_images["KV cache"]) == ("grid, causal grid", "serves no causal text")
    assert of_content["beyond training"] == "asks for no positions"
    assert of_content["KV cache"] == "needs more than keys and values"
