"""Encodings that turn queries and keys."""

import math

import pytest
import torch

from .helpers import (
    GRID,
    TEXT,
    assert_rows,
    attend,
    both_ways,
    by_angle,
    each_layer,
    encode,
    fresh,
    numbers,
    rotated,
    text_and_grid,
    times,
)


def angles_of(position, frequencies):
    """Axis after axis, one angle for each of the axis's frequencies."""
    return [p * f for p, axis in zip(position, frequencies, strict=True) for f in axis]


def check_rotation(encoding, positions, frequencies, layer=0, growth=1.0, tolerance=1e-4):
    seen, angles = attend(encoding, positions, layer), [angles_of(p, frequencies) for p in positions]
    for before, after in zip((seen.q, seen.k), seen.encoded, strict=True):
        for head, rows in enumerate(before):
            expected = [[growth * x for x in rotated(v, a)] for v, a in zip(rows, angles, strict=True)]
            assert_rows(after[head], expected, tolerance)
    assert seen.bias is None
    seen.check(by_angle(seen, angles, growth), tolerance)


def usual(n, axes, theta=None):
    theta = theta or (10000.0 if axes == 1 else 100.0)
    return [[theta ** (-i / n) for i in range(n)]] * axes


@text_and_grid
@pytest.mark.parametrize(("options", "pairs"), [({}, (3, 1)), ({"fraction": 0.7, "theta": 500.0}, (8, 4))])
def test_partial_rope_turns_the_first_channels_as_a_head_of_their_own(positions, options, pairs):
    axes = len(positions[0])
    encoding, n = encode("partial-rope", positions, width=48, **options), pairs[axes - 1]
    r, frequencies = 2 * axes * n, usual(n, axes, options.get("theta"))
    seen, angles = attend(encoding, positions), [angles_of(p, frequencies) for p in positions]
    for before, after in zip((seen.q, seen.k), seen.encoded, strict=True):
        for head, rows in enumerate(before):
            expected = [rotated(v[:r], a) + v[r:] for v, a in zip(rows, angles, strict=True)]
            assert_rows(after[head], expected, 1e-4)


def test_partial_rope_turns_a_quarter_of_a_head():
    encoding = fresh("partial-rope", width=128)
    assert encoding.channels == 16
    assert_rows(encoding.frequencies(0, 9), [10000 ** (-2 * i / 16) for i in range(8)], 1e-12)


@text_and_grid
@pytest.mark.parametrize(
    ("options", "turning"), [({}, (9, 4)), ({"p": 0.5, "theta": 500.0}, (6, 3)), ({"p": 1e-3}, (1, 1))]
)
def test_p_rope_stops_the_slowest_pairs(positions, options, turning):
    axes = len(positions[0])
    n, t = 12 // axes, turning[axes - 1]
    frequencies = [axis[:t] + [0.0] * (n - t) for axis in usual(n, axes, options.get("theta"))]
    check_rotation(encode("p-rope", positions, width=48, **options), positions, frequencies)


@pytest.mark.parametrize(
    ("positions", "extent", "turning"),
    [(TEXT, (9,), (1,)), (TEXT, (64,), (2,)), (TEXT, (13500,), (5,)), (TEXT, (40000,), (6,)), (GRID, (9, 30), (1, 2))],
)
def test_hope_turns_what_comes_full_circle_in_training(positions, extent, turning):
    n = 6 // len(extent)
    frequencies = [axis[:t] + [0.0] * (n - t) for axis, t in zip(usual(n, len(extent)), turning, strict=True)]
    for axis, size, t in zip(usual(n, len(extent)), extent, turning, strict=True):
        assert sum(2 * math.pi / f <= size for f in axis) == t
    check_rotation(encode("hope", positions, extent), positions, frequencies)


def test_hope_turns_its_fastest_pair_whatever_the_length():
    check_rotation(encode("hope", GRID, (3, 5)), GRID, [[1.0, 0.0, 0.0]] * 2)


def stretched(n, axes, scales, theta=None):
    """bloc97's base: theta s^(d/(d-2)), d = 2n."""
    theta = theta or (10000.0 if axes == 1 else 100.0)
    return [[(theta * s ** (2 * n / (2 * n - 2))) ** (-i / n) for i in range(n)] for s in scales]


