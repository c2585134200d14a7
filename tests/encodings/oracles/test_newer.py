"""Encodings of 2024 to 2026 of which a package holds the authors' own formula, or another's reading of it."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.encodings.values.helpers import both_ways, each_layer, encode, noise, state_of

from .helpers import agree, cells, encoded, oracle, queries_and_keys, steps

pytestmark = pytest.mark.oracle

LENGTH = 70


def tokens_first(heads: Tensor) -> Tensor:
    """(B, H, L, ...) to (B, L, H, ...), as flash-linear-attention has it."""
    return heads.transpose(1, 2)


def attention(encoding: Any, x: Tensor, v: Tensor, layer: int) -> Tensor:
    """Causal softmax attention with an encoding's bias: (B, H, L, K)."""
    q, k = queries_and_keys(LENGTH)
    logits = q @ k.mT * 12**-0.5 + encoding.bias(q, k, x, None, layer)
    return logits.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf).softmax(-1) @ v


@each_layer
@pytest.mark.parametrize("chunk", [16, 70])
def test_path_of_flash_linear_attention(layer, chunk):
    """Its reference takes unit vectors and strengths, and multiplies chunk by chunk."""
    theirs = oracle("fla.ops.path_attn.naive").naive_path_attn
    encoding, x, v = encode("path", steps(LENGTH), causal=True), noise(2, LENGTH, 24), noise(2, 2, LENGTH, 12, seed=7)
    with torch.no_grad():
        # the layer's own steps: low rank, a causal convolution of three tokens, SiLU, length 1; twice a sigmoid
        low = F.linear(F.linear(x, encoding.down[layer]), encoding.up[layer]).mT
        mixed = F.conv1d(F.pad(low, (2, 0)), encoding.kernel[layer].T.unsqueeze(1), groups=24).mT
        w = F.normalize(F.silu(mixed).unflatten(-1, (2, 12)), dim=-1)  # (B, L, H, K)
        beta = 2 * F.linear(x, encoding.gate[layer], encoding.shift[layer]).sigmoid()
        heads = [tokens_first(side) for side in (*queries_and_keys(LENGTH), v)]
        expected = theirs(*heads, w, beta, torch.zeros(2, LENGTH, 2), 12**-0.5, chunk_size=chunk)
        agree(attention(encoding, x, v, layer), tokens_first(expected), 2e-6)


@each_layer
def test_wall_of_flash_linear_attention(monkeypatch, layer):
    """Its reference counts in powers of two; the sum over tokens before is a GPU's kernel there."""
    module = oracle("fla.ops.wall_attn.naive")
    monkeypatch.setattr(module, "chunk_global_cumsum", lambda g, cu_seqlens, scale: g.cumsum(1) * scale)
    encoding, x, v = encode("wall", steps(LENGTH), causal=True), noise(2, LENGTH, 24), noise(2, 2, LENGTH, 12, seed=7)
    with torch.no_grad():
        g = F.logsigmoid(F.linear(x, encoding.weight[layer], encoding.shift[layer])).unflatten(-1, (2, 12))
        heads = [tokens_first(side) for side in (*queries_and_keys(LENGTH), v)]
        expected = module.naive_wall_attn(*heads, g, scale=12**-0.5)
        agree(attention(encoding, x, v, layer), tokens_first(expected), 2e-6)


@both_ways
@each_layer
def test_ssmax_of_scalable_softmax(causal, layer):
    """It takes the logits of one query, whose number is n."""
    theirs = oracle("scalable_softmax").ScalableSoftmax()
    encoding = encode("ssmax", steps(9), causal=causal, of="none")
    q, k = encoded(encoding, steps(9), layer)
    plain_q, plain_k = queries_and_keys(9)
    for head in range(2):
        theirs.s.data.copy_(encoding.scale.detach()[layer, head])
        for i in range(9):
            seen = slice(i + 1 if causal else 9)
            ours = (q[:, head, i : i + 1] @ k[:, head, seen].mT * 12**-0.5).softmax(-1)
            agree(ours, theirs(plain_q[:, head, i : i + 1] @ plain_k[:, head, seen].mT * 12**-0.5).detach(), 1e-6)


@pytest.mark.parametrize("theta", [10000.0, 20.0])
def test_fope_without_other_frequencies_is_rope_of_transformers_with_slow_pairs_held(theta):
    """No package for CPUs has the mixtures; without them it is RoPE without slow pairs."""
    module = oracle("transformers.models.llama.modeling_llama")
    config = module.LlamaConfig(
        hidden_size=48,
        num_attention_heads=2,
        head_dim=24,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
    )
    theirs = module.LlamaRotaryEmbedding(config)
    theirs.inv_freq = torch.where(theirs.inv_freq < 2 * torch.pi / 100, 0.0, theirs.inv_freq)
    encoding = encode("fope", steps(LENGTH), (100,), causal=True, width=48, theta=theta, sigma=0.0)
    q, k = queries_and_keys(LENGTH, 24)
    cos, sin = theirs(q, torch.arange(LENGTH)[None])
    expected = module.apply_rotary_pos_emb(q, k, cos, sin)
    for ours, other in zip(encoded(encoding, steps(LENGTH)), expected, strict=True):
        agree(ours, other, 2e-5)


def test_gta_of_values_is_rope_of_timm_there_and_back():
    """timm turns neighbouring channels, columns first; the output is turned back by the opposite angles."""
    layers = oracle("timm.layers")
    cat = layers.RotaryEmbeddingCat(12, max_res=0, in_pixels=False, feat_shape=[3, 5], temperature=100.0)
    encoding = encode("gta", cells(3, 5), (3, 5))
    sin, cos = (part.detach() for part in cat.get_embed().chunk(2, -1))
    v, x, state = noise(2, 2, 15, 12, seed=7), noise(2, 15, 24), state_of(encoding, cells(3, 5))
    turned = encoding.value(v, x, state, 0)
    # ours: pairs (c, c + 6), three of rows and three of columns; theirs: pairs (2c, 2c + 1), rows and then columns
    order = [c + 6 * half for c in range(6) for half in range(2)]
    expected = layers.apply_rot_embed(v[..., order], sin, cos)
    agree(turned[..., order], expected)
    agree(encoding.output(turned, turned, x, state, 0), v)
