"""Encodings that change another one: where it acts, how loud it is, and which positions it is given."""

import math

import pytest
import torch

from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.alibi import slopes
from pebench.encodings.base import grid_positions

from .helpers import (
    GRID,
    GRID_CELLS,
    TEXT,
    TEXT_CELLS,
    alibi,
    assert_rows,
    attend,
    by_angle,
    dot,
    encode,
    fresh,
    moved,
    noise,
    numbers,
    rope_angles,
    share,
    state_of,
    text_and_grid,
    text_and_grid_cells,
    times,
    wave,
)


def test_cells_of_a_larger_image_are_numbered_before_they_are_squeezed():
    encoding = fresh("raster", (2, 2), of="interpolated(of='add')")
    state = encoding.prepare(grid_positions((3, 3)))
    assert torch.allclose(state, fresh("add", (4,)).prepare(4 / 9 * torch.arange(9.0)[:, None]), atol=1e-6)


@pytest.mark.parametrize("of", ["alibi", "rope", "deberta", "concat-qk"])
@pytest.mark.parametrize(
    ("every", "but", "acting"), [(2, False, {1, 3}), (4, True, {0, 1, 2}), (1, False, {0, 1, 2, 3}), (3, False, {2})]
)
def test_some_layers_leaves_the_others_alone(of, every, but, acting):
    encoding = encode("some-layers", TEXT, layers=4, of=of, every=every, but=but)
    for layer in range(4):
        seen = attend(encoding, TEXT, layer)
        if layer in acting:  # the other encoding has parameters for these alone
            assert torch.equal(seen.logits, attend(encoding.inner, TEXT, sorted(acting).index(layer)).logits)
        else:
            seen.check_bias(lambda h, i, j: 0.0)


@pytest.mark.parametrize("heads", [None, 1, 3, 4])
@pytest.mark.parametrize(
    "of", ["alibi", "rope", "concat-qk", "pope", "deberta", "shaw", "stack(first='rope', second='alibi')"]
)
def test_some_heads_leaves_the_others_alone(of, heads):
    options = {"of": of} if heads is None else {"of": of, "heads": heads}
    encoding = moved(build_encoding("some-heads", EncodingSpec(24, 4, 2, (9,), causal=False), options))
    seen, inner = attend(encoding, TEXT, 1), attend(encoding.inner, TEXT, 1)
    first = heads or 2
    seen.check(lambda h, i, j: inner.logits[h, i, j].item() if h < first else seen.content(h, i, j), 1e-4)


def test_some_heads_has_the_first_of_all_slopes():
    rule, exponents = alibi(TEXT, 4), [2, 4, 6, 8]
    assert slopes(4) == [2.0**-e for e in exponents]
    seen = attend(encode("some-heads", TEXT, heads=4, of="alibi"), TEXT)
    seen.check_bias(lambda h, i, j: rule(h, i, j) if h < 2 else 0.0, 1e-4)


@text_and_grid
def test_interpolated_squeezes_a_longer_text_into_the_trained_length(positions):
    rates = [9 / 301] if len(positions[0]) == 1 else [1.0, 9 / 41]
    squeezed = [tuple(p * rate for p, rate in zip(position, rates, strict=True)) for position in positions]
    encoding = encode("interpolated", positions)
    seen = attend(encoding, positions)
    seen.check(by_angle(seen, rope_angles(squeezed)), 1e-4)
    adding = encode("interpolated", positions, of="add(ratio=0.5)")
    encoded = adding.embed(torch.zeros(1, 5, 24), state_of(adding, positions))
    assert_rows(encoded[0], [wave(p, 24, ratio=0.5) for p in squeezed])


@pytest.mark.parametrize("positions", [[(0.0,), (4.0,), (8.0,)], [(1000.0,), (1008.0,), (1003.5,)]])
def test_interpolated_changes_nothing_within_the_trained_length(positions):
    seen = attend(encode("interpolated", positions), positions)
    seen.check(by_angle(seen, rope_angles(positions)), 1e-4)


