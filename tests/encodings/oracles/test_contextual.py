"""Terms of the logits that depend on the content."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.encodings.values.helpers import encode, noise

from .helpers import agree, bias_of, blocks, cells, encoded, oracle, queries_and_keys, steps

pytestmark = pytest.mark.oracle

LENGTH = 40


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("clip", [16, 3])
def test_shaw_of_transformers(layer, clip):
    module = oracle("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    encoding = encode("shaw", steps(LENGTH), clip=clip)
    attention = SimpleNamespace(
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        distance_embedding=nn.Embedding.from_pretrained(encoding.table[layer, 0].detach()),
        scaling=12**-0.5,
    )
    _, theirs = module._apply_relative_key_position_encoding(attention, *queries_and_keys(LENGTH))
    agree(bias_of(encoding, steps(LENGTH), layer), theirs)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_transformer_xl_of_xlnet(layer, bidirectional):
    """XLNet has all sines first, and they are not scaled; it returns weights after softmax."""
    module = oracle("transformers.models.xlnet.modeling_xlnet")
    config = module.XLNetConfig(
        vocab_size=2,
        d_model=24,
        n_head=2,
        n_layer=1,
        d_inner=24,
        dropout=0.0,
        attn_type="bi" if bidirectional else "uni",
    )
    model, encoding = (
        module.XLNetModel(config).eval(),
        encode("transformer-xl", steps(LENGTH), causal=not bidirectional),
    )
    attention = model.layer[0].rel_attn
    with torch.no_grad():
        attention.r_w_bias.copy_(encoding.u[layer, :, 0])
        attention.r_r_bias.copy_(encoding.v[layer, :, 0])
        attention.r.copy_((math.sqrt(2) * blocks(encoding.projection[layer])).T.reshape(24, 2, 12))
        waves = model.relative_positional_encoding(LENGTH, LENGTH, bsz=2)
        keys = torch.einsum("ibh,hnd->ibnd", waves, attention.r)
        q, k = queries_and_keys(LENGTH)
        masked = torch.ones(LENGTH, LENGTH).triu(1)[..., None, None] if not bidirectional else None
        heads = [x.permute(2, 0, 1, 3) for x in (q, k)]
        _, theirs = attention.rel_attn_core(
            heads[0], heads[1], heads[1], keys, attn_mask=masked, output_attentions=True
        )
    logits = q @ k.mT * 12**-0.5 + bias_of(encoding, steps(LENGTH), layer)
    if not bidirectional:
        logits = logits.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -1e30)
    agree(logits.softmax(dim=-1).permute(2, 3, 0, 1), theirs)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("clip", [64, LENGTH, 5])
def test_deberta_of_transformers(layer, clip):
    """It, as the authors' code, has the query's position minus the key's in the last term too, unlike the paper."""
    module = oracle("transformers.models.deberta_v2.modeling_deberta_v2")
    config = module.DebertaV2Config(
        hidden_size=24,
        num_attention_heads=2,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        share_att_key=False,
        position_buckets=-1,
        max_relative_positions=clip,
        hidden_dropout_prob=0.0,
    )
    theirs, encoding = (
        module.DisentangledSelfAttention(config).eval(),
        encode("deberta", steps(LENGTH), (LENGTH,), clip=clip),
    )
    q, k = queries_and_keys(LENGTH)
    with torch.no_grad():
        for projection, weight in ((theirs.pos_key_proj, encoding.keys), (theirs.pos_query_proj, encoding.queries)):
            projection.weight.copy_(weight[layer])
            projection.bias.zero_()
        expected, distance = q @ k.mT / math.sqrt(3 * 12), torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
        for term, its_distance in (("c2p", distance), ("p2c", -distance)):
            theirs.pos_att_type = [term]
            both = q.flatten(0, 1), k.flatten(0, 1)
            bias = theirs.disentangled_attention_bias(*both, its_distance, encoding.table, 3)
            expected = expected + bias.view(2, 2, LENGTH, LENGTH)
        ours_q, ours_k = encoded(encoding, steps(LENGTH), layer)
        state = encoding.prepare(torch.tensor(steps(LENGTH)))
        ours = ours_q @ ours_k.mT * 12**-0.5 + encoding.bias(ours_q, ours_k, q, state, layer)
    agree(ours, expected)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("most", [64, 5])
def test_cope_of_x_transformers(layer, most):
    theirs = oracle("x_transformers.x_transformers").CoPE(12, 2, most)
    encoding = encode("cope", steps(LENGTH), causal=True, most=most)
    q, k = queries_and_keys(LENGTH)
    logits = (q @ k.mT * 12**-0.5).masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -1e30)
    with torch.no_grad():
        theirs.pos_emb.copy_(encoding.table[layer])
        agree(bias_of(encoding, steps(LENGTH), layer).tril(), theirs(q, logits).tril())


@pytest.mark.parametrize("layer", [0, 1])
def test_fox_of_x_transformers(layer):
    """There it is called data-dependent ALiBi, and begins with b = 5."""
    theirs = oracle("x_transformers.x_transformers").DataDependentAlibi(24, 2)
    encoding = encode("fox", steps(LENGTH), causal=True)
    with torch.no_grad():
        theirs.to_forget_gates[0].weight.copy_(encoding.weight[layer])
        theirs.to_forget_gates[0].bias.copy_(encoding.shift[layer])
        agree(bias_of(encoding, steps(LENGTH), layer).tril(), theirs(noise(2, LENGTH, 24)).tril(), 2e-5)


@pytest.mark.parametrize("positions", [steps(9), cells(3, 3)], ids=["text", "grid"])
@pytest.mark.parametrize("name", ["tupe", "concat-qk"])
def test_concatenation_is_attention_with_a_bias(name, positions):
    """No package has it; PyTorch's attention, given position as a bias, gives the same as queries that hold it."""
    encoding, v = encode(name, positions, (9,) if len(positions[0]) == 1 else (3, 3)), noise(2, 2, 9, 12, seed=7)
    q, k = queries_and_keys(9)
    wide_q, wide_k = encoded(encoding, positions)
    bias = (wide_q[..., 12:] @ wide_k[..., 12:].mT) * 12**-0.5
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=(2 * 12) ** -0.5)
    agree(F.scaled_dot_product_attention(wide_q, wide_k, v, scale=12**-0.5).detach(), theirs.detach())
