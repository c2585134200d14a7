"""Encodings whose say in a logit depends on the content."""

import math

import pytest
import torch

from pebench.models.attention import Masks
from pebench.models.transformer import SelfAttention

from .helpers import (
    GRID_CELLS,
    TEXT,
    TEXT_CELLS,
    assert_rows,
    attend,
    both_ways,
    dot,
    each_layer,
    encode,
    fresh,
    noise,
    numbers,
    plus,
    share,
    state_of,
    text_and_grid,
    text_and_grid_cells,
    times,
    wave,
)


@text_and_grid
@each_layer
@pytest.mark.parametrize("options", [{}, {"d_p": 8, "base": 50.0}])
def test_concat_qk_compares_content_with_content_and_position_with_position(positions, layer, options):
    encoding = encode("concat-qk", positions, **options)
    seen, width = attend(encoding, positions, layer), options.get("d_p", 24)
    waves = [wave(p, width, options.get("base", 10000.0)) for p in positions]
    queries, keys = ([times(numbers(w)[layer], p) for p in waves] for w in (encoding.queries, encoding.keys))

    def rule(h, i, j):
        position = dot(share(queries[i], h, 2), share(keys[j], h, 2))
        return (dot(seen.q[h][i], seen.k[h][j]) + position) / math.sqrt(2 * 12)

    seen.check(rule, 5e-5)
    assert seen.bias is None
    assert seen.encoded[0].shape == seen.encoded[1].shape == (2, 5, 24)


@text_and_grid
@each_layer
@pytest.mark.parametrize("options", [{}, {"d_p": 8, "base": 50.0}])
def test_add_qk_compares_sums_of_content_and_position(positions, layer, options):
    encoding = encode("add-qk", positions, **options)
    seen, width = attend(encoding, positions, layer), options.get("d_p", 24)
    waves = [wave(p, width, options.get("base", 10000.0)) for p in positions]
    queries, keys = ([times(numbers(w)[layer], p) for p in waves] for w in (encoding.queries, encoding.keys))

    def rule(h, i, j):
        query, key = plus(seen.q[h][i], share(queries[i], h, 2)), plus(seen.k[h][j], share(keys[j], h, 2))
        return dot(query, key) / (2 * math.sqrt(12))

    seen.check(rule, 5e-5)
    assert seen.bias is None
    assert seen.encoded[0].shape == seen.encoded[1].shape == (2, 5, 12)


@text_and_grid_cells
@each_layer
def test_tupe_compares_trained_positions_by_projections_of_their_own(positions, layer):
    encoding = encode("tupe", positions)
    seen, (u, v), table = attend(encoding, positions, layer), numbers(encoding.projections), numbers(encoding.table)

    def normed(row):
        mean = math.fsum(row) / len(row)
        spread = math.sqrt(math.fsum((x - mean) ** 2 for x in row) / len(row) + 1e-5)
        return [(x - mean) / spread for x in row]

    cells = [int(p[0]) if len(p) == 1 else int(p[0]) * 9 + int(p[1]) for p in positions]
    queries, keys = ([times(w, normed(table[cell])) for cell in cells] for w in (u, v))

    def rule(h, i, j):
        position = dot(share(queries[i], h, 2), share(keys[j], h, 2))
        return (dot(seen.q[h][i], seen.k[h][j]) + position) / math.sqrt(2 * 12)

    seen.check(rule, 5e-5)


@text_and_grid
@each_layer
@pytest.mark.parametrize("clip", [16, 2])
def test_shaw_adds_a_vector_of_the_clipped_offset_to_the_key(positions, layer, clip):
    encoding = encode("shaw", positions, clip=clip)
    seen, tables = attend(encoding, positions, layer), numbers(encoding.table)[layer]

    def rule(h, i, j):
        key = [0.0] * 12
        for table, a, b in zip(tables, positions[i], positions[j], strict=True):
            key = plus(key, table[max(-clip, min(clip, round(b - a))) + clip])
        return dot(seen.q[h][i], key) / math.sqrt(12)

    seen.check_bias(rule)


