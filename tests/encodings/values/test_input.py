"""Encodings that write to the input or the residual stream."""

import itertools
import math

import pytest
import torch

from pebench.encodings.registry import parse_encoding
from pebench.models.transformer import Transformer

from .helpers import (
    GRID,
    GRID_CELLS,
    TEXT,
    TEXT_CELLS,
    assert_rows,
    both_ways,
    dot,
    encode,
    fresh,
    noise,
    numbers,
    plus,
    state_of,
    text_and_grid,
    text_and_grid_cells,
    times,
    wave,
)


@text_and_grid
@pytest.mark.parametrize(("base", "ratio"), [(10000.0, 1.0), (50.0, 0.25)])
def test_concat_wide_puts_the_sinusoid_beside_all_of_the_content(positions, base, ratio):
    encoding, content = encode("concat-wide", positions, d_p=8, base=base, ratio=ratio), noise(2, 5, 24)
    assert (encoding.content_width, encoding.model_width) == (24, 32)
    encoded = encoding.embed(content, state_of(encoding, positions))
    rows = [[x + wave(p, 8, base, ratio) for x, p in zip(text, positions, strict=True)] for text in numbers(content)]
    assert_rows(encoded, rows)


@text_and_grid
@pytest.mark.parametrize(("base", "ratio"), [(10000.0, 1.0), (50.0, 0.25)])
def test_add_every_layer_adds_the_sinusoid_before_each_block(positions, base, ratio):
    encoding, content = encode("add-every-layer", positions, base=base, ratio=ratio), noise(2, 5, 24)
    state = state_of(encoding, positions)
    assert torch.equal(encoding.embed(content, state), content)
    rows = [[plus(x, wave(p, 24, base, ratio)) for x, p in zip(t, positions, strict=True)] for t in numbers(content)]
    for layer in range(encoding.spec.num_layers):
        assert_rows(encoding.residual(content, None, state, layer), rows)


@pytest.mark.parametrize(
    ("width", "heads", "extent", "d_p"),
    [(32, 4, (9,), 8), (24, 2, (9,), 6), (24, 3, (9,), 6), (24, 2, (9, 9), 4), (24, 3, (9, 9), 12), (4, 4, (9,), 4)],
)
def test_concat_wide_takes_a_quarter_that_heads_can_share(width, heads, extent, d_p):
    assert fresh("concat-wide", extent, width=width, heads=heads).d_p == d_p


def test_a_trunk_of_concat_wide_is_wider_but_for_its_feed_forward_layer():
    model = Transformer(fresh("concat-wide", d_p=8))
    assert model(noise(2, 9, 24)).shape == (2, 9, 32)
    block = model.blocks[0]
    assert block.attention.qkv.weight.shape == (96, 32)
    assert block.feed_forward[0].weight.shape == (96, 32)
    assert model.norm.weight.shape == (32,)


@text_and_grid_cells
@pytest.mark.parametrize(
    "name", ["concat", "concat-wide", "add-proj", "add-qk", "concat-proj", "concat-qk", "gated-add"]
)
def test_a_learned_table_takes_the_sinusoids_place(name, positions):
    learned, fixed = (encode(name, positions, table=kind) for kind in ("learned", "sinusoid"))
    fixed.load_state_dict({k: v for k, v in learned.state_dict().items() if k != "table.rows"})
    vectors, side = state_of(learned, positions), 9
    rows = [int(sum(x * side**place for place, x in enumerate(reversed(p)))) for p in positions]
    scale = learned.content_width**0.5
    assert_rows(vectors, [[scale * x for x in numbers(learned.table.rows[row])] for row in rows])
    content, heads = noise(2, 5, learned.content_width), noise(2, 2, 5, 12)
    assert torch.equal(learned.embed(content, vectors), fixed.embed(content, vectors))
    for ours, theirs in zip(*(e.query_key(heads, heads, content, vectors, 1) for e in (learned, fixed)), strict=True):
        assert torch.equal(ours, theirs)


def test_a_learned_table_is_drawn_at_the_scale_of_the_sinusoid():
    encoding = fresh("concat", (512,), width=64, d_p=16, ratio=0.5, table="learned")
    vectors = state_of(encoding, [(float(n),) for n in range(512)])
    assert vectors.square().mean().sqrt().item() == pytest.approx(0.5, rel=0.05)
    assert encoding.table.rows.square().mean().sqrt().item() == pytest.approx(0.5 / 48**0.5, rel=0.05)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("name", ["learned", "axial-learned", "concat(table='learned')"])