@text_and_grid
@pytest.mark.parametrize("options", [{}, {"factor": 4.0}, {"factor": 1.0, "theta": 500.0}])
def test_ntk_raises_the_base_with_the_length(positions, options):
    axes, factor = len(positions[0]), options.get("factor")
    dynamic = [301 / 9] if axes == 1 else [1.0, 41 / 9]  # rows span 3, less than 9
    frequencies = stretched(6 // axes, axes, [factor] * axes if factor else dynamic, options.get("theta"))
    check_rotation(encode("ntk-rope", positions, **options), positions, frequencies)


@pytest.mark.parametrize("name", ["ntk-rope", "yarn"])
@pytest.mark.parametrize("extent", [(301,), (400,)])
def test_within_the_trained_length_stretched_ropes_are_rope(name, extent):
    check_rotation(encode(name, TEXT, extent), TEXT, usual(6, 1))


def test_ntk_stretches_by_the_span_and_not_by_where_it_lies():
    encoding, far = encode("ntk-rope", TEXT), [(1000.0,), (1008.0,), (1017.0,)]
    check_rotation(encoding, far, stretched(6, 1, [2.0]), tolerance=2e-4)


def test_ntk_leaves_a_head_of_one_pair_alone():
    check_rotation(encode("ntk-rope", TEXT, width=4), TEXT, [[1.0]])


def by_parts(n, length, s, theta, fast=32.0, slow=1.0):
    """YaRN's frequencies, d = 2n: the dimension that turns r times is d ln(L / (2 pi r)) / (2 ln theta)."""
    low, high = (2 * n * math.log(length / (2 * math.pi * r)) / (2 * math.log(theta)) for r in (fast, slow))
    low, high = max(math.floor(low), 0), min(math.ceil(high), 2 * n - 1)
    found = []
    for i in range(n):
        left = 1 - min(1.0, max(0.0, (i - low) / (high - low or 0.001)))
        frequency = theta ** (-2 * i / (2 * n))
        found.append(frequency / s * (1 - left) + frequency * left)
    return found


@pytest.mark.parametrize(
    ("extent", "options", "scale"),
    [
        ((100,), {}, 3.01),
        ((100,), {"factor": 4.0}, 4.0),
        ((100,), {"factor": 8.0, "theta": 500.0, "fast": 10.0, "slow": 2.0}, 8.0),
        ((30000,), {"factor": 4.0}, 4.0),
        ((5,), {"factor": 4.0}, 4.0),
    ],
)
def test_yarn_interpolates_by_parts_and_sharpens(extent, options, scale):
    theta = options.get("theta", 10000.0)
    ramp = {name: options[name] for name in ("fast", "slow") if name in options}
    frequencies, growth = [by_parts(12, extent[0], scale, theta, **ramp)], 0.1 * math.log(scale) + 1
    check_rotation(encode("yarn", TEXT, extent, width=48, **options), TEXT, frequencies, growth=growth)


def test_yarn_changes_some_frequencies_wholly_some_partly_and_some_not_at_all():
    """What the papers' picture shows, at a length where it can be seen."""
    slowing = [a / b for a, b in zip(usual(32, 1)[0], by_parts(32, 2048, 4.0, 10000.0), strict=True)]
    assert slowing[0] == 1
    assert slowing[-1] == 4
    assert sum(1 < s < 4 for s in slowing) > 5
    encoding = fresh("yarn", (2048,), width=128, factor=4.0)
    assert_rows(encoding.frequencies(0, 2048), by_parts(32, 2048, 4.0, 10000.0), 1e-12)


def test_yarn_stretches_each_axis_and_grows_by_the_longest():
    positions, extent = [(0.0, 0.0), (3.0, 7.0), (19.0, 30.0), (1.5, 2.0)], (10, 20)
    frequencies = [by_parts(6, 10, 2.0, 100.0), by_parts(6, 20, 31 / 20, 100.0)]
    check_rotation(encode("yarn", positions, extent, width=48), positions, frequencies, growth=0.1 * math.log(2) + 1)


@pytest.mark.parametrize("options", [{}, {"scale_base": 20.0, "theta": 500.0}])
@pytest.mark.parametrize("start", [0.0, 1000.0])
def test_xpos_logits_decay_at_every_pairs_own_rate(options, start):
    positions, base = [(p + start,) for (p,) in TEXT], options.get("scale_base", 512.0)
    seen = attend(encode("xpos", positions, causal=True, **options), positions)
    frequencies = usual(6, 1, options.get("theta"))[0]

    def rule(h, i, j):
        total, distance = 0.0, positions[i][0] - positions[j][0]
        for c, f in enumerate(frequencies):
            q, k = (complex(v[c], v[c + 6]) for v in (seen.q[h][i], seen.k[h][j]))
            zeta = (2 * c / 12 + 0.4) / (1 + 0.4)
            total += (
                zeta ** (distance / base)
                * (q * k.conjugate() * complex(math.cos(distance * f), math.sin(distance * f))).real
            )
        return total / math.sqrt(12)

    seen.check(rule, 2e-4)


@each_layer
@pytest.mark.parametrize("theta", [10.0, 100.0])
def test_rope_mixed_turns_by_trained_vectors(layer, theta):
    encoding = encode("rope-mixed", GRID, theta=theta)
    seen, vectors = attend(encoding, GRID, layer), numbers(encoding.frequencies)[layer]
    for h in range(2):
        angles = [
            [p[0] * row + p[1] * column for row, column in zip(vectors[0][h], vectors[1][h], strict=True)] for p in GRID
        ]
        for before, after in zip((seen.q, seen.k), seen.encoded, strict=True):
            assert_rows(after[h], [rotated(v, a) for v, a in zip(before[h], angles, strict=True)], 1e-4)
        rule = by_angle(seen, angles)
        for i in range(5):
            for j in range(5):
                assert seen.logits[h, i, j].item() == pytest.approx(rule(h, i, j), abs=1e-4)


@pytest.mark.parametrize("theta", [10.0, 100.0])
def test_rope_mixed_begins_as_axial_rope_turned_at_random(theta):
    rows, columns = fresh("rope-mixed", (9, 9), width=800, heads=100, theta=theta).frequencies.unbind(
        1
    )  # (layers, H, 4)
    lengths = torch.complex(rows, columns).abs()
    assert_rows(lengths, [[[1.0, theta**-0.5] * 2] * 100] * 2)
    assert_rows(rows[..., 0] * rows[..., 2] + columns[..., 0] * columns[..., 2], [[0.0] * 100] * 2)  # perpendicular
    assert_rows(rows[..., 0] * columns[..., 1] - rows[..., 1] * columns[..., 0], [[0.0] * 100] * 2)  # parallel
    directions = torch.atan2(rows[..., 0], columns[..., 0]).flatten()
    assert len(directions.unique()) == 200
    octants = torch.histc(directions, bins=8, min=-math.pi, max=math.pi)
    assert (octants > 10).all()


def product(a, b):
    return [[math.fsum(x * b[n][j] for n, x in enumerate(row)) for j in range(len(b))] for row in a]


def exponential(matrix):
    """By its series, of the matrix halved ten times, squared ten times."""
    size = len(matrix)
    small = [[x / 1024 for x in row] for row in matrix]
    term = total = [[float(i == j) for j in range(size)] for i in range(size)]
    for n in range(1, 15):
        term = [[x / n for x in row] for row in product(term, small)]
        total = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(total, term, strict=True)]
    for _ in range(10):
        total = product(total, total)
    return total


