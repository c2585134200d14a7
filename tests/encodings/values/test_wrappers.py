"""Encodings that change another one: what they add up to, and where they take the tokens to be."""

import itertools
import math

import pytest
import torch

from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.alibi import slopes
from pebench.encodings.base import grid_positions
from pebench.models.transformer import Transformer

from .helpers import (
    GRID,
    GRID_CELLS,
    TEXT,
    TEXT_CELLS,
    assert_rows,
    attend,
    by_angle,
    dot,
    each_layer,
    encode,
    fresh,
    moved,
    noise,
    numbers,
    plus,
    rotated,
    share,
    state_of,
    text_and_grid,
    text_and_grid_cells,
    times,
    wave,
)


def rope_angles(positions, n=6, theta=10000.0):
    n //= len(positions[0])
    theta = theta if len(positions[0]) == 1 else 100.0
    return [[p * theta ** (-i / n) for p in position for i in range(n)] for position in positions]


def alibi(positions, heads=2):
    return lambda h, i, j: -(2 ** (-8 * (h + 1) / heads)) * math.dist(positions[i], positions[j])


@text_and_grid
def test_a_stack_tells_the_input_and_attention(positions):
    encoding, content = encode("stack", positions), noise(2, 5, 24)
    rows = [[plus(x, wave(p, 24)) for x, p in zip(text, positions, strict=True)] for text in numbers(content)]
    assert_rows(encoding.embed(content, state_of(encoding, positions)), rows)
    seen = attend(encoding, positions)
    seen.check(by_angle(seen, rope_angles(positions)), 1e-4)


def test_a_stack_sums_inputs_and_biases():
    encoding = encode("stack", TEXT, first="alibi", second="kerple-log")
    p, a = numbers(encoding.second.p)[1], numbers(encoding.second.a)[1]
    rule = alibi(TEXT)

    def both(h, i, j):
        log = math.log(1 + max(a[h], 0.01) * abs(TEXT[i][0] - TEXT[j][0]))
        return rule(h, i, j) - max(p[h], 0.01) * log

    attend(encoding, TEXT, layer=1).check_bias(both, 1e-4)
    encoding, content = encode("stack", TEXT, first="add(ratio=0.5)", second="multiply(base=50.0)"), noise(1, 5, 24)
    waves = [(wave(p, 24, ratio=0.5), wave(p, 24, 50.0)) for p in TEXT]
    rows = [
        [(x + a) * b for x, a, b in zip(row, *both, strict=True)]
        for row, both in zip(numbers(content)[0], waves, strict=True)
    ]
    assert_rows(encoding.embed(content, state_of(encoding, TEXT))[0], rows)


def test_a_stack_of_rotation_and_widening_does_one_after_the_other():
    encoding = encode("stack", TEXT, first="rope", second="concat-qk")
    seen, angles = attend(encoding, TEXT), rope_angles(TEXT)
    queries, keys = (
        [times(numbers(w)[0], wave(p, 24)) for p in TEXT] for w in (encoding.second.queries, encoding.second.keys)
    )
    turned = by_angle(seen, angles)

    def rule(h, i, j):
        return (turned(h, i, j) + dot(share(queries[i], h, 2), share(keys[j], h, 2)) / math.sqrt(12)) / math.sqrt(2)

    seen.check(rule, 1e-4)


def test_a_stack_of_tupe_and_t5_bias_is_tupe_r():
    encoding = encode("stack", TEXT_CELLS, first="tupe", second="t5-bias")
    alone, seen = attend(encoding.first, TEXT_CELLS), attend(encoding, TEXT_CELLS)
    table = numbers(encoding.second.table)[0]

    def rule(h, i, j):
        offset = int(TEXT_CELLS[j][0] - TEXT_CELLS[i][0])
        assert abs(offset) <= 8
        exact = table[abs(offset) + 16 * (offset > 0)] if abs(offset) < 8 else table[8 + 16 * (offset > 0)]
        return alone.logits[h, i, j].item() + exact[h]

    seen.check(rule)