def test_a_quiet_table_moves_as_fast_as_a_loud_one(name, ratio):
    name, options = parse_encoding(name)
    quiet, usual = (encode(name, TEXT_CELLS, **options, ratio=value) for value in (ratio, 1.0))
    rows = [next(p for p in encoding.parameters() if p.ndim == 2) for encoding in (quiet, usual)]
    before = [
        encoding.embed(noise(1, 5, encoding.content_width), state_of(encoding, TEXT_CELLS))
        for encoding in (quiet, usual)
    ]
    with torch.no_grad():
        for row in rows:
            row += 1e-3  # a step of Adam
    for encoding, encoded in zip((quiet, usual), before, strict=True):
        moved = encoding.embed(noise(1, 5, encoding.content_width), state_of(encoding, TEXT_CELLS)) - encoded
        last = moved[..., -1]
        torch.testing.assert_close(
            last, torch.full_like(last, 1e-3 * encoding.content_width**0.5), rtol=1e-2, atol=1e-6
        )


@pytest.mark.parametrize("table", ["sinusoids", ""])
def test_an_unknown_table_is_refused(table):
    with pytest.raises(ValueError, match="table of encoding 'concat' must be sinusoid or learned"):
        fresh("concat", table=table)


@text_and_grid_cells
@pytest.mark.parametrize("options", [{}, {"rank": 3, "ratio": 0.5}])
def test_position_matrix_multiplies_content_by_two_factors(positions, options):
    encoding, content = encode("position-matrix", positions, **options), noise(2, 5, 24)
    encoded, ratio = encoding.embed(content, state_of(encoding, positions)), options.get("ratio", 1.0)
    left, right = numbers(encoding.left), numbers(encoding.right)
    for text, rows in zip(numbers(content), encoded, strict=True):
        for x, p, row in zip(text, positions, rows, strict=True):
            cell = int(p[0]) if len(p) == 1 else int(p[0]) * 9 + int(p[1])
            small = times(list(map(list, zip(*right[cell], strict=True))), x)  # V^T x
            assert_rows(
                row, [value + ratio * dot(factors, small) for value, factors in zip(x, left[cell], strict=True)]
            )


def gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


@text_and_grid
@pytest.mark.parametrize("options", [{}, {"hidden": 5, "gamma": 2.0, "ratio": 0.5}])
def test_learnable_fourier_is_a_network_of_cosines_and_sines(positions, options):
    encoding, content = encode("learnable-fourier", positions, **options), noise(2, 5, 24)
    encoded = encoding.embed(content, state_of(encoding, positions))
    frequencies = numbers(encoding.frequencies)
    w1, b1, w2, b2 = (numbers(p) for layer in (encoding.first, encoding.second) for p in (layer.weight, layer.bias))
    assert len(w1) == options.get("hidden", 32)
    own = []
    for p in positions:
        angles = [dot(list(p), f) for f in frequencies]
        features = [wave(angle) / math.sqrt(24) for wave in (math.cos, math.sin) for angle in angles]
        own.append(plus(times(w2, [gelu(h) for h in plus(times(w1, features), b1)]), b2))
    assert_rows(encoded, [[plus(x, p) for x, p in zip(text, own, strict=True)] for text in numbers(content)], 5e-5)


def test_learnable_fourier_draws_frequencies_of_the_papers_spread():
    for gamma in (10.0, 2.0):
        frequencies = fresh("learnable-fourier", (9, 9), width=2000, gamma=gamma).frequencies
        assert frequencies.std().item() == pytest.approx(1 / gamma, rel=0.05)
        assert abs(frequencies.mean().item()) < 0.1 / gamma


def convolved(rows, weight, shift, positions, steps, causal, valid):
    """x plus the kernel's sum over the tokens that are one step away."""
    output = []
    for i, (x, p) in enumerate(zip(rows, positions, strict=True)):
        total = plus(x, shift)
        for step, w in zip(steps, weight, strict=True):
            there = tuple(a + b for a, b in zip(p, step, strict=True))
            for j, r in enumerate(positions):
                if r == there and valid[j] and not (causal and j > i):
                    total = plus(total, [a * b for a, b in zip(w, rows[j], strict=True)])
        output.append(total)
    return output


