"""Encodings that add a term to the logits, whatever the content."""

import math

import pytest
import torch

from pebench.encodings.base import grid_positions

from .helpers import (
    GRID,
    GRID_CELLS,
    TEXT,
    TEXT_CELLS,
    attend,
    both_ways,
    each_layer,
    encode,
    fresh,
    numbers,
    plus,
    text_and_grid,
    times,
)


def sign(x):
    return (x > 0) - (x < 0)


@text_and_grid
@both_ways
@pytest.mark.parametrize("options", [{}, {"hidden": 5, "length": 4.0, "c": 2.0}])
def test_fire_is_a_network_of_the_share_of_the_way(positions, causal, options):
    encoding = encode("fire", positions, causal=causal, **options)
    seen = attend(encoding, positions, layer=1)
    c, multiplier = abs(encoding.c.item()), encoding.multiplier.item()
    least = abs(multiplier * options.get("length", 512.0))
    w1, b1, w2, b2 = (numbers(p) for layer in (encoding.first, encoding.second) for p in (layer.weight, layer.bias))
    assert len(w1) == options.get("hidden", 32)
    assert abs(encoding.c.item() - options.get("c", 0.1)) > 0.01 < abs(multiplier - 1)

    def psi(x):
        return math.log(c * x + 1)

    def rule(h, i, j):
        shares = []
        for a, b in zip(positions[i], positions[j], strict=True):
            most = max(a, least) if b <= a else max(b, least)  # the paper knows b <= a alone
            shares.append(sign(a - b) * psi(abs(a - b)) / psi(most))
        hidden = [max(0.0, x) for x in plus(times(w1, shares), b1)]
        return plus(times(w2, hidden), b2)[h]

    seen.check_bias(rule)


def test_fire_begins_with_the_papers_constants():
    encoding = fresh("fire")
    assert (encoding.c.item(), encoding.multiplier.item(), encoding.start[1]) == (pytest.approx(0.1), 1.0, 512.0)
    assert fresh("fire", c=2.0).c.item() == 2
    for extent in ((9,), (9, 9)):  # kinks lie within the distances that there are, on one axis and on two
        largest = fresh("fire", extent, hidden=1000).first.bias.abs().max().item()
        assert 0.95 * len(extent) ** -0.5 < largest <= len(extent) ** -0.5


def normed(vector, weight, shift):
    mean = math.fsum(vector) / len(vector)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in vector) / len(vector) + 1e-5)
    return [(x - mean) / spread * w + b for x, w, b in zip(vector, weight, shift, strict=True)]


@text_and_grid
@pytest.mark.parametrize("log_distance", [False, True])
def test_dynamic_bias_is_three_layers_with_norms_between(positions, log_distance):
    encoding = encode("dynamic-bias", positions, log_distance=log_distance)
    seen, network = attend(encoding, positions, layer=1), encoding.network
    assert [tuple(network[n].weight.shape) for n in (0, 3, 6)] == [(6, len(positions[0])), (6, 6), (2, 6)]
    weights = {n: (numbers(network[n].weight), numbers(network[n].bias)) for n in (0, 1, 3, 4, 6)}

    def rule(h, i, j):
        offset = [b - a for a, b in zip(positions[i], positions[j], strict=True)]
        if log_distance:
            offset = [sign(x) * math.log(1 + abs(x)) for x in offset]
        row = plus(times(weights[0][0], offset), weights[0][1])
        for norm, layer in ((1, 3), (4, 6)):
            row = [max(0.0, x) for x in normed(row, *weights[norm])]
            row = plus(times(weights[layer][0], row), weights[layer][1])
        return row[h]

    seen.check_bias(rule, 5e-5)


@each_layer
@pytest.mark.parametrize(
    ("positions", "extent"), [(TEXT_CELLS, (9,)), ([(p + 100,) for (p,) in TEXT_CELLS], (9,)), (GRID_CELLS, (10, 9))]
)
def test_swin_bias_reads_a_table_of_all_offsets(positions, extent, layer):
    encoding = encode("swin-bias", positions, extent)
    table = numbers(encoding.table)[layer]

    def rule(h, i, j):
        row = 0
        for a, b, n in zip(positions[i], positions[j], extent, strict=True):
            row = row * (2 * n - 1) + int(b - a) + n - 1
        return table[row][h]

    assert len(table) == math.prod(2 * n - 1 for n in extent)
    attend(encoding, positions, layer).check_bias(rule)


@pytest.mark.parametrize(
    ("extent", "positions", "found"),
    [
        ((9,), [(0.0,), (9.0,)], "9.0"),
        ((9,), [(0.0,), (0.5,)], "0.5"),
        ((9,), [(0.0,), (math.nan,)], "nan"),
        ((9, 4), [(0.0, 0.0), (4.0, 4.0)], r"4.0, 4.0"),
    ],
)
def test_swin_bias_refuses_offsets_it_has_no_row_for(extent, positions, found):
    with pytest.raises(ValueError, match=rf"'swin-bias' knows the integer offsets within \({extent[0]}.*{found}"):
        fresh("swin-bias", extent).prepare(torch.tensor(positions))