@both_ways
@each_layer
@pytest.mark.parametrize("base", [10000.0, 50.0])
@pytest.mark.parametrize("positions", [TEXT, [TEXT[n] for n in (3, 0, 4, 2, 1)]], ids=["in order", "in disorder"])
def test_transformer_xl_has_the_papers_four_terms(causal, layer, base, positions):
    encoding = encode("transformer-xl", positions, causal=causal, base=base)
    seen, projection = attend(encoding, positions, layer), numbers(encoding.projection)[layer]
    u, v = (numbers(p)[layer] for p in (encoding.u, encoding.v))

    def rule(h, i, j):
        r = share(times(projection, wave((positions[i][0] - positions[j][0],), 24, base)), h, 2)
        terms = dot(seen.q[h][i], r), dot(u[h][0], seen.k[h][j]), dot(v[h][0], r)
        return math.fsum(terms) / math.sqrt(12)

    seen.check_bias(rule, 5e-5)


@both_ways
@each_layer
@pytest.mark.parametrize(("extent", "clip"), [((9,), None), ((9,), 3), ((400,), None)])
def test_deberta_compares_content_with_distance_both_ways(causal, layer, extent, clip):
    encoding = encode("deberta", TEXT, extent, causal=causal, clip=clip)
    seen, table, k = attend(encoding, TEXT, layer), numbers(encoding.table), clip or extent[0]
    queries, keys = ([times(numbers(w)[layer], r) for r in table] for w in (encoding.queries, encoding.keys))

    def delta(i, j):
        distance = round(TEXT[i][0] - TEXT[j][0])
        return 0 if distance <= -k else 2 * k - 1 if distance >= k else distance + k

    def rule(h, i, j):
        terms = (
            dot(seen.q[h][i], seen.k[h][j]),
            dot(seen.q[h][i], share(keys[delta(i, j)], h, 2)),
            dot(seen.k[h][j], share(queries[delta(j, i)], h, 2)),
        )
        return math.fsum(terms) / math.sqrt(3 * 12)

    seen.check(rule, 5e-5)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@each_layer
@pytest.mark.parametrize("most", [64, 3])
def test_cope_counts_the_tokens_that_a_query_finds_worth_it(layer, most):
    encoding = encode("cope", TEXT, causal=True, most=most)
    seen, table = attend(encoding, TEXT, layer), numbers(encoding.table)[layer]

    def rule(h, i, j):
        count = min(math.fsum(sigmoid(seen.content(h, i, n)) for n in range(j, i + 1)), most - 1)
        low, high = math.floor(count), math.ceil(count)
        vector = [(1 - (count - low)) * a + (count - low) * b for a, b in zip(table[low], table[high], strict=True)]
        return dot(seen.q[h][i], vector)

    seen.check_bias(rule, 5e-5)


def test_cope_begins_with_no_effect():
    assert not fresh("cope", causal=True).table.any()


@each_layer
def test_fox_sums_the_logarithms_of_the_gates_after_the_key(layer):
    encoding = encode("fox", TEXT, causal=True)
    seen = attend(encoding, TEXT, layer)
    weight, shift = (numbers(p)[layer] for p in (encoding.weight, encoding.shift))

    def rule(h, i, j):
        gates = [sigmoid(dot(weight[h], seen.x[n]) + shift[h]) for n in range(j + 1, i + 1)]
        return math.log(math.prod(gates))

    seen.check_bias(rule)