NEAR_TEXT = [(3.0,), (4.0,), (6.0,), (7.0,), (5.0,), (20.5,), (21.5,), (22.0,)]
NEAR_GRID = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (2.0, 2.0), (0.5, 1.5), (1.5, 0.5), (0.0, 2.0)]


@both_ways
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("positions", [NEAR_TEXT, NEAR_GRID], ids=["text", "grid"])
def test_cpe_is_a_convolution_over_neighbours_after_the_first_block(positions, padded, causal):
    encoding, content = encode("cpe", positions, causal=causal), noise(2, 8, 24)
    valid = torch.tensor([[True] * 8, [True] * 6 + [False] * 2]) if padded else None
    first = -2 if causal and len(positions[0]) == 1 else -1
    steps = list(itertools.product(range(first, first + 3), repeat=len(positions[0])))
    state = state_of(encoding, positions)
    assert torch.equal(encoding.residual(content, valid, state, 0), content)
    encoded = encoding.residual(content, valid, state, 1)
    weight, shift = numbers(encoding.weight), numbers(encoding.shift)
    for n, text in enumerate(numbers(content)):
        seen = valid[n].tolist() if padded else [True] * 8
        assert_rows(encoded[n], convolved(text, weight, shift, positions, steps, causal, seen))


def test_cpe_has_a_place_in_a_model_of_one_block():
    encoding, content = encode("cpe", TEXT, layers=1), noise(1, 5, 24)
    assert not torch.equal(encoding.residual(content, None, state_of(encoding, TEXT), 0), content)


@pytest.mark.parametrize(
    ("name", "extent", "settings", "message"),
    [
        ("concat-wide", (9,), {"d_p": 3}, "multiple of 2 for 1 position axes, got 3"),
        ("concat-wide", (9, 9), {"d_p": 6}, "multiple of 4 for 2 position axes, got 6"),
        ("concat-wide", (9,), {"d_p": 0}, "positive multiple of 2 .* got 0"),
        ("concat-wide", (9,), {"d_p": 4, "heads": 3}, "multiple of the 3 heads, got 4"),
        ("position-matrix", (9,), {"rank": 0}, "must be 1 or more, got 0"),
        ("learnable-fourier", (9,), {"width": 9, "heads": 1}, "even d_model, got 9"),
        ("gated-add", (9, 9), {"width": 6}, "multiple of 4 for 2 position axes, got 6"),
        ("gated-add", (9,), {"pace": 0.0}, "pace of encoding 'gated-add' must be positive and finite, got 0"),
        ("multiply", (9,), {"width": 9, "heads": 1}, "multiple of 2 for 1 position axes, got 9"),
        ("add-proj", (9,), {"d_p": 3}, "multiple of 2 for 1 position axes, got 3"),
        ("concat-proj", (9, 9), {"d_p": 6}, "multiple of 4 for 2 position axes, got 6"),
    ],
)
def test_impossible_options_are_refused(name, extent, settings, message):
    with pytest.raises(ValueError, match=message):
        fresh(name, extent, **settings)


@pytest.mark.parametrize("name", ["learned", "axial-learned", "random", "position-matrix"])
@pytest.mark.parametrize("cell", [(-1.0, 0.0), (9.0, 0.0), (0.0, 9.0), (1.5, 0.0), (math.nan, 0.0)])
def test_tables_refuse_positions_they_have_no_row_for(name, cell):
    encoding = fresh(name, (9, 9))
    with pytest.raises(ValueError, match=rf"'{name}' knows the integer positions below \(9, 9\), got positions from"):
        encoding.prepare(torch.tensor([*GRID_CELLS, cell]))


@pytest.mark.parametrize("name", ["learned", "position-matrix"])
def test_tables_refuse_a_longer_text(name):
    with pytest.raises(ValueError, match=r"below \(9,\), got positions from \[0\.0\] to \[9\.0\]"):
        fresh(name).prepare(torch.tensor([*TEXT_CELLS, (9.0,)]))


@pytest.mark.parametrize("positions", [TEXT, GRID])
def test_axial_learned_and_learned_are_one_on_text_alone(positions):
    axes = len(positions[0])
    tables = [fresh(name, (9,) * axes).parameter_count() for name in ("axial-learned", "learned")]
    assert (tables[0] == tables[1]) == (axes == 1)
