"""Terms of the logits, whatever the content."""

import math

import pytest
import torch
from torch import nn

from pebench.encodings.alibi import slopes
from pebench.models.resize import resized_state
from tests.encodings.values.helpers import encode, fresh

from .helpers import agree, bias_of, cells, oracle, steps

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12])
def test_alibi_of_x_transformers(heads):
    theirs = oracle("x_transformers.x_transformers").AlibiPositionalBias(heads)
    agree(torch.tensor(slopes(heads)), theirs.slopes.flatten(), 1e-7)
    agree(bias_of(fresh("alibi", heads=heads), steps(301)), theirs(301, 301)[None], 1e-4)


@pytest.mark.parametrize("heads", [2, 6, 12])
def test_alibi_of_bloom(heads):
    """Its bias knows the key alone: the same in every row but for a number, to which softmax is blind."""
    module = oracle("transformers.models.bloom.modeling_bloom")
    theirs = module.build_alibi_tensor(torch.ones(1, 301), heads, torch.float32).expand(-1, 301, -1)
    theirs = theirs - theirs.diagonal(dim1=1, dim2=2).unsqueeze(-1)
    agree(bias_of(fresh("alibi", heads=heads, causal=True), steps(301)).tril(), theirs.tril()[None], 1e-4)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "most"), [(32, 128), (32, 64), (8, 20), (64, 1000)])
def test_t5_buckets_of_both_packages(causal, buckets, most):
    bucket = oracle("transformers.models.t5.modeling_t5").T5Attention._relative_position_bucket
    other = oracle("x_transformers.x_transformers").RelativePositionBias._relative_position_bucket
    offsets = torch.arange(-5000, 5001)
    ours = fresh("t5-bias", causal=causal, num_buckets=buckets, max_distance=most).bucket(offsets.float())
    sizes = {"num_buckets": buckets, "max_distance": most}
    agree(ours, bucket(offsets, bidirectional=not causal, **sizes), 0)
    agree(ours, other(offsets, causal=causal, **sizes), 0)


@pytest.mark.parametrize("causal", [True, False])
def test_t5_bias_of_transformers(causal):
    module = oracle("transformers.models.t5.modeling_t5")
    config = module.T5Config(d_model=24, num_heads=2, d_kv=12, is_decoder=causal)
    theirs = module.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    encoding = encode("t5-bias", steps(301), causal=causal)
    with torch.no_grad():
        theirs.relative_attention_bias.weight.copy_(encoding.table[0])
        agree(bias_of(encoding, steps(301)), theirs.compute_bias(301, 301))


@pytest.mark.parametrize("causal", [True, False])
def test_t5_bias_of_x_transformers(causal):
    """It multiplies the table by sqrt(K)."""
    module = oracle("x_transformers.x_transformers")
    theirs, encoding = (
        module.RelativePositionBias(math.sqrt(12), causal, heads=2),
        encode("t5-bias", steps(301), causal=causal),
    )
    with torch.no_grad():
        theirs.relative_attention_bias.weight.copy_(encoding.table[0] / math.sqrt(12))
        agree(bias_of(encoding, steps(301))[0], theirs(301, 301))


@pytest.mark.parametrize("log_distance", [False, True])
def test_dynamic_bias_of_x_transformers(log_distance):
    """It has SiLU for ReLU, no shift in the first norm, and the query's position minus the key's."""
    theirs = oracle("x_transformers.x_transformers").DynamicPositionBias(
        6, heads=2, depth=2, log_distance=log_distance, norm=True
    )
    theirs.mlp[0][1] = nn.LayerNorm(6)
    theirs.mlp[0][2], theirs.mlp[1][2] = nn.ReLU(), nn.ReLU()
    encoding = encode("dynamic-bias", steps(40), log_distance=log_distance)
    ours, other = encoding.network, [*theirs.mlp[0][:2], *theirs.mlp[1][:2], theirs.mlp[2]]
    with torch.no_grad():
        for n, layer in zip((0, 1, 3, 4, 6), other, strict=True):
            layer.load_state_dict(ours[n].state_dict())
        theirs.mlp[0][0].weight.neg_()
        agree(bias_of(encoding, steps(40))[0], theirs(40, 40))


@pytest.mark.parametrize("layer", [0, 1])
def test_swin_bias_of_timm(layer):
    """Its table begins with the query furthest before the key's opposite: ours is read from the other end."""
    theirs = oracle("timm.layers").RelPosBias((3, 5), 2)
    encoding = encode("swin-bias", cells(3, 5), (3, 5))
    with torch.no_grad():
        theirs.relative_position_bias_table.copy_(encoding.table[layer].flip(0))
        agree(bias_of(encoding, cells(3, 5), layer), theirs.get_bias(), 0)


@pytest.mark.parametrize("size", [(4, 7), (6, 6), (2, 3)])
def test_a_table_of_biases_is_resampled_as_by_timm(size):
    resample = oracle("timm.layers.pos_embed_rel").resize_rel_pos_bias_table_simple
    old, new = (encode("swin-bias", cells(*extent), extent) for extent in ((3, 3), size))
    for layer, table in enumerate(resized_state(old, new, "bicubic")["table"]):
        agree(table, resample(old.table[layer].detach(), size, tuple(new.table[layer].shape)))


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("window", [(3, 5), (8, 1)])
def test_log_cpb_of_timm(layer, window):
    """Its offset is the query's position minus the key's."""
    theirs = oracle("timm.models.swin_transformer_v2").WindowAttention(24, window, 2)
    encoding = encode("log-cpb", cells(*window), window)
    with torch.no_grad():
        theirs.cpb_mlp[0].weight.copy_(-encoding.first[layer])
        theirs.cpb_mlp[0].bias.copy_(encoding.shift[layer])
        theirs.cpb_mlp[2].weight.copy_(encoding.second[layer])
        table = 16 * theirs.cpb_mlp(theirs.relative_coords_table).view(-1, 2).sigmoid()
        expected = table[theirs.relative_position_index].permute(2, 0, 1)
        agree(bias_of(encoding, cells(*window), layer)[0], expected)


@pytest.mark.parametrize("layer", [0, 1])
def test_log_cpb_of_timm_on_a_larger_image(layer):
    """Theirs is given the size it was trained at."""
    theirs = oracle("timm.models.swin_transformer_v2").WindowAttention(24, (6, 9), 2, pretrained_window_size=(3, 5))
    encoding = encode("log-cpb", cells(6, 9), (3, 5))
    with torch.no_grad():
        theirs.cpb_mlp[0].weight.copy_(-encoding.first[layer])
        theirs.cpb_mlp[0].bias.copy_(encoding.shift[layer])
        theirs.cpb_mlp[2].weight.copy_(encoding.second[layer])
        table = 16 * theirs.cpb_mlp(theirs.relative_coords_table).view(-1, 2).sigmoid()
        expected = table[theirs.relative_position_index].permute(2, 0, 1)
        agree(bias_of(encoding, cells(6, 9), layer)[0], expected)