def test_swin_bias_begins_with_the_papers_spread():
    table = fresh("swin-bias", (40, 40)).table
    assert table.std().item() == pytest.approx(0.02, rel=0.05)
    assert abs(table.mean().item()) < 1e-3


@each_layer
@pytest.mark.parametrize(
    ("positions", "extent", "hidden"), [(TEXT, (9,), 512), (TEXT, (1,), 7), (GRID, (9, 5), 512), (GRID, (3, 40), 7)]
)
def test_log_cpb_is_a_squashed_network_of_logarithms(positions, extent, hidden, layer):
    encoding = encode("log-cpb", positions, extent, hidden=hidden)
    first, shift, second = (numbers(p)[layer] for p in (encoding.first, encoding.shift, encoding.second))

    def rule(h, i, j):
        scaled = [8 * (b - a) / max(n - 1, 1) for a, b, n in zip(positions[i], positions[j], extent, strict=True)]
        logs = [sign(x) * math.log2(1 + abs(x)) / math.log2(8) for x in scaled]
        row = [max(0.0, x) for x in plus(times(first, logs), shift)]
        return 16 / (1 + math.exp(-times(second, row)[h]))

    attend(encoding, positions, layer).check_bias(rule, 1e-4)


@both_ways
@pytest.mark.parametrize("options", [{}, {"d": 6, "base": 50.0}])
@pytest.mark.parametrize("heads", [2, 3])
def test_sandwich_is_the_inner_product_of_two_sinusoids(causal, options, heads):
    encoding = encode("sandwich", TEXT, causal=causal, heads=heads, **options)
    d, base = options.get("d", 128), options.get("base", 10000.0)

    def waves(p):  # the paper's sinusoid counts its pairs from 1
        angles = [p / base ** (2 * k / d) for k in range(1, d // 2 + 1)]
        return [f(a) for a in angles for f in (math.sin, math.cos)]

    def rule(h, i, j):
        product = math.fsum(a * b for a, b in zip(waves(TEXT[i][0]), waves(TEXT[j][0]), strict=True))
        return (product - d / 2) / (8 * (h + 1) / heads)

    attend(encoding, TEXT, layer=1).check_bias(rule, 1e-4)


@pytest.mark.parametrize("positions", [grid_positions((256,)), torch.tensor([[0.0], [0.1], [7.0], [300.0], [2.5]])])
def test_sandwich_has_the_bits_of_a_sum_for_every_pair(positions):
    distance, products = (positions - positions.T).double(), torch.zeros(len(positions), len(positions)).double()
    for k in range(1, 65):
        products += (distance * 10000.0 ** (-k / 64)).cos()
    expected = [((products - 64) / (8 * (h + 1) / 4)).float() for h in range(4)]
    assert torch.equal(fresh("sandwich", (256,), heads=4).prepare(positions)[0], torch.stack(expected))


@pytest.mark.parametrize(
    ("name", "extent", "settings", "message"),
    [
        ("fire", (9,), {"length": 0.0}, "must be positive and finite, got 0.0"),
        ("fire", (9,), {"c": -1.0}, "must be positive and finite, got -1.0"),
        ("dynamic-bias", (9,), {"width": 6, "heads": 1}, "d_model of 8 or more, got 6"),
        ("sandwich", (9,), {"d": 7}, "even and positive, got 7"),
        ("sandwich", (9,), {"d": 0}, "even and positive, got 0"),
        ("sandwich", (9, 9), {}, "serves 1 position axes, got 2"),
    ],
)
def test_impossible_options_are_refused(name, extent, settings, message):
    with pytest.raises(ValueError, match=f"'{name}'.*{message}"):
        fresh(name, extent, **settings)


@pytest.mark.parametrize("name", ["fire", "dynamic-bias", "log-cpb"])
@pytest.mark.parametrize("extent", [(16,), (16, 16)])
def test_networks_begin_with_biases_that_differ_by_distance(name, extent):
    """Of cells that lie in one direction; a norm may take the length of an offset away."""
    bias = attend(fresh(name, extent), [(float(p),) * len(extent) for p in range(0, 16, 3)]).bias
    assert (bias[:, 0, 1:].std(dim=-1) > 1e-3).all()


@pytest.mark.parametrize("name", ["fire", "dynamic-bias", "log-cpb"])
def test_networks_begin_at_the_scale_of_logits(name):
    """A bias that is far from 1 would drown q·k, or be drowned, at first."""
    encoding = fresh(name, (16, 16), width=128, heads=64)
    bias = attend(encoding, [(float(r), float(c)) for r in range(0, 16, 3) for c in range(0, 16, 3)]).bias
    assert bias is not None
    assert 0.1 < bias.std().item() < 4