def test_a_stack_can_be_wider_and_stack_again():
    encoding = fresh("stack", first="concat-wide(d_p=8)", second="stack(first='cpe', second='rope')")
    assert (encoding.content_width, encoding.model_width) == (24, 32)
    assert encoding.second.second.pairs == 8
    assert Transformer(encoding)(noise(2, 9, 24)).shape == (2, 9, 32)
    narrow = fresh("stack", first="concat(d_p=8)", second="add")
    assert (narrow.content_width, narrow.model_width) == (16, 24)


@pytest.mark.parametrize("pair", [("rope", "alibi"), ("concat-qk", "add"), ("randomized(of='learned')", "rope")])
def test_a_stack_needs_no_layers(pair):
    spec = EncodingSpec(24, 2, 0, (9,), causal=True)
    assert build_encoding("stack", spec, dict(zip(("first", "second"), pair, strict=True))).content_width == 24


@pytest.mark.parametrize("other", ["shaw", "transformer-xl", "deberta", "cope", "pope"])
def test_a_stack_may_not_depend_on_the_middle_of_the_text(other):
    """As ``xpos`` does, in what it makes of a query and of a key alone."""
    spec = EncodingSpec(24, 2, 2, (64,), causal=True)
    with pytest.raises(ValueError, match=r"'xpos' with .* would depend on how long the text is"):
        build_encoding("stack", spec, {"first": "xpos", "second": other})
    for fits in ("alibi", "add", "fox"):
        build_encoding("stack", spec, {"first": "xpos", "second": fits})


def test_cells_of_a_larger_image_are_numbered_before_they_are_squeezed():
    encoding = fresh("raster", (2, 2), of="interpolated(of='add')")
    state = encoding.prepare(grid_positions((3, 3)))
    assert torch.allclose(state, fresh("add", (4,)).prepare(4 / 9 * torch.arange(9.0)[:, None]), atol=1e-6)


def test_a_random_code_is_the_one_that_was_loaded():
    one, other = (fresh("random", (9,), table_seed=seed) for seed in (0, 1))
    state = one.prepare(grid_positions((9,)))
    one.load_state_dict(other.state_dict())
    x = torch.zeros(1, 9, 24)
    assert torch.equal(one.embed(x, state), other.embed(x, other.prepare(grid_positions((9,)))))


def test_a_stack_counts_both_and_is_what_both_are():
    encoding = fresh("stack", first="learned", second="swin-bias")
    assert encoding.parameter_count() == 9 * 24 + 2 * 2 * 17
    assert sum(p.numel() for p in encoding.parameters()) == encoding.parameter_count()
    assert (encoding.relative, encoding.beyond) == (False, "refuses")
    both = fresh("stack", first="alibi", second="kerple-log")
    assert both.relative
    assert both.isotropic
    assert both.mirror_blind
    assert not fresh("stack", first="alibi", second="rope").mirror_blind


@pytest.mark.parametrize(
    ("first", "second", "relative"),
    [
        ("rope", "alibi", True), ("rope", "p-rope", True), ("shaw", "deberta", True), ("rope", "shaw", False),
        ("transformer-xl", "rope", False), ("rope", "stack(first='alibi', second='shaw')", False),
        ("some-layers(of='rope', every=2)", "cope", False), ("rope", "lie-re", False),
    ],
)  # fmt: skip
def test_a_stack_is_not_relative_where_a_bias_reads_turned_queries(first, second, relative):
    """The bias of an offset times a query that tells where it is."""
    spec = EncodingSpec(24, 2, 2, (9,), causal=True)
    assert build_encoding("stack", spec, {"first": first, "second": second}).relative == relative


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


def places_of(encoding, positions, training):
    return numbers(encoding.train(training).place(positions))


def draws(encoding, extent, count):
    positions = grid_positions(extent)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [places_of(encoding, positions, training=True) for _ in range(count)]


