"""Encodings of 2024 to 2026, each against loops over heads, tokens and channels."""

import cmath
import math

import pytest
import torch

from pebench.conformance.bench import perturbed
from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.base import grid_positions
from pebench.models.transformer import Transformer

from .helpers import (
    GRID,
    TEXT,
    alibi,
    attend,
    both_ways,
    by_angle,
    dot,
    each_layer,
    encode,
    fresh,
    noise,
    numbers,
    pairs,
    rope_angles,
    share,
    state_of,
    text_and_grid,
    times,
)

CLOSE = [(0.0,), (1.0,), (2.5,), (4.0,), (7.0,)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def length(vector):
    return math.sqrt(dot(vector, vector))


@each_layer
@pytest.mark.parametrize(("fraction", "r"), [(0.5, 6), (0.9, 10)])
def test_key_offset_takes_what_does_not_turn_from_the_token_before(layer, fraction, r):
    seen = attend(encode("key-offset", TEXT, causal=True, fraction=fraction), TEXT, layer)
    angles = [[p * 10000 ** (-2 * i / r) for i in range(r // 2)] for (p,) in TEXT]

    def rule(h, i, j):
        q, k, before = seen.q[h][i], seen.k[h][j], seen.k[h][max(0, j - 1)]
        terms = zip(pairs(q[:r]), pairs(k[:r]), angles[i], angles[j], strict=True)
        turned = math.fsum((a * b.conjugate() * cmath.exp(1j * (s - t))).real for a, b, s, t in terms)
        return (turned + dot(q[r:], before[r:])) / math.sqrt(12)

    seen.check(rule, 1e-4)


def test_key_offset_takes_nothing_from_padding():
    encoding, k = encode("key-offset", CLOSE, causal=True), noise(2, 2, 5, 12)
    valid = torch.tensor([[False, False, True, True, True], [True, True, True, True, False]])
    found = encoding.query_key(k, k, k, encoding.padded(state_of(encoding, CLOSE), valid), 0)[1][..., 6:]
    assert torch.equal(found[0, :, 2:], k[0, :, [2, 2, 3], 6:])
    assert torch.equal(found[1, :, :4], k[1, :, [0, 0, 1, 2], 6:])


def directions(encoding, seen, layer, head):
    """The unit vectors w of ``path`` for one head."""
    down, up, kernel = (numbers(p)[layer] for p in (encoding.down, encoding.up, encoding.kernel))
    projected, found = [times(up, times(down, x)) for x in seen.x], []
    for t in range(len(projected)):
        reach = [(kernel[n], t - len(kernel) + 1 + n) for n in range(len(kernel))]
        mixed = [math.fsum(tap[c] * projected[s][c] for tap, s in reach if s >= 0) for c in range(len(projected[0]))]
        vector = share([y * sigmoid(y) for y in mixed], head, encoding.spec.num_heads)
        found.append([y / length(vector) for y in vector])
    return found


@each_layer
@pytest.mark.parametrize("options", [{}, {"rank": 3, "taps": 1}])
def test_path_reflects_a_key_at_every_token_after_it(layer, options):
    encoding = encode("path", TEXT, causal=True, **options)
    seen, weight, shift = attend(encoding, TEXT, layer), numbers(encoding.gate)[layer], numbers(encoding.shift)[layer]

    def rule(h, i, j):
        w, k = directions(encoding, seen, layer, h), seen.k[h][j]
        for t in range(j + 1, i + 1):
            beta = 2 * sigmoid(dot(weight[h], seen.x[t]) + shift[h])
            part = beta * dot(w[t], k)
            k = [a - part * b for a, b in zip(k, w[t], strict=True)]
        return (dot(seen.q[h][i], k) - dot(seen.q[h][i], seen.k[h][j])) / math.sqrt(12)

    seen.check_bias(rule, 2e-5)


@each_layer
@pytest.mark.parametrize("theta", [500000.0, 3.0])
def test_selective_rope_turns_by_what_the_tokens_add_up_to(layer, theta):
    encoding = encode("selective-rope", TEXT, causal=True, theta=theta)
    seen, down, up = attend(encoding, TEXT, layer), numbers(encoding.down)[layer], numbers(encoding.up)[layer]
    steps = [times(up, times(down, [c / length(x) for c in x])) for x in seen.x]
    for h in range(2):
        angles = [
            [theta ** (-c / 6) * math.fsum(step[6 * h + c] for step in steps[: i + 1]) for c in range(6)]
            for i in range(len(TEXT))
        ]
        rule = by_angle(seen, angles)
        for i in range(len(TEXT)):
            for j in range(i + 1):
                assert seen.logits[h, i, j].item() == pytest.approx(rule(h, i, j), abs=1e-4)


@text_and_grid
@both_ways
@each_layer
@pytest.mark.parametrize("of", ["rope", "alibi"])
def test_ssmax_multiplies_by_the_logarithm_of_what_a_query_sees(positions, causal, layer, of):
    encoding = encode("ssmax", positions, causal=causal, of=of)
    seen, scale = attend(encoding, positions, layer), numbers(encoding.scale)[layer]
    plain = by_angle(seen, rope_angles(positions)) if of == "rope" else seen.content
    bias = alibi(positions) if of == "alibi" else lambda h, i, j: 0.0
    n = [i + 1 if causal else len(positions) for i in range(len(positions))]
    seen.check(lambda h, i, j: scale[h] * math.log(n[i]) * plain(h, i, j) + bias(h, i, j), 1e-4)


@pytest.mark.parametrize(("causal", "mean"), [(True, math.log(math.factorial(9)) / 9), (False, math.log(9))])
def test_ssmax_begins_at_a_factor_of_1_in_the_mean_and_leaves_out_padding(causal, mean):
    encoding = fresh("ssmax", causal=causal)
    assert torch.allclose(encoding.scale, torch.tensor(1 / mean))
    assert fresh("ssmax", (1,)).scale.eq(1).all()
    valid = torch.tensor([[False, True, True, True, True]])
    seen = encoding.padded(state_of(encoding, CLOSE), valid)[1][valid].exp()
    assert seen.tolist() == pytest.approx([1, 2, 3, 4] if causal else [4] * 4)
    long = 1 / fresh("ssmax", (1024,), causal=True).scale[0, 0].item()  # the paper's 0.168
    assert 1 / long == pytest.approx(0.168, abs=5e-4)


@text_and_grid
@both_ways
@each_layer
@pytest.mark.parametrize("of", ["alibi", "rope"])
def test_dape_adds_a_network_of_logits_and_biases(positions, causal, layer, of):
    encoding = encode("dape", positions, causal=causal, of=of, hidden=5)
    seen = attend(encoding, positions, layer)
    first, shift, second = (numbers(p)[layer] for p in (encoding.first, encoding.shift, encoding.second))
    logit = by_angle(seen, rope_angles(positions)) if of == "rope" else seen.content
    bias = alibi(positions) if of == "alibi" else lambda h, i, j: 0.0

    def rule(h, i, j):
        given = [logit(g, i, j) for g in range(2)] + [bias(g, i, j) for g in range(2)]
        hidden = [dot(row, given) + c for row, c in zip(first, shift, strict=True)]
        return logit(h, i, j) + bias(h, i, j) + dot(second[h], [y if y > 0 else 0.01 * y for y in hidden])

    seen.check(rule, 2e-4)


@both_ways
@each_layer
@pytest.mark.parametrize("valid", [None, [False, True, True, True, True]], ids=["whole", "padded"])
def test_dape_with_a_kernel_reads_the_logits_of_the_keys_beside(causal, layer, valid):
    places = [(0.0,), (1.0,), (2.0,), (3.0,), (7.0,)]  # the last one has no neighbour
    encoding = encode("dape", places, causal=causal, of="alibi", hidden=5, kernel=3)
    q, k, x = noise(1, 2, 5, 12, seed=2), noise(1, 2, 5, 12, seed=3), noise(1, 5, 24)
    state = state_of(encoding, places)
    state = state if valid is None else encoding.padded(state, torch.tensor([valid]))
    found = numbers(encoding.bias(q, k, x, state, layer)[0])
    first, shift, second = (numbers(p)[layer] for p in (encoding.first, encoding.shift, encoding.second))
    bias, token = alibi(places), {p: n for n, (p,) in enumerate(places)}

    def beside(i, j, width, of):
        """The numbers of the pairs (i, j - 1), (i, j) and (i, j + 1) by position, 0 for one that i does not see."""
        row = []
        for p in (places[j][0] - 1, places[j][0], places[j][0] + 1):
            n = token.get(p)
            sees = n is not None and (n <= i or not causal) and (valid is None or valid[n])
            row += of(i, n) if sees else [0.0] * width
        return row

    def given(i, j):
        logits = [dot(numbers(q[0, g, i]), numbers(k[0, g, j])) / math.sqrt(12) for g in range(2)]
        return logits + [bias(g, i, j) for g in range(2)]

    def hidden(i, j):
        sums = [dot(row, beside(i, j, 4, given)) + c for row, c in zip(first, shift, strict=True)]
        return [y if y > 0 else 0.01 * y for y in sums]

    for h in range(2):
        for i in range(5):
            for j in range(i + 1 if causal else 5):
                expected = bias(h, i, j) + dot(second[h], beside(i, j, 5, hidden))
                assert found[h][i][j] == pytest.approx(expected, abs=1e-4), f"head {h}, query {i}, key {j}"


@pytest.mark.parametrize(("count", "theta"), [(2, None), (4, None), (6, 7.0)])
def test_spiral_rope_turns_pairs_along_several_directions(count, theta):
    seen = attend(encode("spiral-rope", GRID, directions=count, theta=theta), GRID)
    angles = []
    for row, column in GRID:
        angles.append([])
        for family in (0, 90):
            for j in range(3):
                turn = math.radians(family + (j % (count // 2)) * 180 / count)
                along = row * math.cos(turn) + column * math.sin(turn)
                angles[-1].append(along * (theta or 100) ** (-j / 3))
    seen.check(by_angle(seen, angles), 1e-4)


def test_spiral_rope_along_two_directions_is_rope():
    for one, other in zip(
        fresh("spiral-rope", (9, 9), directions=2).state(grid_positions((9, 9))),
        fresh("rope", (9, 9)).state(grid_positions((9, 9))),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


SECTORS = {  # bearings, clockwise from up, between which a head of the first and second group of four looks
    "halves": [[(-90, 90), (90, 270), (180, 360), (0, 180)]] * 2,
    "quarters": [[(-90, 0), (0, 90), (180, 270), (90, 180)], [(-45, 45), (135, 225), (225, 315), (45, 135)]],
    "eighths": [[(-45, 0), (180, 225), (270, 315), (45, 90)], [(0, 45), (135, 180), (225, 270), (90, 135)]],
}


@pytest.mark.parametrize("view", SECTORS)
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_look_here_sees_a_sector_and_less_the_further_away(view, layer):
    encoding = encode("look-here", GRID, width=36, heads=12, layers=3, view=view)
    seen = attend(encoding, GRID, layer)
    slopes = [0.5] * 4 + [0.25 if view == "halves" else 0.5] * 4 + [0.25, 0.0625, 0.015625, 0.00390625]

    def rule(h, i, j):
        down, right = GRID[j][0] - GRID[i][0], GRID[j][1] - GRID[i][1]
        bearing = math.degrees(math.atan2(right, -down))
        low, high = (-360, 360) if h > 7 or i == j else SECTORS[view][h // 4][h % 4]
        inside = any(low - 1e-9 <= bearing + turn <= high + 1e-9 for turn in (-360, 0, 360))
        factor = 2 * (1.5, 1.0, 0.5)[layer]
        return seen.content(h, i, j) - factor * (slopes[h] * math.hypot(down, right) if inside else 1e4)

    seen.check(rule, 2e-3)  # of thousands


@pytest.mark.parametrize(("heads", "everywhere"), [(1, 0), (4, 0), (6, 2), (8, 4), (16, 4)])
def test_look_here_leaves_some_heads_undirected(heads, everywhere):
    state = fresh("look-here", (9, 9), width=48, heads=heads).prepare(torch.tensor(GRID))
    assert len(state) == heads
    assert [bool((bias > -1e3).all()) for bias in state] == [False] * (heads - everywhere) + [True] * everywhere


@each_layer
def test_pape_sums_parabolas_that_the_query_sets(layer):
    encoding = encode("pape", GRID, parabolas=3)
    seen, along, content = attend(encoding, GRID, layer), numbers(encoding.directions), numbers(encoding.content)

    def rule(h, i, j):
        offset, total = [a - b for a, b in zip(GRID[i], GRID[j], strict=True)], 0.0
        for n in range(3):
            u = dot(along[layer][h][n], offset)
            a = math.log1p(math.exp(dot(content[layer][0][h][n], seen.x[i])))
            total += dot(content[layer][1][h][n], seen.x[i]) * u - a * u * u
        return total / math.sqrt(12)

    seen.check_bias(rule, 2e-3)  # of thousands, at an offset of 40


@pytest.mark.parametrize(("theta", "kept"), [(10000.0, 1), (2.0, 4)])
def test_fope_mixes_the_frequencies_that_turn_within_the_text(theta, kept):
    encoding = encode("fope", TEXT, causal=True, theta=theta, table_seed=3)
    seen, (cosines, sines) = attend(encoding, TEXT), numbers(encoding.shares)
    frequencies = [theta ** (-c / 6) for c in range(6) if theta ** (-c / 6) > 2 * math.pi / 9]
    assert (len(frequencies), encoding.shares.shape) == (kept, (2, 2, kept, kept))

    def turned(vector, h, p):
        found = []
        for m, z in enumerate(pairs(vector)):
            cos = math.fsum(cosines[h][c][m] * math.cos(p * f) for c, f in enumerate(frequencies)) if m < kept else 1
            sin = math.fsum(sines[h][c][m] * math.sin(p * f) for c, f in enumerate(frequencies)) if m < kept else 0
            found.append(z * complex(cos, sin))
        return [z.real for z in found] + [z.imag for z in found]

    seen.check(
        lambda h, i, j: dot(turned(seen.q[h][i], h, *TEXT[i]), turned(seen.k[h][j], h, *TEXT[j])) / math.sqrt(12), 1e-4
    )


@pytest.mark.parametrize(("theta", "kept"), [(10000.0, 1), (2.0, 4), (1.1, 6)])
def test_fope_without_other_frequencies_turns_what_comes_full_circle_as_rope_does(theta, kept):
    seen = attend(encode("fope", TEXT, causal=True, theta=theta, sigma=0.0), TEXT)
    angles = [[p * theta ** (-c / 6) if c < kept else 0.0 for c in range(6)] for (p,) in TEXT]
    seen.check(by_angle(seen, angles), 1e-4)


def test_fope_has_mostly_a_pairs_own_frequency_and_sums_of_1():
    encoding = fresh("fope", (512,), width=512, heads=4, causal=True)
    shares = encoding.shares
    assert shares.shape == (2, 4, 31, 31)  # of 64 frequencies those above 2 pi / 512
    assert torch.allclose(shares.sum(dim=2), torch.ones(2, 4, 31), atol=1e-5)
    own = shares.diagonal(dim1=2, dim2=3)
    raw = shares / own.unsqueeze(2)  # but for what their sum divides them by, and the own one's noise
    others = raw[:, :, ~torch.eye(31, dtype=torch.bool)]
    assert others.std().item() == pytest.approx(0.3 * math.sqrt(2 / (31 * 35)), rel=0.1)
    still = fresh("fope", (512,), width=512, heads=4, causal=True, sigma=0.0)
    assert torch.equal(still.shares[0, 0], torch.eye(31))
    assert still.relative
    assert not encoding.relative


@each_layer
def test_grape_sums_along_the_path_by_query(layer):
    encoding = encode("grape-ap", CLOSE, causal=True, channels=4)
    seen, weight = attend(encoding, CLOSE, layer), numbers(encoding.weight)[layer]
    u = [times(weight, x) for x in seen.x]

    def rule(h, i, j):
        total = 0.0
        for n in range(j + 1, i + 1):
            right = share(u[n], h, 2)
            scale = math.sqrt(dot(right, right) / 4)
            turned = [z * cmath.exp(1j * CLOSE[n][0]) for z in pairs([y / scale for y in right])]
            score = dot(share(u[i], h, 2), [z.real for z in turned] + [z.imag for z in turned]) / 4
            total += math.log(sigmoid(score))
        return 2.0 ** (-4 * (h + 1)) * total

    seen.check_bias(rule, 1e-5)


@text_and_grid
@each_layer
@pytest.mark.parametrize("block", [None, 2, 4])
def test_com_rope_turns_by_one_generator_for_all_axes(positions, layer, block):
    encoding = encode("com-rope", positions, block=block)
    seen, entries, factors = attend(encoding, positions, layer), encoding.entries[layer], encoding.factors[layer]
    size = block or 6

    def turned(vector, h, position):
        found = []
        for n in range(12 // size):
            generator, part = torch.zeros(size, size, dtype=torch.float64), vector[n * size : (n + 1) * size]
            for value, (row, column) in zip(
                entries[h, n].tolist(), [(a, b) for a in range(size) for b in range(a)], strict=True
            ):
                generator[row, column], generator[column, row] = value, -value
            for axis, p in enumerate(position):  # one rotation after the other, as they commute
                turn = torch.matrix_exp(p / 9 * factors[axis, n].double().item() * generator)
                part = times(turn.tolist(), part)
            found += part
        return found

    seen.check(
        lambda h, i, j: (
            dot(turned(seen.q[h][i], h, positions[i]), turned(seen.k[h][j], h, positions[j])) / math.sqrt(12)
        ),
        2e-4,
    )


@each_layer
def test_wall_fades_every_channel_on_its_own(layer):
    encoding = encode("wall", TEXT, causal=True)
    seen, weight, shift = attend(encoding, TEXT, layer), numbers(encoding.weight)[layer], numbers(encoding.shift)[layer]
    gates = [[sigmoid(y + b) for y, b in zip(times(weight, x), shift, strict=True)] for x in seen.x]

    def rule(h, i, j):
        total = 0.0
        for c in range(12):
            fade = math.prod(gates[n][12 * h + c] for n in range(j + 1, i + 1))
            total += seen.q[h][i][c] * seen.k[h][j][c] * (fade - 1)
        return total / math.sqrt(12)

    seen.check_bias(rule)


@pytest.mark.parametrize("causal", [True, False])
def test_interleaved_axes_of_rope_share_one_range_of_frequencies(causal):
    seen = attend(encode("rope", GRID, causal=causal, interleaved=True), GRID)
    # pair c of all six is of axis c mod 2; ours has the three of one axis, then those of the other
    angles = [[p * 100 ** (-c / 6) for a, p in enumerate(position) for c in (a, a + 2, a + 4)] for position in GRID]
    seen.check(by_angle(seen, angles), 1e-4)


@pytest.mark.parametrize("positions", [TEXT, GRID], ids=["text", "grid"])
def test_neighbouring_channels_turn_as_the_halves_do(positions):
    halves, neighbours = (encode("rope", positions, causal=True, pairing=name) for name in ("halves", "neighbours"))
    q, state = noise(2, 2, len(positions), 12), halves.prepare(torch.tensor(positions))
    turned, keys = halves.query_key(q, 2 * q, q, state, layer=0)
    assert torch.equal(keys, 2 * turned)
    # channel c of the first half and channel c of the second one become channels 2c and 2c + 1
    places = [c + 6 * half for c in range(6) for half in range(2)]
    found = neighbours.query_key(q[..., places], 2 * q[..., places], q, state, layer=0)
    assert torch.equal(found[0], turned[..., places])
    assert torch.equal(found[1], keys[..., places])
    with pytest.raises(ValueError, match="pairing of encoding 'rope' must be halves or neighbours, got 'axes'"):
        encode("rope", positions, causal=True, pairing="axes")


def test_fractional_positions_are_drawn_from_the_whole_range_in_order():
    encoding, texts = fresh("randomized", (200,), of="rope", fractional=True), grid_positions((200,))
    drawn = [encoding.train().place(texts).flatten() for _ in range(3)]
    assert not torch.equal(drawn[0], drawn[1])
    for places in (*drawn, encoding.eval().place(texts).flatten()):
        assert (places.diff() > 0).all()
        assert 0 <= places[0] < 40
        assert 760 < places[-1] < 800
        assert (places != places.round()).float().mean() > 0.95
    assert torch.equal(encoding.place(texts), encoding.place(texts))
    with pytest.raises(ValueError, match="'randomized' needs one without a table of positions to be fractional"):
        fresh("randomized", of="learned", fractional=True)


@pytest.mark.parametrize(
    "name",
    [
        "key-offset",
        "path",
        "selective-rope",
        "ssmax",
        "ssmax(of='path')",
        "dape",
        "dape(kernel=5)",
        "grape-ap",
        "wall",
        "some-layers(of='key-offset', every=2)",
        "stack(first='path', second='key-offset')",
    ],
)
def test_padding_on_the_left_is_as_if_it_were_not_there(name):
    model = perturbed(Transformer(build_encoding(name, EncodingSpec(32, 4, 2, (8,), causal=True))))
    content, valid = noise(2, 8, 32), torch.arange(8).expand(2, -1) >= 3
    alone = model(content[:, 3:], torch.arange(3.0, 8)[:, None])
    torch.testing.assert_close(model(content, None, valid)[:, 3:], alone, atol=2e-5, rtol=0)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("path", {"down": 1 / 64, "up": 1 / 32, "kernel": 1 / 3, "gate": 1 / 64}),
        ("selective-rope", {"down": 1.0, "up": 1 / 16}),
        ("dape", {"first": 1 / 12, "shift": 1 / 12, "second": 1 / 96}),
        ("grape-ap", {"weight": 1 / 64}),
        ("wall", {"weight": 1 / 64}),
        ("com-rope", {"entries": 2.0}),
        ("pape", {"directions": 1 / 6, "content": 1 / 192}),
    ],
)
def test_parameters_begin_with_the_declared_variance(name, parameters):
    encoding = fresh(name, (9, 9) if name == "pape" else (9,), width=64, heads=2, layers=8, causal=name != "pape")
    for parameter, variance in parameters.items():
        values = getattr(encoding, parameter)
        assert values.var().item() == pytest.approx(variance, rel=0.25)
        assert abs(values.mean().item()) < 0.2 * math.sqrt(variance)


@pytest.mark.parametrize(
    ("name", "extent", "settings", "message"),
    [
        ("key-offset", (9,), {"causal": True, "fraction": 1.0}, "needs channels that do not turn, got fraction 1.0"),
        ("key-offset", (9,), {}, "causal models alone"),
        ("path", (9,), {"causal": True, "rank": 0}, "rank .* must be 1 or more, got 0"),
        ("path", (9,), {"causal": True, "taps": 0}, "taps .* must be 1 or more, got 0"),
        ("selective-rope", (9,), {"causal": True, "rank": 0}, "1 or more, got 0"),
        ("dape", (9,), {"hidden": 0}, "1 or more, got 0"),
        ("dape", (9,), {"kernel": 2}, "odd and 1 or more, got 2"),
        ("dape", (9, 9), {"kernel": 3}, "must be 1 on a grid, whose keys have no one row, got 3"),
        ("spiral-rope", (9, 9), {"directions": 3}, "even and from 2 to half of the head width 12, got 3"),
        ("spiral-rope", (9, 9), {"directions": 8}, "even and from 2 to half of the head width 12, got 8"),
        ("look-here", (9, 9), {"view": "60"}, "one of halves, quarters, eighths, got 60"),
        ("pape", (9, 9), {"parabolas": 0}, "1 or more, got 0"),
        ("fope", (9,), {"sigma": -1.0}, "zero or more and finite, got -1.0"),
        ("grape-ap", (9,), {"causal": True, "channels": 3}, "even and 2 or more, got 3"),
        ("com-rope", (9,), {"block": 5}, "divide the head width 12, got 5"),
    ],
)
def test_impossible_options_are_refused(name, extent, settings, message):
    with pytest.raises(ValueError, match=f"'{name}'.*{message}|{message.split(' ')[0]}.*'{name}'"):
        fresh(name, extent, **settings)
