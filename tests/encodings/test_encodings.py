"""What cards say is what papers say, and encodings are held to more than their properties (tests/conformance)."""

import contextlib
import functools
import math

import pytest
import torch
from torch import Tensor, nn

from pebench.conformance import SETTINGS, Bench, Setting, Subject
from pebench.conformance.bench import noise
from pebench.conformance.comparisons import DIFFERENT, gap
from pebench.conformance.properties.order import order_effect_by_layer
from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.encodings.base import grid_positions
from pebench.encodings.pairs import unique_offsets
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.models.transformer import Transformer

NAMES = list(encoding_cards())


@functools.lru_cache(maxsize=len(SETTINGS))
def bench(name: str, setting: Setting) -> Bench:
    return Bench(Subject(name), setting)


def served(name: str) -> list[Setting]:
    return [setting for setting in SETTINGS if Subject(name).serves(setting)]


def declares(name: str) -> set[str]:
    """Properties that an encoding has in some setting that it serves, in the words of ``paper``."""
    cls, built = load_encoding(name), [Subject(name).build(setting.spec) for setting in served(name)]
    flags = ("relative", "contextual", "isotropic", "mirror_blind", "blind")
    found = {flag for flag in flags if any(getattr(encoding, flag) for encoding in built)}
    found |= {encoding.beyond for encoding in built} - {"goes on"}
    found |= {"causal_only"} if cls.causal_only else set()
    return found | ({(1,): {"text"}, (2,): {"images"}}.get(cls.axes, set()))


@pytest.mark.parametrize("name", NAMES)
def test_an_encoding_is_what_its_paper_says(name: str):
    """Read off the paper, so that a declaration that is wrong together with the code is noticed."""
    paper = encoding_cards()[name].declared["paper"]
    assert paper is not None, "declare `paper`"
    assert len(set(paper)) == len(paper)
    assert declares(name) == set(paper)


@pytest.mark.parametrize("name", NAMES)
def test_an_encoding_has_as_many_parameters_as_its_paper_says(name: str):
    """A formula and a table that are wrong together, worked out for a small model: D 32, H 4, K 8, two layers, L 8."""
    encoding = Subject(name).build(served(name)[0].spec)
    assert sum(p.numel() for p in encoding.parameters()) == encoding_cards()[name].declared["paper_size"]


def test_what_papers_say_is_as_it_was_read():
    """A few that every reader knows, in case all of them were changed at once."""
    papers = {name: (card.declared["paper"], card.declared["paper_size"]) for name, card in encoding_cards().items()}
    assert papers["add"] == ((), 0)
    assert papers["alibi"] == (("relative", "isotropic", "mirror_blind"), 0)
    assert papers["fire"] == ((), 198)
    assert papers["learned"] == (("refuses",), 8 * 32)
    assert papers["rope"] == (("relative",), 0)
    assert papers["t5-bias"] == (("relative",), 32 * 4)


def test_none_classifies_by_its_bag_of_tokens():
    """The control of all that notice an order; see also the property `order`."""
    model = bench("none", SETTINGS[1]).model
    content = torch.randn(2, 8, 32, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(content).mean(1), model(content.flip(1)).mean(1), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("permuted(of='fox')", "'permuted' needs one that asks for positions, got 'fox'"),
        ("permuted(of='cpe')", "'permuted' needs one that does not look for neighbours, got 'cpe'"),
        ("permuted(draw=-1)", "draw of encoding 'permuted' must be 0 or more, got -1"),
        ("randomized(of='fox')", "'randomized' needs one that asks for positions, got 'fox'"),
        ("stack(first='tupe',second='rope')", "cannot have 'tupe' with 'rope'"),
        ("stack(first='tupe',second='shaw')", "cannot have 'tupe' with 'shaw'"),
        ("stack(first='add',second='concat')", "the second takes channels from the first"),
        ("some-layers(every=0)", "acts in none of 2 layers"),
        ("some-layers(of='add')", "takes one that acts in attention alone"),
        ("some-heads(of='cpe')", "takes one that acts in attention alone"),
        ("raster(of='randomized')", "cannot have 'randomized' inside, but can be inside it"),
        ("interpolated(of='learned')", "needs one without a table"),
        ("interpolated(of='fox')", "needs one that asks for positions"),
    ],
)
def test_what_cannot_be_composed_is_refused(name: str, message: str):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        build_encoding(name, SETTINGS[0].spec)


@pytest.mark.parametrize("name", ["dape", "ssmax(of='alibi')"])
def test_what_only_passes_the_input_on_acts_in_attention_alone(name: str):
    assert build_encoding("some-heads", SETTINGS[0].spec, {"of": name}).inner.wraps


@pytest.mark.parametrize("value", [0.0, -5.0, math.inf, math.nan])
@pytest.mark.parametrize(
    ("name", "option"), [(n, o) for n, card in encoding_cards().items() for o in ("base", "theta") if o in card.options]
)
def test_frequencies_have_a_positive_base(name: str, option: str, value: float):
    specs = [setting.spec for setting in SETTINGS if Subject(name).serves(setting)]
    with pytest.raises(ValueError, match=f"{option} of encoding '{name}' must be positive and finite, got {value}"):
        load_encoding(name)(specs[0], **{option: value})


