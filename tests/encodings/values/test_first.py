"""Golden values of the first encodings, and what must hold of their scale, precision and options."""

import math

import pytest
import torch
from torch import Tensor, nn

from pebench.conformance.bench import perturbed
from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.encodings.alibi import slopes
from pebench.encodings.base import grid_positions
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.encodings.sinusoid import sinusoid
from pebench.layers import initialise
from pebench.models.transformer import Transformer

from .helpers import both_ways, noise, rotated, text_and_grid, wave

WRITERS = [name for name, card in encoding_cards().items() if "ratio" in card.options]
LINE, PLANE = (8,), (3, 5)

everywhere = pytest.mark.parametrize("extent", [LINE, PLANE], ids=["text", "grid"])


def encode(
    name: str, extent: tuple[int, ...] = LINE, *, width: int = 32, heads: int = 4, **options
) -> PositionalEncoding:
    return build_encoding(name, EncodingSpec(width, heads, 2, extent, causal=False), options)


def assert_same(a: Tensor, b: Tensor, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(a.float(), b.float(), atol=tolerance, rtol=0)


def assert_differ(a: Tensor, b: Tensor) -> None:
    assert (a - b).abs().max() > 5e-3


def own_part(encoding: PositionalEncoding, encoded: Tensor) -> Tensor:
    return encoded if encoding.content_width == encoding.model_width else encoded[..., encoding.content_width :]


def turned(vector: list[float], position: tuple[float, ...], theta: float) -> list[float]:
    half = len(vector) // 2
    n = half // len(position)
    return rotated(vector, [position[c // n] * theta ** (-(c % n) / n) for c in range(half)])


@text_and_grid
@pytest.mark.parametrize(("base", "ratio"), [(10000.0, 1.0), (100.0, 0.25)])
def test_sinusoid_is_the_published_formula(positions, base, ratio):
    expected = torch.tensor([wave(p, 12, base, ratio) for p in positions])
    assert_same(sinusoid(torch.tensor(positions), 12, base, ratio), expected, 1e-6)


@text_and_grid
def test_add_sums_content_and_sinusoid(positions):
    encoding = encode("add", (9,) * len(positions[0]), width=12, heads=3)
    content = noise(2, 5, 12)
    expected = content + torch.tensor([wave(p, 12, 10000.0, 1.0) for p in positions])
    assert_same(encoding.embed(content, encoding.prepare(torch.tensor(positions))), expected, 1e-6)


@text_and_grid
def test_add_sums_the_sinusoid_of_concat_and_the_last_channels(positions):
    extent, narrow = (9,) * len(positions[0]), {"width": 20, "d_p": 8, "base": 50.0, "ratio": 0.25}
    encoding, beside = encode("add", extent, **narrow), encode("concat", extent, **narrow)
    content = noise(2, 5, 20)
    waves = torch.tensor([wave(p, 8, 50.0, 0.25) for p in positions])
    encoded = encoding.embed(content, encoding.prepare(torch.tensor(positions)))
    assert torch.equal(encoded[..., :12], content[..., :12])
    assert_same(encoded[..., 12:], content[..., 12:] + waves, 1e-6)
    content[..., 12:] = 0  # so that nothing else differs
    assert torch.equal(
        encoding.embed(content, encoding.prepare(torch.tensor(positions))),
        beside.embed(content[..., :12], beside.state(torch.tensor(positions))),
    )


@text_and_grid
@pytest.mark.parametrize(("options", "gain"), [({}, 0.5**0.5), ({"ratio": 2.0, "d_p": 8}, (1 + 4 * 8 / 32) ** -0.5)])
def test_add_can_be_as_loud_as_content_alone(positions, options, gain):
    extent = (9,) * len(positions[0])
    usual = encode("add", extent, width=32, **options)
    quieter = encode("add", extent, width=32, preserve_variance=True, **options)
    content, cells = noise(2000, 5, 32), torch.tensor(positions)
    encoded = quieter.embed(content, quieter.prepare(cells))
    assert_same(encoded, gain * usual.embed(content, usual.prepare(cells)), 1e-6)
    assert encoded.square().mean().item() == pytest.approx(1, abs=0.02)


@text_and_grid
def test_concat_keeps_content_first_and_puts_the_sinusoid_last(positions):
    encoding = encode("concat", (9,) * len(positions[0]), width=20, d_p=8, base=50.0)
    content = noise(2, 5, encoding.content_width)
    output = encoding.embed(content, encoding.prepare(torch.tensor(positions)))
    assert encoding.content_width == 12
    assert torch.equal(output[..., :12], content)
    assert_same(output[..., 12:], torch.tensor([wave(p, 8, 50.0, 1.0) for p in positions]).expand(2, -1, -1), 1e-6)


@pytest.mark.parametrize(("width", "extent", "d_p"), [(32, LINE, 8), (32, PLANE, 8), (20, PLANE, 4), (6, LINE, 2)])
def test_concat_takes_a_quarter_of_the_width(width, extent, d_p):
    assert encode("concat", extent, width=width, heads=1).content_width == width - d_p


@pytest.mark.parametrize("extent", [LINE, PLANE])
def test_learned_reads_its_table_in_row_major_order(extent):
    encoding = encode("learned", extent)
    rows = encoding.embed(torch.zeros(1, 1, 32), encoding.prepare(grid_positions(extent)))[0]
    assert_same(rows, encoding.table.detach() * math.sqrt(32), 1e-6)


@pytest.mark.parametrize(("pace", "moves"), [(None, 8.0), (1.0, 1.0), (2.5, 2.5)])
def test_learned_starts_alike_at_any_pace_and_moves_at_that_pace(pace, moves):
    encoding = build_encoding("learned", EncodingSpec(64, 4, 2, (512,), True), {"ratio": 0.5, "pace": pace})
    torch.manual_seed(0)
    encoding.reset_parameters()

    def rows():
        state = encoding(encoding.prepare(torch.arange(512.0).unsqueeze(1)))
        return encoding.embed(torch.zeros(1, 512, 64), state)

    before = rows()
    assert before.detach().square().mean().sqrt().item() == pytest.approx(0.5, rel=0.02)
    adam = torch.optim.Adam(encoding.parameters(), lr=1e-3)
    before.sum().backward()
    adam.step()
    torch.testing.assert_close(before - rows(), torch.full((1, 512, 64), 1e-3 * moves), atol=1e-6, rtol=1e-3)


def test_learned_finds_a_cell_of_a_grid():
    encoding = encode("learned", PLANE, ratio=0.5)
    row = encoding.embed(torch.zeros(1, 1, 32), encoding.prepare(torch.tensor([[2.0, 1.0]])))[0, 0]
    assert_same(row, encoding.table[2 * 5 + 1].detach() * math.sqrt(32), 1e-6)


@text_and_grid
@pytest.mark.parametrize("theta", [None, 500.0])
def test_rope_turns_queries_and_keys_as_complex_numbers(positions, theta):
    encoding = encode("rope", (9,) * len(positions[0]), width=24, heads=2, theta=theta)
    q, k = noise(1, 2, 5, 12), noise(1, 2, 5, 12, seed=4)
    base = theta or (10000.0 if len(positions[0]) == 1 else 100.0)
    encoded = encoding.query_key(q, k, q, encoding.prepare(torch.tensor(positions)), layer=0)
    for before, after in zip((q, k), encoded, strict=True):
        for head in range(2):
            rows = [turned(v, p, base) for v, p in zip(before[0, head].tolist(), positions, strict=True)]
            assert_same(after[0, head], torch.tensor(rows), 1e-5)


@pytest.mark.parametrize("positions", [[0, 2, 4, 6], [5, 1, 90, 3], [1000, 1002, 1004, 1001]])
def test_rope_logits_depend_on_differences_alone(positions):
    encoding = encode("rope", width=8, heads=1)
    q, k = noise(8), noise(8, seed=4)
    state = encoding.prepare(torch.tensor(positions, dtype=torch.float32)[:, None])
    told_q, told_k = encoding.query_key(
        q.expand(1, 1, 4, 8), k.expand(1, 1, 4, 8), q.expand(1, 1, 4, 8), state, layer=0
    )
    for i, p in enumerate(positions):
        for j, r in enumerate(positions):
            expected = sum(a * b for a, b in zip(turned(q.tolist(), (p - r,), 1e4), k.tolist(), strict=True))
            assert (told_q[0, 0, i] @ told_k[0, 0, j]).item() == pytest.approx(expected, abs=1e-4)


@everywhere
def test_rope_preserves_norms(extent):
    encoding = encode("rope", extent)
    q, k = noise(2, 4, 8, 8), noise(2, 4, 8, 8, seed=4)
    encoded = encoding.query_key(q, k, q, encoding.prepare(1000 * noise(8, len(extent)).abs()), layer=1)
    assert_same(encoded[0].norm(dim=-1), q.norm(dim=-1))
    assert_same(encoded[1].norm(dim=-1), k.norm(dim=-1))


ALIBI_EXPONENTS = {
    1: [8],
    2: [4, 8],
    4: [2, 4, 6, 8],
    6: [2, 4, 6, 8, 1, 3],
    8: [1, 2, 3, 4, 5, 6, 7, 8],
    12: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5],
}


@pytest.mark.parametrize("num_heads", ALIBI_EXPONENTS)
def test_alibi_slopes_are_the_authors(num_heads):
    assert slopes(num_heads) == pytest.approx([2**-e for e in ALIBI_EXPONENTS[num_heads]])


@text_and_grid
@pytest.mark.parametrize("num_heads", [4, 6])
def test_alibi_subtracts_slope_times_distance(positions, num_heads):
    encoding = encode("alibi", (9,) * len(positions[0]), width=24, heads=num_heads)
    q = noise(1, num_heads, 5, 24 // num_heads)
    bias = encoding.bias(q, q, q, encoding.prepare(torch.tensor(positions)), layer=1).expand(1, num_heads, 5, 5)
    rows = [[[-(2**-e) * math.dist(p, r) for r in positions] for p in positions] for e in ALIBI_EXPONENTS[num_heads]]
    assert_same(bias[0], torch.tensor(rows), 1e-4)


def t5_bucket(offset: int, both: bool, buckets: int = 32, farthest: int = 128) -> int:
    """Key minus query to bucket, in whole numbers: boundaries are powers, compared as such."""
    first = 0
    if both:
        buckets, first = buckets // 2, buckets // 2 if offset > 0 else 0
        offset = -abs(offset)
    distance, exact = max(0, -offset), buckets // 2
    if distance < exact:
        return first + distance
    step = 0  # the largest with exact (farthest / exact)^(step / exact) <= distance
    while step < exact - 1 and distance**exact >= exact**exact * (farthest / exact) ** (step + 1) * (1 - 1e-12):
        step += 1
    return first + exact + step


@pytest.mark.parametrize("causal", [True, False])
def test_t5_puts_offsets_into_the_papers_buckets(causal):
    encoding = build_encoding("t5-bias", EncodingSpec(32, 4, 2, LINE, causal))
    offsets = range(-700, 701)
    expected = [t5_bucket(offset, not causal) for offset in offsets]
    assert encoding.bucket(torch.tensor(offsets, dtype=torch.float32)).tolist() == expected


@pytest.mark.parametrize("causal", [True, False])
def test_t5_has_no_bucket_of_its_own_for_fractions(causal):
    """As of positions that are interpolated: a bucket that no whole offset reaches is never trained."""
    encoding = build_encoding("t5-bias", EncodingSpec(32, 4, 2, LINE, causal))
    halves = encoding.bucket(torch.arange(-80, 81) / 2).tolist()
    assert halves == encoding.bucket((torch.arange(-80, 81) / 2).round()).tolist()
    assert set(halves) <= set(encoding.bucket(torch.arange(-700.0, 701)).tolist())


@everywhere
@both_ways
def test_t5_reads_its_tables_axis_by_axis(extent, causal):
    encoding = build_encoding("t5-bias", EncodingSpec(32, 4, 2, extent, causal))
    positions, q = grid_positions(extent), noise(1, 4, math.prod(extent), 8)
    bias = encoding.bias(q, q, q, encoding.state(positions), layer=1)[0]
    both = len(extent) > 1 or not causal
    for i, p in enumerate(positions.long().tolist()):
        for j, r in enumerate(positions.long().tolist()):
            rows = [encoding.table[a, t5_bucket(r[a] - p[a], both)] for a in range(len(extent))]
            assert_same(bias[:, i, j], sum(rows[1:], rows[0]), 1e-6)


@pytest.mark.parametrize(
    ("options", "message"), [({"num_buckets": 6}, "got 6"), ({"max_distance": 8}, "above 8, got 8")]
)
def test_t5_refuses_impossible_buckets(options, message):
    with pytest.raises(ValueError, match=f"'t5-bias' must be .*{message}"):
        encode("t5-bias", **options)


@text_and_grid
def test_kerple_is_a_logarithm_of_distance_for_each_head_and_layer(positions):
    encoding = perturbed(encode("kerple-log", (9,) * len(positions[0]), width=24, heads=4))
    q = noise(1, 4, 5, 6)
    for layer in range(2):
        bias = encoding.bias(q, q, q, encoding.prepare(torch.tensor(positions)), layer)[0]
        for head in range(4):
            p, a = (max(0.01, x[layer, head].item()) for x in (encoding.p, encoding.a))
            rows = [[-p * math.log(1 + a * math.dist(x, y)) for y in positions] for x in positions]
            assert_same(bias[head], torch.tensor(rows), 1e-4)


def test_kerple_begins_with_the_authors_distributions():
    encoding = build_encoding("kerple-log", EncodingSpec(512, 256, 20, LINE, causal=True))
    for values, top in ((encoding.p, 2), (encoding.a, 1)):
        assert 0.01 <= values.min() < 0.03 * top
        assert 0.98 * top < values.max() <= top
        assert values.mean().item() == pytest.approx(top / 2, abs=0.03)


@pytest.mark.parametrize("extent", [LINE, PLANE])
def test_axial_learned_sums_a_row_of_each_table(extent):
    encoding = encode("axial-learned", extent, ratio=0.5)
    encoded = encoding.embed(torch.zeros(1, 1, 32), encoding.prepare(grid_positions(extent)))[0]
    tables = encoding.tables.detach().split(list(extent))
    for row, position in zip(encoded, grid_positions(extent).long().tolist(), strict=True):
        expected = sum(table[p] for table, p in zip(tables, position, strict=True))
        assert_same(row, expected * math.sqrt(32 / len(extent)), 1e-6)


def test_random_is_one_fixed_table():
    encoding, again, other = encode("random"), encode("random"), encode("random", table_seed=1)
    initialise(again, seed=5)
    assert torch.equal(encoding.table, again.table)
    assert_differ(encoding.table, other.table)
    assert torch.equal(encoding.embed(torch.zeros(1, 8, 32), encoding.prepare(grid_positions(LINE)))[0], encoding.table)
    assert torch.equal(encode("random", ratio=0.5).table, 0.5 * encoding.table)
    assert [*encoding.parameters()] == []


@text_and_grid
def test_multiply_is_the_product_with_the_sinusoid(positions):
    encoding, content = encode("multiply", (9,) * len(positions[0]), width=12, heads=3, base=50.0), noise(2, 5, 12)
    encoded = encoding.embed(content, encoding.prepare(torch.tensor(positions)))
    assert_same(encoded, content * torch.tensor([wave(p, 12, 50.0, 1.0) for p in positions]), 1e-6)


@text_and_grid
@pytest.mark.parametrize(("options", "pace"), [({}, math.sqrt(12)), ({"pace": 1.0}, 1.0)])
def test_gated_add_opens_with_its_gate(positions, options, pace):
    encoding = encode("gated-add", (9,) * len(positions[0]), width=12, heads=3, ratio=0.5, **options)
    content, own = noise(2, 5, 12), torch.tensor([wave(p, 12, 10000.0, 0.5) for p in positions])
    for gate, factor in ((0.0, 1.0), (math.log(3), 1.5), (-200.0, 0.0)):
        nn.init.constant_(encoding.gate, gate / pace)
        assert_same(encoding.embed(content, encoding.prepare(torch.tensor(positions))), content + factor * own, 1e-6)


@text_and_grid
@pytest.mark.parametrize("name", ["add-proj", "concat-proj"])
def test_projections_are_matrices_on_content_and_position(name, positions):
    encoding = encode(name, (9,) * len(positions[0]), width=12, heads=3, d_p=8, base=50.0)
    content, own = noise(2, 5, 12), torch.tensor([wave(p, 8, 50.0, 1.0) for p in positions])
    encoded = encoding.embed(content, encoding.prepare(torch.tensor(positions)))
    if name == "concat-proj":
        joined = torch.cat((content, own.expand(2, -1, -1)), dim=-1)
        expected = joined @ torch.cat((encoding.content, encoding.position), dim=1).T
    else:
        expected = content + own @ encoding.position.T
    assert_same(encoded, expected, 1e-5)


@everywhere
@pytest.mark.parametrize("ratio", [None, 0.25])
@pytest.mark.parametrize("name", WRITERS)
def test_position_has_the_declared_scale(name, extent, ratio):
    options = {} if ratio is None else {"ratio": ratio}
    encoding = encode(name, (64,) * len(extent), width=64, **options)
    positions = grid_positions(encoding.spec.extent)[:: 15 if len(extent) == 2 else 1]  # which no side divides
    content = torch.zeros(1, len(positions), encoding.content_width)
    if name == "position-matrix":  # which has no effect without content
        content = noise(*content.shape)
    state, squares = encoding.prepare(positions), []
    # a projection of slow waves, of which there are few, may be off, and 32 units after a GELU more so
    for seed in range(400 if name == "learnable-fourier" else 30):
        initialise(encoding, seed)
        with torch.no_grad():
            shared = encoding(state)
            encoded = encoding.residual(encoding.embed(content, shared), None, shared, layer=0)
            encoded = encoded - (content if name == "position-matrix" else 0)
        squares.append(own_part(encoding, encoded).square().mean().item())
    assert math.sqrt(sum(squares) / len(squares)) == pytest.approx(ratio or 1.0, rel=0.03)


@everywhere
def test_concat_proj_may_begin_as_add_proj_does(extent):
    one, other = encode("add-proj", extent), encode("concat-proj", extent, start="identity")
    content, found = noise(2, math.prod(extent), 32), []
    for encoding in (one, other):
        initialise(encoding, 3)
        found.append(encoding.embed(content, encoding.state(grid_positions(extent))))
    assert torch.equal(*found)
    assert other.content.requires_grad
    with pytest.raises(ValueError, match="start must be random or identity, got 'eye'"):
        encode("concat-proj", extent, start="eye")


@pytest.mark.parametrize("ratio", [-1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", WRITERS)
def test_a_ratio_that_can_be_none_is_refused(name, ratio):
    spec = EncodingSpec(32, 4, 2, LINE, causal=False)
    with pytest.raises(ValueError, match=f"ratio of encoding '{name}' must be zero or more and finite, got {ratio}"):
        load_encoding(name)(spec, ratio=ratio)


def test_every_encoding_that_writes_to_the_stream_has_a_ratio():
    """But those that hand on what another one writes, and those whose scale is content's own."""
    cards = {name: card for name, card in encoding_cards().items() if not load_encoding(name).wraps}
    writers = {name for name, card in cards.items() if {"embed", "residual"} & set(card.hooks)}
    assert writers - set(WRITERS) == {"cpe", "multiply"}
    assert set(WRITERS) <= writers


@everywhere
def test_gradients_reach_every_row_of_the_learned_table(extent):
    model = perturbed(Transformer(encode("learned", extent)))
    model(noise(3, model.encoding.spec.max_len, 32)).pow(3).mean().backward()
    assert (model.encoding.table.grad.abs().amax(dim=1) > 0).all()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", ["add", "concat"])
def test_sinusoids_far_out_survive_16_bit(name, autocast):
    encoding, far = encode(name, width=64).bfloat16(), [15999.0, 16000.0, 16001.0]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        state = encoding.prepare(torch.tensor(far)[:, None])
        encoded = encoding.embed(torch.zeros(1, 3, encoding.content_width, dtype=torch.bfloat16), state)
    own = own_part(encoding, encoded)[0]
    assert own.dtype == torch.bfloat16
    assert_same(own, torch.tensor([wave((p,), own.shape[1], 10000.0, 1.0) for p in far]), 1e-2)


@pytest.mark.parametrize("autocast", [False, True])
def test_rope_far_out_survives_16_bit(autocast):
    encoding, far = encode("rope", width=64, heads=1).bfloat16(), [15999.0, 16000.0, 16001.0]
    q = torch.ones(1, 1, 3, 64, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        encoded, _ = encoding.query_key(q, q, q, encoding.prepare(torch.tensor(far)[:, None]), layer=0)
    assert encoded.dtype == torch.bfloat16
    assert_same(encoded[0, 0], torch.tensor([turned([1.0] * 64, (p,), 10000.0) for p in far]), 1e-2)


def test_rope_turns_16_bit_vectors_in_32_bit():
    encoding = encode("rope", width=64, heads=1)
    q, state = noise(1, 1, 8, 64).bfloat16(), encoding.prepare(1000 + grid_positions(LINE))
    expected = encoding.query_key(q.float(), q.float(), q.float(), state, layer=0)[0].bfloat16()
    assert torch.equal(encoding.query_key(q, q, q, state, layer=0)[0], expected)


@pytest.mark.parametrize(
    ("name", "extent", "width", "heads", "options", "message"),
    [
        ("add", LINE, 7, 1, {}, "multiple of 2 for 1 position axes, got 7"),
        ("add", PLANE, 6, 1, {}, "multiple of 4 for 2 position axes, got 6"),
        ("add", LINE, 8, 1, {"d_p": 3}, "multiple of 2 for 1 position axes, got 3"),
        ("add", LINE, 8, 1, {"d_p": 0}, "positive multiple of 2 .* got 0"),
        ("add", LINE, 8, 1, {"d_p": 10}, "at most d_model = 8, got 10"),
        ("concat", LINE, 8, 1, {"d_p": 3}, "multiple of 2 for 1 position axes, got 3"),
        ("concat", PLANE, 16, 1, {"d_p": 6}, "multiple of 4 for 2 position axes, got 6"),
        ("concat", LINE, 8, 1, {"d_p": 0}, "positive multiple of 2 .* got 0"),
        ("concat", LINE, 8, 1, {"d_p": 8}, "below d_model = 8, got 8"),
        ("concat", LINE, 8, 1, {"d_p": 10, "table": "learned"}, "below d_model = 8, got 10"),
        ("concat", PLANE, 4, 1, {}, "below d_model = 4, got 4"),
        ("rope", LINE, 12, 4, {}, "multiple of 2 for 1 position axes, got 3"),
        ("rope", PLANE, 12, 2, {}, "multiple of 4 for 2 position axes, got 6"),
    ],
)
def test_impossible_widths_are_refused(name, extent, width, heads, options, message):
    with pytest.raises(ValueError, match=f"'{name}'.*{message}"):
        encode(name, extent, width=width, heads=heads, **options)
