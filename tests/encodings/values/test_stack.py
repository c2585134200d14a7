"""Two encodings at once: what a stack adds up to, and which pairs it refuses to be."""

import math

import pytest
import torch

from pebench.encodings import EncodingSpec, build_encoding
from pebench.models.transformer import Transformer

from .helpers import (
    TEXT,
    TEXT_CELLS,
    alibi,
    assert_rows,
    attend,
    by_angle,
    dot,
    each_layer,
    encode,
    fresh,
    noise,
    numbers,
    plus,
    rope_angles,
    rotated,
    share,
    state_of,
    text_and_grid,
    times,
    wave,
)


@text_and_grid
def test_a_stack_acts_on_the_input_and_on_attention(positions):
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


@each_layer
def test_a_stack_may_move_its_tokens(layer):
    encoding = encode("stack", TEXT_CELLS, first="randomized(of='learned')", second="rope")
    places = [p for (p,) in numbers(fresh("randomized").eval().place(torch.tensor(TEXT_CELLS)))]
    assert places != [p for (p,) in TEXT_CELLS]
    seen = attend(encoding, TEXT_CELLS, layer)
    seen.check(by_angle(seen, rope_angles([(p,) for p in places])), 1e-4)
    encoded = encoding.embed(torch.zeros(1, 5, 24), state_of(encoding, TEXT_CELLS))
    assert_rows(encoded[0], numbers(encoding.first.inner.table[[int(p) for p in places]] * math.sqrt(24)))


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