@pytest.mark.parametrize(
    ("name", "option"),
    [(n, o) for n, card in encoding_cards().items() for o, usual in card.options.items() if type(usual) is float]
    + [("ntk-rope", "factor"), ("yarn", "factor")],
)
def test_an_option_that_is_no_number_is_refused(name: str, option: str):
    spec = next(setting.spec for setting in SETTINGS if Subject(name).serves(setting))
    with pytest.raises(ValueError, match="got nan"):
        load_encoding(name)(spec, **{option: math.nan})


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("none", "some-layers")])
def test_every_layer_has_positions(name: str):
    """A property of ours, not of all: anyone's may leave layers out."""
    for setting in SETTINGS:
        if not Subject(name).serves(setting):
            continue
        for layer, found in enumerate(order_effect_by_layer(bench(name, setting))):
            assert found > DIFFERENT, f"layer {layer}, {setting.name}"


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        (name, option, value)
        for name, card in encoding_cards().items()
        for option, value in card.options.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ],
)
def test_every_number_among_the_options_makes_a_difference(name: str, option: str, value: float):
    setting = next(setting for setting in SETTINGS if Subject(name).serves(setting))
    common = {"factor": 4.0} if name == "yarn" else {}
    models, extent = [], (512,) * len(setting.extent)  # wide enough for all of them
    # The last for an option that must be odd.
    for chosen in (value, 2 * value or 1, value // 2 if isinstance(value, int) else value / 2, value + 2):
        with contextlib.suppress(ValueError):
            models.append(Bench(Subject(name, common | {option: chosen}), setting).trunk(extent=extent, d_model=128))
    positions = 50 * grid_positions(setting.extent)
    outputs = [model(noise(2, len(positions), model.encoding.content_width), positions) for model in models]
    sizes = [[p.shape for p in model.parameters()] for model in models]
    assert any(
        size != sizes[0] or gap(output, outputs[0]) > DIFFERENT
        for size, output in zip(sizes[1:], outputs[1:], strict=True)
    )


class Slope(PositionalEncoding):
    """Keeps the positions as they are and trains one rate."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.rate = nn.Parameter(torch.ones(()))

    def prepare(self, positions: Tensor) -> Tensor:
        return positions

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        return x + self.rate * state


def test_an_encoding_may_keep_the_positions_themselves():
    model, content = Transformer(Slope(SETTINGS[1].spec)), torch.randn(1, 8, 32)
    with torch.inference_mode():
        model(content)
    model(content).pow(3).sum().backward()
    assert model.encoding.rate.grad.abs() > 0


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 0}, "d_model must be 1 or more, got 0"),
        ({"num_heads": -2}, "num_heads must be 1 or more, got -2"),
        ({"num_layers": -1}, "num_layers must be 0 or more, got -1"),
        ({"extent": ()}, r"extent must have .* got \(\)"),
        ({"extent": (0,)}, r"extent must have .* got \(0,\)"),
        ({"extent": (8, -8)}, r"extent must have .* got \(8, -8\)"),
        ({"num_heads": 3}, "d_model must be a multiple of num_heads, got 8 and 3"),
    ],
)
def test_a_model_has_sizes(sizes: dict, message: str):
    usual = {"d_model": 8, "num_heads": 2, "num_layers": 0, "extent": (8,), "causal": False}
    EncodingSpec(**usual)
    with pytest.raises(ValueError, match=message):
        EncodingSpec(**(usual | sizes))


@pytest.mark.parametrize("axes", [(1,), (2,)])
def test_an_encoding_refuses_axes_that_it_does_not_serve(axes: tuple[int, ...]):
    class Partial(PositionalEncoding):
        pass

    Partial.axes = axes
    for extent in ((8,), (3, 5)):
        spec = EncodingSpec(8, 2, 1, extent, causal=False)
        if len(extent) in axes:
            Partial(spec)
        else:
            with pytest.raises(ValueError, match=rf"'Partial' serves {axes[0]} position axes, got {len(extent)}"):
                Partial(spec)


def test_offsets_of_text_are_those_of_rows():
    def check(positions: Tensor) -> None:
        different, pairs = unique_offsets(positions)
        every = positions.unsqueeze(0) - positions.unsqueeze(1)
        assert torch.equal(different[pairs.whole()], every)
        assert torch.equal(different, torch.unique(different, dim=0))  # in rising order, each once

    random = 100 * torch.rand(300, 1, generator=torch.Generator().manual_seed(0))
    text = grid_positions((300,))
    for positions in (random, random.round(), text, text[:1], text + 7, text + 0.1, text.flip(0), 2 * text):
        check(positions)
    for positions in (1e7 + text, 2.0**24 - 150 + text, grid_positions((5, 7))):
        check(positions)


def test_a_grid_of_another_size_is_refused():
    model = Transformer(build_encoding("add", SETTINGS[2].spec))
    with pytest.raises(ValueError, match=r"expected 15 tokens for the grid \(3, 5\), got 16"):
        model(torch.zeros(1, 16, 32))