@text_and_grid
@pytest.mark.parametrize(("options", "block"), [({}, 6), ({"block": 4}, 4), ({"block": 2}, 2)])
def test_lie_re_turns_by_exponentials_of_skew_matrices(positions, options, block):
    axes, extent = len(positions[0]), (90, 30)[: len(positions[0])]
    encoding = encode("lie-re", positions, extent, **options)
    entries = numbers(encoding.entries)
    assert encoding.entries.shape == (axes, 12 // block, block * (block - 1) // 2)

    def turned(vector, position):
        output = []
        for c in range(12 // block):
            generator = [[0.0] * block for _ in range(block)]
            for p, n, axis in zip(position, extent, entries, strict=True):
                number = 0
                for i in range(block):
                    for j in range(i):  # entries below the diagonal, row by row
                        generator[i][j] += p / n * axis[c][number]
                        generator[j][i] -= p / n * axis[c][number]
                        number += 1
            output += times(exponential(generator), vector[c * block : (c + 1) * block])
        return output

    seen = attend(encoding, positions, layer=1)
    for before, after in zip((seen.q, seen.k), seen.encoded, strict=True):
        for head, rows in enumerate(before):
            assert_rows(after[head], [turned(v, p) for v, p in zip(rows, positions, strict=True)], 1e-4)
    q, k = (
        [[turned(v, p) for v, p in zip(head, positions, strict=True)] for head in side] for side in (seen.q, seen.k)
    )
    seen.check(lambda h, i, j: math.fsum(a * b for a, b in zip(q[h][i], k[h][j], strict=True)) / math.sqrt(12), 2e-4)


def test_lie_re_with_blocks_of_two_can_be_rope():
    encoding = encode("lie-re", TEXT, (9,), block=2)
    with torch.no_grad():
        encoding.entries[0, :, 0] = torch.tensor([9 * 10000 ** (-i / 6) for i in range(6)])
    seen = attend(encoding, TEXT)
    for head, rows in enumerate(seen.q):  # neighbours are paired
        halves = [v[0::2] + v[1::2] for v in rows]
        expected = [rotated(v, angles_of(p, usual(6, 1))) for v, p in zip(halves, TEXT, strict=True)]
        assert_rows(torch.cat((seen.encoded[0][head, :, 0::2], seen.encoded[0][head, :, 1::2]), dim=-1), expected, 1e-3)


@pytest.mark.parametrize(
    ("head_dim", "block"), [(16, 8), (12, 6), (8, 8), (10, 5), (7, 7), (6, 6), (4, 4), (2, 2), (22, 2)]
)
def test_lie_re_takes_the_largest_block_up_to_eight(head_dim, block):
    assert fresh("lie-re", width=2 * head_dim).block == block


def test_lie_re_begins_with_the_authors_distribution():
    entries = fresh("lie-re", (9, 9), width=4000).entries
    assert 0 <= entries.min() < 0.01
    assert 2 * math.pi - 0.01 < entries.max() <= 2 * math.pi
    assert entries.mean().item() == pytest.approx(math.pi, rel=0.02)


def softplus(x):
    return math.log1p(math.exp(x))


@both_ways
@pytest.mark.parametrize("theta", [10000.0, 500.0])
def test_pope_compares_lengths_at_the_angle_of_the_offset(causal, theta):
    encoding = encode("pope", TEXT, causal=causal, theta=theta)
    seen, delta = attend(encoding, TEXT), numbers(encoding.delta)
    assert min(min(row) for head in delta for row in head) < 0 < max(max(row) for head in delta for row in head)

    def rule(h, i, j):
        total = 0.0
        for c in range(12):
            angle = (TEXT[j][0] - TEXT[i][0]) * theta ** (-c / 12) + delta[h][0][c]
            total += softplus(seen.q[h][i][c]) * softplus(seen.k[h][j][c]) * math.cos(angle)
        return total / math.sqrt(12)

    seen.check(rule, 1e-4)
    assert seen.encoded[0].shape == (2, 5, 24)


def test_pope_begins_without_an_offset():
    assert not fresh("pope").delta.any()


ROTARY = ["partial-rope", "p-rope", "hope", "ntk-rope", "yarn"]


@pytest.mark.parametrize(
    ("name", "extent", "settings", "message"),
    [
        *[(name, (9, 9), {"width": 12}, "multiple of 4 for 2 position axes, got 6") for name in ROTARY],
        *[(name, (9,), {"width": 6}, "multiple of 2 for 1 position axes, got 3") for name in [*ROTARY]],
        ("xpos", (9,), {"width": 6, "causal": True}, "multiple of 2 for 1 position axes, got 3"),
        ("partial-rope", (9,), {"fraction": 0.0}, r"in \(0, 1\], got 0.0"),
        ("partial-rope", (9,), {"fraction": 1.5}, r"in \(0, 1\], got 1.5"),
        ("p-rope", (9,), {"p": 0.0}, r"in \(0, 1\], got 0.0"),
        ("p-rope", (9,), {"p": 1.5}, r"in \(0, 1\], got 1.5"),
        ("ntk-rope", (9,), {"factor": 0.5}, "1 or more, got 0.5"),
        ("yarn", (9,), {"factor": 0.5}, "1 or more, got 0.5"),
        ("xpos", (9,), {"causal": False}, "causal models alone, got a bidirectional one"),
        ("xpos", (9, 9), {"causal": True}, "serves 1 position axes, got 2"),
        ("xpos", (9,), {"causal": True, "scale_base": 0.0}, "must be positive and finite, got 0.0"),
        ("yarn", (9,), {"theta": 1.0}, "must be above 1, got 1.0"),
        ("yarn", (9,), {"slow": 0.0}, "must be positive and finite, got 0.0"),
        ("yarn", (9,), {"fast": 0.5}, "must be at least slow = 1.0, got 0.5"),
        ("rope-mixed", (9,), {}, "serves 2 position axes, got 1"),
        ("rope-mixed", (9, 9), {"width": 12}, "multiple of 4, got 6"),
        ("lie-re", (9,), {"block": 5}, "2 or more and divide the head width 12, got 5"),
        ("lie-re", (9,), {"block": 1}, "2 or more and divide the head width 12, got 1"),
        ("lie-re", (9,), {"width": 22, "heads": 2, "block": None}, "divide the head width 11, got 0"),
        ("pope", (9, 9), {}, "serves 1 position axes, got 2"),
    ],
)
def test_impossible_options_are_refused(name, extent, settings, message):
    with pytest.raises(ValueError, match=f"'{name}'.*{message}"):
        fresh(name, extent, **settings)