def test_randomized_draws_ordered_places_anew_in_training():
    encoding = fresh("randomized", of="add")
    found = [[p for (p,) in places] for places in draws(encoding, (9,), 400)]
    assert all(places == sorted(set(places)) for places in found)
    assert all(len(places) == 9 and places[0] >= 0 and places[-1] < 36 for places in found)
    assert all(p == int(p) for places in found for p in places)
    assert len({tuple(places) for places in found}) > 395
    counts = [sum(place in places for places in found) for place in range(36)]  # each is drawn by one in four
    assert min(counts) > 60
    assert max(counts) < 145


def test_randomized_moves_rows_and_columns():
    encoding, cells = fresh("randomized", (3, 5), of="add", times=3), list(itertools.product(range(3), range(5)))
    for places in draws(encoding, (3, 5), 20):
        rows, columns = (sorted({place[axis] for place in places}) for axis in (0, 1))
        assert (len(rows), len(columns)) == (3, 5)
        assert rows[-1] < 9
        assert columns[-1] < 15
        assert places == [[rows[r], columns[c]] for r, c in cells]


@pytest.mark.parametrize("extent", [(9,), (3, 5)])
def test_randomized_has_one_draw_in_evaluation(extent):
    positions = grid_positions(extent)
    one, other = (places_of(fresh("randomized", extent), positions, training=False) for _ in range(2))
    assert one == other
    for n in range(1, len(positions)):  # a prefix is where it is in the whole
        assert places_of(fresh("randomized", extent), positions[:n].clone(), training=False) == one[:n]
    order = torch.arange(len(positions) - 1, -1, -1)
    assert places_of(fresh("randomized", extent), positions[order], training=False) == one[::-1]


def test_randomized_draws_in_evaluation_what_training_had_not_decided():
    encoding, positions = fresh("randomized"), grid_positions((9,))
    fixed = places_of(encoding, positions, training=False)
    state = torch.get_rng_state()
    assert places_of(encoding, positions.clone(), training=False) == fixed
    assert torch.equal(torch.get_rng_state(), state)
    moving = places_of(encoding, positions, training=True)
    assert moving != fixed
    assert places_of(encoding, positions, training=False) == fixed


def test_randomized_finds_more_places_for_a_longer_text():
    encoding = fresh("randomized")
    for length in (10, 20, 36):
        places = [p for (p,) in places_of(encoding, grid_positions((length,)), training=False)]
        assert places == sorted(set(places))
        assert len(places) == length
        assert places[-1] < 36


def test_randomized_tells_a_short_text_from_the_first_places_of_a_full_one():
    """So that training on texts of unequal length has the distances that evaluation has."""
    encoding = fresh("randomized")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        most = max(places_of(encoding, grid_positions((2,)), training=True)[1][0] for _ in range(200))
    assert most < 30  # two of 36 would get there


def test_a_trunk_with_random_places_is_one_with_these_positions():
    model = moved(Transformer(fresh("randomized", of="learned")))
    plain, content = model.encoding.inner, noise(2, 9, 24)
    places = model.encoding.place(grid_positions((9,)))
    inner = Transformer(plain)
    weights = {k.replace("encoding.inner", "encoding"): v for k, v in model.state_dict().items()}
    del weights["encoding._extra_state"]  # how many draws there have been
    inner.load_state_dict(weights)
    assert torch.equal(model(content), inner.eval()(content, places))
    assert torch.equal(model(content), model(content))
    model.train()
    assert not torch.equal(model(content), model(content))


@pytest.mark.parametrize(
    ("of", "table", "rows"),
    [
        ("learned", "table", 36),
        ("tupe", "table", 36),
        ("deberta", "table", 72),
        ("axial-learned", "tables", 36),
        ("random", "table", 36),
    ],
)
def test_inside_a_longer_range_tables_are_longer(of, table, rows):
    assert len(getattr(fresh("randomized", of=of).inner, table)) == rows
    if of != "deberta":  # whose table is of offsets, which a shift does not make larger
        assert len(getattr(fresh("shifted", of=of, most=27).inner, table)) == rows
    assert fresh("randomized", of="swin-bias").inner.table.shape == (2, 71, 2)


