"""Rotations of values and of what heads make of them: the hooks `value` and `output`, against loops over tokens."""

import cmath
import math

import pytest
import torch

from pebench.encodings import EncodingSpec, build_encoding
from pebench.models.attention import Masks
from pebench.models.transformer import SelfAttention, Transformer

from .helpers import (
    GRID,
    TEXT,
    attend,
    both_ways,
    by_angle,
    each_layer,
    encode,
    noise,
    numbers,
    pairs,
    rope_angles,
    state_of,
    text_and_grid,
)


def weights(logits, causal):
    """Softmax of one query's logits at a time, over the keys that it may see."""
    found = []
    for i, row in enumerate(logits):
        seen = row[: i + 1] if causal else row
        exponentials = [math.exp(value - max(seen)) for value in seen]
        found.append([value / math.fsum(exponentials) for value in exponentials])
    return found


def mixed_by_offset(rows, values, angles):
    """Equation of the paper: every value turned by the angle of its offset to the query, and weighed."""
    found = []
    for i, row in enumerate(rows):
        total = [0j] * len(angles[0])
        for j, weight in enumerate(row):
            for c, z in enumerate(pairs(values[j])):
                total[c] += weight * z * cmath.exp(1j * (angles[j][c] - angles[i][c]))
        found.append([z.real for z in total] + [z.imag for z in total])
    return found


@text_and_grid
@both_ways
@each_layer
def test_gta_is_rope_whose_values_turn_by_the_offset(positions, causal, layer):
    encoding, angles = encode("gta", positions, causal=causal), rope_angles(positions)
    attend(encoding, positions, layer).check(by_angle(attend(encoding, positions, layer), angles), 1e-4)
    v, x, state = noise(1, 2, 5, 12, seed=5), noise(1, 5, 24), state_of(encoding, positions)
    turned = encoding.value(v, x, state, layer)
    for h in range(2):
        rows = weights(numbers(noise(5, 5, seed=6 + h)), causal)
        heads = torch.zeros(1, 2, 5, 12)
        for i, row in enumerate(rows):
            for j, weight in enumerate(row):
                heads[0, h, i] += weight * turned[0, h, j]
        found = encoding.output(heads, turned, x, state, layer)[0, h]
        expected = torch.tensor(mixed_by_offset(rows, numbers(v[0, h]), angles))
        torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)


@pytest.mark.parametrize("positions", [TEXT, GRID], ids=["text", "grid"])
@both_ways
def test_attention_gives_the_hooks_its_values_and_the_output_of_its_heads(positions, causal):
    """The whole layer of the model, in its own steps but with every sum written out."""
    encoding, angles, x = encode("gta", positions, causal=causal), rope_angles(positions), noise(1, 5, 24)
    attention = SelfAttention(24, 2, 1.0, layer=0)
    with torch.no_grad():
        found = attention(x, encoding, state_of(encoding, positions), Masks(causal, 5, x.device, None))[0]
        q, k, v = attention.qkv(x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)[:, 0].unbind(0)
        heads = []
        for h in range(2):
            complex_q, complex_k = ([pairs(row) for row in numbers(side[h])] for side in (q, k))
            logits = [
                [
                    math.fsum(
                        (a * b.conjugate() * cmath.exp(1j * (s - t))).real
                        for a, b, s, t in zip(complex_q[i], complex_k[j], angles[i], angles[j], strict=True)
                    )
                    / math.sqrt(12)
                    for j in range(5)
                ]
                for i in range(5)
            ]
            heads.append(torch.tensor(mixed_by_offset(weights(logits, causal), numbers(v[h]), angles)))
        expected = attention.out(torch.cat(heads, dim=-1))
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)


def sides(name, **options):
    """What `value` and `output` of an encoding make of the same heads, in each of four layers."""
    encoding = build_encoding(name, EncodingSpec(24, 2, 4, (9,), causal=True), options)
    v, o, x = noise(1, 2, 5, 12, seed=5), noise(1, 2, 5, 12, seed=6), noise(1, 5, 24)
    state = state_of(encoding, TEXT)
    return v, o, [(encoding.value(v, x, state, n), encoding.output(o, v, x, state, n)) for n in range(4)]


def test_wrappers_hand_values_and_outputs_on_to_the_encoding_within():
    v, o, plain = sides("rope")
    assert all(one is v and other is o for one, other in plain)
    turned = sides("gta")[2][0]
    assert not torch.allclose(turned[0], v)
    for name in ("ssmax", "attention-scale", "dape"):
        for found in sides(name, of="gta")[2]:
            assert all(map(torch.equal, found, turned))
    for layer, found in enumerate(sides("some-layers", of="gta", every=2)[2]):
        assert all(map(torch.equal, found, (v, o) if layer % 2 else turned))
    for one, other in sides("some-heads", of="gta")[2]:
        assert torch.equal(one, torch.cat((turned[0][:, :1], v[:, 1:]), dim=1))
        assert torch.equal(other, torch.cat((turned[1][:, :1], o[:, 1:]), dim=1))
    for name in ("some-heads", "some-layers"):
        v, o, plain = sides(name, of="rope")
        assert all(one is v and other is o for one, other in plain)


def test_a_stack_undoes_last_what_it_did_first():
    def named(name):
        encoding = encode("gta", TEXT, causal=True)
        encoding.value = lambda v, x, state, layer: v + name
        encoding.output = lambda o, v, x, state, layer: o * name
        return encoding

    stack = encode("stack", TEXT, causal=True, first="rope", second="gta")
    stack.first, stack.second = named(2.0), named(3.0)
    stack.first.output = lambda o, v, x, state, layer: o + 1
    one = torch.ones(1, 2, 5, 12)
    assert torch.equal(stack.value(one, one, (None, None), 0), one * 6)
    assert torch.equal(stack.output(one, one, one, (None, None), 0), one * 4)  # 3 · 1, and then 1 more


def test_texts_of_one_batch_are_turned_by_their_own_positions():
    model = Transformer(build_encoding("gta", EncodingSpec(24, 2, 2, (9,), causal=False))).eval()
    content, documents = noise(2, 6, 24), torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, -1]])
    with torch.no_grad():
        found = model(content, documents=documents)
        for row, start, end in ((0, 0, 3), (0, 3, 6), (1, 0, 2), (1, 2, 5)):
            alone = model(content[row : row + 1, start:end])[0]
            torch.testing.assert_close(found[row, start:end], alone, atol=1e-5, rtol=0)