@pytest.mark.parametrize("b", [0.0, 5.0])
def test_fox_begins_with_the_declared_shift(b):
    encoding = fresh("fox", causal=True, width=2000, b=b)
    assert (encoding.shift == b).all()
    assert encoding.weight.std().item() == pytest.approx(2000**-0.5, rel=0.05)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("add-qk", {"queries": 1 / 8, "keys": 1 / 8}),
        ("concat-qk", {"queries": 1 / 8, "keys": 1 / 8}),
        ("tupe", {"table": 1 / 64, "projections": 1 / 64}),
        ("shaw", {"table": 1 / 64}),
        ("transformer-xl", {"projection": 1 / 64, "u": 4e-4, "v": 4e-4}),
        ("deberta", {"table": 1 / 64, "queries": 1 / 64, "keys": 1 / 64}),
        ("t5-bias", {"table": 1 / 64}),
        ("cpe", {"weight": 1 / 3}),
        ("concat-proj", {"position": 1 / 64, "content": 1 / 64}),
        ("log-cpb", {"first": 2.0, "second": 1 / 512}),
    ],
)
def test_parameters_begin_with_the_declared_variance(name, parameters):
    options = {"d_p": 8} if name.endswith("-qk") else {}
    encoding = fresh(name, (99,), width=64, heads=2, layers=8, **options)
    for parameter, variance in parameters.items():
        values = getattr(encoding, parameter)
        assert values.var().item() == pytest.approx(variance, rel=0.25)
        assert abs(values.mean().item()) < 0.2 * math.sqrt(variance)


@pytest.mark.parametrize(
    ("name", "extent", "settings", "message"),
    [
        ("concat-qk", (9,), {"d_p": 3}, "multiple of 2 for 1 position axes, got 3"),
        ("concat-qk", (9, 9), {"d_p": 6}, "multiple of 4 for 2 position axes, got 6"),
        ("shaw", (9,), {"clip": 0}, "1 or more, got 0"),
        ("transformer-xl", (9,), {"width": 9, "heads": 1}, "multiple of 2 for 1 position axes, got 9"),
        ("transformer-xl", (9, 9), {}, "serves 1 position axes, got 2"),
        ("deberta", (9,), {"clip": 0}, "1 or more, got 0"),
        ("deberta", (9, 9), {}, "serves 1 position axes, got 2"),
        ("cope", (9,), {"causal": True, "most": 1}, "2 or more, got 1"),
        ("cope", (9,), {}, "causal models alone, got a bidirectional one"),
        ("cope", (9, 9), {"causal": True}, "serves 1 position axes, got 2"),
        ("fox", (9,), {}, "causal models alone, got a bidirectional one"),
        ("fox", (9, 9), {"causal": True}, "serves 1 position axes, got 2"),
    ],
)
def test_impossible_options_are_refused(name, extent, settings, message):
    with pytest.raises(ValueError, match=f"'{name}'.*{message}"):
        fresh(name, extent, **settings)


@pytest.mark.parametrize("cell", [(-1.0, 0.0), (9.0, 0.0), (1.5, 0.0), (math.nan, 0.0)])
def test_tupe_refuses_positions_it_has_no_row_for(cell):
    with pytest.raises(ValueError, match=r"'tupe' knows the integer positions below \(9, 9\), got positions from"):
        fresh("tupe", (9, 9)).prepare(torch.tensor([*GRID_CELLS, cell]))


@pytest.mark.parametrize("name", ["tupe", "deberta", "shaw", "fox", "yarn", "pope", "stack"])
def test_these_logits_are_those_of_the_trunk(name, monkeypatch):
    """`helpers.attend` does what `SelfAttention` does: same scale, same order, same input."""
    encoding, caught = encode(name, TEXT_CELLS, (9,), causal=True), []

    def catch(q, k, v, mask, causal, scale, kernel):
        caught.append(q @ k.mT * scale + (0 if mask is None else mask.clamp(min=-1e9)))
        return v

    monkeypatch.setattr("pebench.models.long_attention.attend", catch)
    layer = SelfAttention(24, 2, gain=1.0, layer=1)
    x, state = noise(2, 5, 24), state_of(encoding, TEXT_CELLS)
    heads = layer.qkv(x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
    layer(x, encoding, state, Masks(True, 5, x.device, None))
    q, k = encoding.query_key(heads[0], heads[1], x, state, 1)
    bias = encoding.bias(q, k, x, state, 1)
    expected = q @ k.mT * 12**-0.5 + (0 if bias is None else bias)
    assert_rows(caught[0].tril(), numbers(expected.tril()), 1e-5)