@pytest.mark.parametrize("position", [-1.0, 0.5, 36.0])
def test_randomized_refuses_what_it_has_no_place_for(position):
    with pytest.raises(ValueError, match=r"'randomized' has places for integer positions below \(36,\), got positions"):
        fresh("randomized").place(torch.tensor([[0.0], [position]]))


@pytest.mark.parametrize(("most", "top"), [(None, (3, 5)), (2, (2, 2)), (0, (0, 0))])
def test_shifted_moves_all_tokens_alike_in_training(most, top):
    encoding, cells, found = fresh("shifted", (3, 5), most=most), numbers(grid_positions((3, 5))), set()
    for places in draws(encoding, (3, 5), 400):
        shifts = {(a - c, b - d) for (a, b), (c, d) in zip(places, cells, strict=True)}
        assert len(shifts) == 1
        found |= shifts
    assert found == set(itertools.product(range(top[0] + 1), range(top[1] + 1)))
    positions = grid_positions((3, 5))
    assert encoding.eval().place(positions) is positions
    assert encoding.inner.spec.extent == (3 + top[0], 5 + top[1])


def test_shifted_tells_encodings_of_offsets_the_trained_extent():
    """Offsets are no larger than without a shift: tables of them, and lengths from which on they change, stay."""
    assert fresh("shifted", of="swin-bias").inner.table.shape == fresh("swin-bias").table.shape
    longer = [(float(p),) for p in range(18)]
    seen, alone = (
        attend(encode(name, longer, (9,), **options), longer)
        for name, options in (("shifted", {"of": "ntk-rope"}), ("ntk-rope", {}))
    )
    assert torch.equal(seen.logits, alone.logits)
    assert fresh("shifted", of="learned").inner.table.shape == (18, 24)


def test_a_trunk_with_a_relative_encoding_does_not_notice_a_shift():
    for of, same in (("rope", True), ("learned", False)):
        model, content = moved(Transformer(fresh("shifted", of=of, most=50))), noise(2, 9, 24)
        still, model = model(content), model.train()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            moving = [model(content) for _ in range(3)]
        assert all(torch.allclose(still, output, atol=1e-4) == same for output in moving)


@text_and_grid
def test_interpolated_squeezes_a_longer_text_into_the_trained_length(positions):
    rates = [9 / 301] if len(positions[0]) == 1 else [1.0, 9 / 41]
    squeezed = [tuple(p * rate for p, rate in zip(position, rates, strict=True)) for position in positions]
    encoding = encode("interpolated", positions)
    seen = attend(encoding, positions)
    seen.check(by_angle(seen, rope_angles(squeezed)), 1e-4)
    adding = encode("interpolated", positions, of="add(ratio=0.5)")
    told = adding.embed(torch.zeros(1, 5, 24), state_of(adding, positions))
    assert_rows(told[0], [wave(p, 24, ratio=0.5) for p in squeezed])


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
    told = [e.embed(content, e(e.prepare(cells))).square().mean().sqrt().item() for e in (loud, add)]
    assert told == pytest.approx([2**0.5] * 2, rel=0.01)


@pytest.mark.parametrize(("width", "heads", "extent"), [(24, 2, (9,)), (96, 3, (9,)), (64, 2, (4, 4)), (4, 1, (9,))])
def test_concat_wide_is_concat_in_a_widened_model(width, heads, extent):
    """So that what ``widened`` compares it with differs by what those channels are for."""
    wide = fresh("concat-wide", extent, width=width, heads=heads)
    widened = fresh("widened", extent, width=width, heads=heads, of=f"concat(d_p={wide.d_p})")
    assert (widened.content_width, widened.model_width) == (wide.content_width, wide.model_width)
    cells, content = grid_positions(extent), noise(2, math.prod(extent), width)
    assert torch.equal(*(e.embed(content, e(e.prepare(cells))) for e in (wide, widened)))


