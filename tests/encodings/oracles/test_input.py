"""Sinusoids, learnable Fourier features and convolutions."""

import math

import pytest
import torch
from torch.nn import functional as F

from pebench.models.resize import resized_state
from tests.encodings.values.helpers import encode, fresh, moved, noise, state_of

from .helpers import agree, blocks, cells, oracle, steps

pytestmark = pytest.mark.oracle


def own_of(extent):
    """What `add` adds, over the sqrt(2) by which ours is louder than everyone's."""
    encoding, positions = fresh("add", extent), steps(*extent) if len(extent) == 1 else cells(*extent)
    return encoding.embed(torch.zeros(1, len(positions), 24), state_of(encoding, positions))[0] / math.sqrt(2)


def test_sinusoid_of_positional_encodings():
    theirs = oracle("positional_encodings.torch_encodings")
    agree(own_of((40,)), theirs.PositionalEncoding1D(24)(torch.zeros(1, 40, 24))[0])


def test_sinusoid_of_positional_encodings_on_a_grid():
    theirs = oracle("positional_encodings.torch_encodings")
    agree(own_of((3, 5)), theirs.PositionalEncoding2D(24)(torch.zeros(1, 3, 5, 24))[0].flatten(0, 1))


def test_sinusoid_of_transformers():
    """RoFormer has all sines first."""
    theirs = oracle("transformers.models.roformer.modeling_roformer").RoFormerSinusoidalPositionalEmbedding(40, 24)
    agree(blocks(own_of((40,))), theirs.create_weight())


def test_sinusoid_of_x_transformers():
    """It has all sines first, and a trained scale."""
    theirs = oracle("x_transformers.x_transformers").ScaledSinusoidalEmbedding(24)
    agree(blocks(own_of((40,))), (theirs(torch.zeros(1, 40, 24)) / theirs.scale).detach())


def test_sinusoid_of_timm_on_a_grid():
    """It has each axis's sines before its cosines."""
    theirs = oracle("timm.layers").build_sincos2d_pos_embed([3, 5], 24, interleave_sin_cos=True)
    agree(blocks(own_of((3, 5)), 2), theirs)


@pytest.mark.parametrize("size", [(4, 7), (6, 8), (2, 3)])
def test_a_learned_table_is_resampled_as_by_timm(size):
    """Antialiased, which is another cubic even where an image grows."""
    layers = oracle("timm.layers")
    old, new = fresh("learned", (3, 5)), fresh("learned", size)
    theirs = layers.resample_abs_pos_embed(old.table[None], [*size], [3, 5], num_prefix_tokens=0)
    agree(resized_state(old, new, "bicubic")["table"], theirs[0].detach())


def test_concat_of_positional_encodings():
    theirs = oracle("positional_encodings.torch_encodings").PositionalEncoding1D(8)(torch.zeros(1, 40, 8))[0]
    for name in ("concat", "concat-wide"):
        encoding = fresh(name, (40,), d_p=8)
        output = encoding.embed(noise(1, 40, encoding.content_width), state_of(encoding, steps(40)))
        agree(output[0, :, -8:] / math.sqrt(2), theirs)


@pytest.mark.parametrize("extent", [(40,), (3, 5)])
def test_learnable_fourier_of_its_package(extent):
    """Its frequencies are drawn with a standard deviation of gamma^-2, where the paper has a variance of that."""
    package = oracle("learnable_fourier_positional_encoding")
    positions = steps(*extent) if len(extent) == 1 else cells(*extent)
    encoding = encode("learnable-fourier", positions, extent, gamma=2.0)
    theirs = package.LearnableFourierPositionalEncoding(1, len(extent), 24, 32, 24, 2.0)
    with torch.no_grad():
        theirs.Wr.weight.copy_(encoding.frequencies)
        for layer, other in ((encoding.first, theirs.mlp[0]), (encoding.second, theirs.mlp[2])):
            other.weight.copy_(layer.weight)
            other.bias.copy_(layer.bias)
        output = encoding.embed(torch.zeros(1, len(positions), 24), state_of(encoding, positions))[0]
        agree(output, theirs(torch.tensor(positions).unsqueeze(1)))


def test_cpe_of_timm():
    theirs = oracle("timm.models.twins").PosConv(24, 24)
    encoding, content = encode("cpe", cells(3, 5), (3, 5)), noise(2, 15, 24)
    with torch.no_grad():
        theirs.proj[0].weight.copy_(encoding.weight.T.view(24, 1, 3, 3))
        theirs.proj[0].bias.copy_(encoding.shift)
        agree(encoding.residual(content, None, state_of(encoding, cells(3, 5)), 1), theirs(content, (3, 5)))


@pytest.mark.parametrize("causal", [True, False])
def test_cpe_of_a_convolution_over_text(causal):
    encoding, content = encode("cpe", steps(9), causal=causal), noise(2, 9, 24)
    padded = F.pad(content.mT, (2, 0) if causal else (1, 1))
    theirs = content + F.conv1d(padded, encoding.weight.T.unsqueeze(1), encoding.shift, groups=24).mT
    agree(encoding.residual(content, None, state_of(encoding, steps(9)), 1).detach(), theirs.detach())


def test_a_scale_that_a_package_trains_is_ours_to_choose():
    """x-transformers begins with D^-0.5 and trains it: `ratio` says the same of ours, and stays."""
    theirs = oracle("x_transformers.x_transformers").ScaledSinusoidalEmbedding(24)
    encoding = moved(fresh("add", (40,), ratio=float(theirs.scale.detach()) / math.sqrt(2)))
    ours = encoding.embed(torch.zeros(1, 40, 24), state_of(encoding, steps(40)))[0]
    agree(blocks(ours), theirs(torch.zeros(1, 40, 24)).detach())