def test_interpolated_takes_what_adds_to_every_layer():
    assert encode("interpolated", TEXT, of="add-every-layer").beyond == "goes on"


@text_and_grid_cells
@pytest.mark.parametrize("of", ["none", "add", "concat", "concat-wide", "rope", "learned"])
def test_embed_scale_multiplies_the_input_alone(positions, of):
    scaled, usual = encode("embed-scale", positions, of=of, factor=3.0), encode(of, positions)
    usual.load_state_dict(scaled.inner.state_dict())
    content, heads = noise(2, 5, usual.content_width), noise(2, 2, 5, 12)
    states = [state_of(encoding, positions) for encoding in (scaled, usual)]
    assert torch.equal(scaled.embed(content, states[0]), 3 * usual.embed(content, states[1]))
    assert torch.equal(scaled.residual(content, None, states[0], 1), usual.residual(content, None, states[1], 1))
    for ours, theirs in zip(
        *(e.query_key(heads, heads, content, s, 1) for e, s in zip((scaled, usual), states, strict=True)), strict=True
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("of", ["none", "add", "rope", "add-qk", "concat-qk", "alibi"])
def test_attention_scale_multiplies_products_alone(of):
    scaled = encode("attention-scale", TEXT_CELLS, of=of, factor=3.0)
    usual = encode(of, TEXT_CELLS)
    usual.load_state_dict(scaled.inner.state_dict())
    seen, plain = (attend(encoding, TEXT_CELLS, 1) for encoding in (scaled, usual))
    bias = 0 if plain.bias is None else plain.bias.double()
    torch.testing.assert_close(seen.logits - bias, 3 * (plain.logits - bias), atol=1e-5, rtol=1e-5)
    content = noise(2, 5, 24)
    states = [state_of(encoding, TEXT_CELLS) for encoding in (scaled, usual)]
    assert torch.equal(scaled.embed(content, states[0]), usual.embed(content, states[1]))


def test_scaled_concatenation_is_the_scaled_sum_without_its_crossed_terms():
    """(q + p)(k + r) / 2 - (q r + p k) / 2 = (q k + p r) / 2."""
    scaled = encode("attention-scale", TEXT, of="concat-qk", factor=2**-0.5)
    summed = encode("add-qk", TEXT)
    summed.load_state_dict(scaled.inner.state_dict())
    beside, together = attend(scaled, TEXT), attend(summed, TEXT)
    queries, keys = ([times(numbers(w)[0], wave(p, 24)) for p in TEXT] for w in (summed.queries, summed.keys))

    def rule(h, i, j):
        p, r = share(queries[i], h, 2), share(keys[j], h, 2)
        crossed = dot(together.q[h][i], r) + dot(p, together.k[h][j])
        return together.logits[h, i, j].item() - crossed / 2 / math.sqrt(12)

    beside.check(rule, 1e-4)


def test_an_input_of_content_can_be_as_loud_as_that_of_add():
    content, cells = noise(500, 9, 24), grid_positions((9,))
    loud, add = (fresh(name, (9,), **options) for name, options in (("embed-scale", {"of": "rope"}), ("add", {})))
    encoded = [e.embed(content, e.state(cells)).square().mean().sqrt().item() for e in (loud, add)]
    assert encoded == pytest.approx([2**0.5] * 2, rel=0.01)


@pytest.mark.parametrize(("width", "heads", "extent"), [(24, 2, (9,)), (96, 3, (9,)), (64, 2, (4, 4)), (4, 1, (9,))])
def test_concat_wide_is_concat_in_a_widened_model(width, heads, extent):
    """So that what ``widened`` compares it with differs by what those channels are for."""
    wide = fresh("concat-wide", extent, width=width, heads=heads)
    widened = fresh("widened", extent, width=width, heads=heads, of=f"concat(d_p={wide.d_p})")
    assert (widened.content_width, widened.model_width) == (wide.content_width, wide.model_width)
    cells, content = grid_positions(extent), noise(2, math.prod(extent), width)
    assert torch.equal(*(e.embed(content, e.state(cells)) for e in (wide, widened)))


def test_a_widened_sum_has_content_and_position_in_every_channel():
    content = noise(2, 5, 36)
    seen = encode("widened", TEXT, channels=12).embed(content, state_of(encode("widened", TEXT, channels=12), TEXT))
    assert_rows(seen[1] - content[1], [wave(p, 36) for p in TEXT])


def test_raster_counts_cells_row_by_row():
    encoding = encode("raster", GRID_CELLS, (9, 12))
    encoded = encoding.embed(torch.zeros(1, 5, 24), state_of(encoding, GRID_CELLS))
    assert_rows(encoded[0], [wave((12 * r + c,), 24) for r, c in GRID_CELLS])
    turning = encode("raster", GRID, (9, 12), of="rope")
    seen = attend(turning, GRID)
    seen.check(by_angle(seen, rope_angles([(41 * r + c,) for r, c in GRID])), 1e-4)  # as wide as they are
    assert encode("raster", TEXT, of="alibi").numbers(torch.tensor(TEXT)).tolist() == [list(p) for p in TEXT]


@pytest.mark.parametrize("extent", [(9, 12), (12, 12), (4, 16), (30, 40)])
def test_no_two_cells_of_a_larger_image_share_a_number(extent):
    encoding, cells = fresh("raster", (8, 8)), grid_positions(extent)
    assert encoding.numbers(cells).unique().numel() == len(cells)
    moved_by = encoding.numbers(cells + 3) - encoding.numbers(cells)
    assert moved_by.unique().numel() == 1
    assert encoding.numbers(grid_positions((5, 6))).tolist() == [[8 * r + c] for r in range(5) for c in range(6)]


def test_raster_of_learned_is_learned():
    one, other = (fresh(name, (9, 12), **options) for name, options in (("raster", {"of": "learned"}), ("learned", {})))
    with torch.no_grad():
        other.table.copy_(one.inner.table)
    content = noise(2, 5, 24)
    encoded = [encoding.embed(content, state_of(encoding, GRID_CELLS)) for encoding in (one, other)]
    assert torch.equal(*encoded)


def test_wrappers_nest():
    shifted = fresh("shifted", (3, 5), of="raster(of='learned')", most=2)
    assert shifted.inner.inner.table.shape == (35, 24)
    assert shifted.inner.spec.extent == (5, 7)
    randomized = fresh("randomized", (3, 5), of="raster(of='learned')", times=2)
    assert randomized.inner.inner.table.shape == (60, 24)
    places = randomized.eval().place(grid_positions((3, 5)))
    encoded = randomized.embed(torch.zeros(1, 15, 24), randomized.prepare(places))
    cells = [int(10 * r + c) for r, c in numbers(places)]
    assert_rows(encoded[0], numbers(randomized.inner.inner.table[cells] * math.sqrt(24)))
    both = encode("stack", TEXT, first="interpolated(of='add')", second="some-layers(of='rope', every=1, but=False)")
    seen = attend(both, TEXT)
    seen.check(by_angle(seen, rope_angles(TEXT)), 1e-4)
    heads = encode("some-layers", TEXT, of="some-heads(of='rope')", every=2, but=False)
    seen = attend(heads, TEXT, layer=1)
    turned = by_angle(seen, rope_angles(TEXT))
    seen.check(lambda h, i, j: turned(h, i, j) if h == 0 else seen.content(h, i, j), 1e-4)
    attend(heads, TEXT, layer=0).check_bias(lambda h, i, j: 0.0)


@pytest.mark.parametrize(
    ("name", "extent", "options", "message"),
    [
        ("stack", (9,), {"first": "add", "second": "concat"}, "'add' with 'concat': the second takes channels"),
        ("stack", (9,), {"first": "rope", "second": "concat-wide"}, "one widens something that the other reads"),
        ("stack", (9,), {"first": "shifted(of='add')", "second": "shifted(of='rope')"}, "both move tokens at random"),
        ("stack", (9,), {"first": "randomized(of='add')", "second": "cpe"}, "away from the neighbours"),
        ("stack", (9,), {"first": "randomized(of='add')", "second": "yarn"}, "depend on how long the text is"),
        ("stack", (9,), {"first": "randomized(of='add')", "second": "interpolated"}, "depend on how long the text is"),
        ("interpolated", (9, 9), {"of": "raster(of='add')"}, "can be inside 'raster'"),
        ("interpolated", (9,), {"of": "yarn"}, "not stretched already, got 'yarn'"),
        (
            "some-heads",
            (9,),
            {"of": "embed-scale(of='rope')"},
            "attention alone, such as rope or alibi, got 'embed-scale'",
        ),
        ("some-layers", (9,), {"of": "embed-scale(of='rope')"}, "attention alone, such as rope or alibi, got 'embed"),
        ("fire", (9,), {"hidden": 0}, "must be positive and finite, got 0"),
        ("log-cpb", (9,), {"hidden": -1}, "must be positive and finite, got -1"),
        ("learnable-fourier", (9,), {"gamma": 0.0}, "must be positive and finite, got 0.0"),
        ("stack", (9,), {"first": "concat-qk", "second": "rope"}, "'concat-qk' with 'rope': one widens"),
        ("stack", (9,), {"first": "shaw", "second": "some-heads(of='tupe')"}, "'shaw' with .* one widens"),
        ("stack", (9,), {"first": "transformer-xl", "second": "pope"}, "that the other reads"),
        (
            "stack",
            (9,),
            {"first": "some-layers(of='concat-qk',every=2,but=False)", "second": "rope"},
            "that the other reads",
        ),
        ("stack", (9,), {"first": "learned", "second": "shifted(of='rope')"}, "'learned' with .* has no positions"),
        ("stack", (9,), {"first": "randomized(of='rope')", "second": "learned"}, "with 'learned': .* has no positions"),
        ("some-layers", (9,), {"every": 0}, "none of 2 layers with every=0"),
        ("some-layers", (9,), {"every": 3, "but": False}, "none of 2 layers with every=3"),
        ("some-layers", (9,), {"every": 1, "but": True}, "none of 2 layers with every=1"),
        ("some-heads", (9,), {"heads": 0}, "must be 1 to 2, got 0"),
        ("some-heads", (9,), {"heads": 3}, "must be 1 to 2, got 3"),
        *[
            (name, (9,), {"of": of}, "attention alone, such as rope or alibi, got")
            for name in ("some-layers", "some-heads")
            for of in ("add", "cpe", "concat", "stack(first='add', second='rope')", "interpolated(of='add')")
        ],
        ("randomized", (9,), {"times": 0}, "must be 1 or more, got 0"),
        ("shifted", (9,), {"most": -1}, "must be 0 or more, got -1"),
        ("embed-scale", (9,), {"factor": 0.0}, "must be positive and finite, got 0.0"),
        ("attention-scale", (9,), {"factor": -1.0}, "must be positive and finite, got -1.0"),
        ("widened", (9,), {"channels": 3}, "must be a positive multiple of the 2 heads, got 3"),
        ("widened", (9,), {"channels": 0}, "must be a positive multiple of the 2 heads, got 0"),
        *[
            ("interpolated", (9,), {"of": of}, "without a table of positions, got")
            for of in ("learned", "tupe", "swin-bias", "randomized", "raster(of='learned')")
        ],
        *[
            ("interpolated", (9,), {"of": of}, "does not look for neighbours, got")
            for of in ("cpe", "raster(of='cpe')", "stack(first='add', second='cpe')")
        ],
        ("randomized", (9,), {"of": "cpe"}, "does not look for neighbours, got"),
        *[
            ("raster", (9, 9), {"of": of}, "can be inside it")
            for of in ("randomized", "shifted(of='rope')", "stack(first='shifted', second='rope')")
        ],
    ],
)
def test_impossible_combinations_are_refused(name, extent, options, message):
    spec = EncodingSpec(24, 2, 2, extent, causal=False)
    with pytest.raises(ValueError, match=f"'{name}'.*{message}"):
        build_encoding(name, spec, options)