def test_a_widened_sum_has_content_and_position_in_every_channel():
    content = noise(2, 5, 36)
    seen = encode("widened", TEXT, channels=12).embed(content, state_of(encode("widened", TEXT, channels=12), TEXT))
    assert_rows(seen[1] - content[1], [wave(p, 36) for p in TEXT])


def test_raster_counts_cells_row_by_row():
    encoding = encode("raster", GRID_CELLS, (9, 12))
    told = encoding.embed(torch.zeros(1, 5, 24), state_of(encoding, GRID_CELLS))
    assert_rows(told[0], [wave((12 * r + c,), 24) for r, c in GRID_CELLS])
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
    told = [encoding.embed(content, state_of(encoding, GRID_CELLS)) for encoding in (one, other)]
    assert torch.equal(*told)


def test_wrappers_nest():
    shifted = fresh("shifted", (3, 5), of="raster(of='learned')", most=2)
    assert shifted.inner.inner.table.shape == (35, 24)
    assert shifted.inner.spec.extent == (5, 7)
    randomized = fresh("randomized", (3, 5), of="raster(of='learned')", times=2)
    assert randomized.inner.inner.table.shape == (60, 24)
    places = randomized.eval().place(grid_positions((3, 5)))
    told = randomized.embed(torch.zeros(1, 15, 24), randomized.prepare(places))
    cells = [int(10 * r + c) for r, c in numbers(places)]
    assert_rows(told[0], numbers(randomized.inner.inner.table[cells] * math.sqrt(24)))
    both = encode("stack", TEXT, first="interpolated(of='add')", second="some-layers(of='rope', every=1, but=False)")
    seen = attend(both, TEXT)
    seen.check(by_angle(seen, rope_angles(TEXT)), 1e-4)
    heads = encode("some-layers", TEXT, of="some-heads(of='rope')", every=2, but=False)
    seen = attend(heads, TEXT, layer=1)
    turned = by_angle(seen, rope_angles(TEXT))
    seen.check(lambda h, i, j: turned(h, i, j) if h == 0 else seen.content(h, i, j), 1e-4)
    attend(heads, TEXT, layer=0).check_bias(lambda h, i, j: 0.0)


@each_layer
def test_a_stack_may_move_its_tokens(layer):
    encoding = encode("stack", TEXT_CELLS, first="randomized(of='learned')", second="rope")
    places = [p for (p,) in numbers(fresh("randomized").eval().place(torch.tensor(TEXT_CELLS)))]
    assert places != [p for (p,) in TEXT_CELLS]
    seen = attend(encoding, TEXT_CELLS, layer)
    seen.check(by_angle(seen, rope_angles([(p,) for p in places])), 1e-4)
    told = encoding.embed(torch.zeros(1, 5, 24), state_of(encoding, TEXT_CELLS))
    assert_rows(told[0], numbers(encoding.first.inner.table[[int(p) for p in places]] * math.sqrt(24)))


def test_rotation_by_hand_and_by_rule_agree():
    """The rule of logits that these tests share against rotated vectors."""
    q, k, a, b = (
        numbers(noise(12)),
        numbers(noise(12, seed=5)),
        [0.3 * n for n in range(6)],
        [0.1 * n for n in range(6)],
    )
    direct = dot(rotated(q, a), rotated(k, b))
    assert direct == pytest.approx(dot(rotated(q, [x - y for x, y in zip(a, b, strict=True)]), k))


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


@pytest.mark.parametrize("name", ["randomized", "shifted"])
def test_draws_leave_dropout_alone_and_go_on_from_a_checkpoint(name):
    positions = grid_positions((9,))
    encoding = fresh(name, (9,)).train()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = [numbers(encoding.place(positions)) for _ in range(4)]
    assert torch.equal(torch.get_rng_state(), state)
    assert len({str(places) for places in first}) > 1
    other = fresh(name, (9,)).train()
    other.load_state_dict(encoding.state_dict())
    assert numbers(other.place(positions)) == numbers(encoding.place(positions))
    torch.manual_seed(6)
    encoding = fresh(name, (9,)).train()
    assert [numbers(encoding.place(positions)) for _ in range(4)] != first
