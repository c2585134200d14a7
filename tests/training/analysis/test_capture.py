"""A capture holds what a model computes, and splits what enters into content and position."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from lightning import seed_everything

from pebench.data import datamodule
from pebench.models import ViT
from pebench.training.analysis.capture import capture
from tests.training.analysis.models import LENGTH, WIDTH, batch, captured, captured_padded, model


def test_the_layers_are_those_of_a_forward_pass() -> None:
    seen = captured("learned")
    tokens, _ = batch()
    trunk = seen.module.trunk
    with torch.no_grad():
        x = trunk.encoding.embed(seen.module.input(tokens), trunk.encoding.state(torch.arange(LENGTH)[:, None]))
        assert torch.equal(seen.layers[0].x, x)
        for layer in seen.layers:
            assert torch.equal(layer.x, x)
            x = layer.block(x, trunk.encoding, layer.state, layer.masks)
        assert torch.equal(seen.output, x)
        assert torch.allclose(seen.module.head(trunk.norm(seen.output)), seen.module(tokens), atol=1e-5)
    assert len(list(seen.vectors())) == 3
    assert torch.equal(seen.tokens, tokens)


@pytest.mark.parametrize(
    "encoding", ["add", "learned", "concat", "random", "concat-proj", "add-proj", "add-every-layer"]
)
def test_content_and_position_add_up_to_what_enters(encoding: str) -> None:
    seen = captured(encoding)
    assert seen.additive
    assert seen.position is not None
    torch.testing.assert_close(seen.content + seen.position, seen.layers[0].x)
    first, second = (seen.tokens == 3).nonzero()[:2]  # the same token at two positions
    torch.testing.assert_close(seen.content[tuple(first)], seen.content[tuple(second)])


@pytest.mark.parametrize("encoding", ["none", "rope", "alibi", "concat-qk"])
def test_an_encoding_that_leaves_the_input_alone_has_no_position_there(encoding: str) -> None:
    seen = captured(encoding)
    assert (seen.position, seen.additive) == (None, True)
    assert torch.equal(seen.content, seen.layers[0].x)


def test_tokens_that_a_convolution_mixes_are_no_sum() -> None:
    seen = captured("cpe", num_layers=1)
    assert (seen.position, seen.additive) == (None, False)
    assert torch.equal(seen.content, seen.layers[0].x)


def test_a_product_is_no_sum() -> None:
    seen = captured("multiply")
    assert (seen.position, seen.additive) == (None, False)


def test_concatenated_content_and_position_have_channels_of_their_own() -> None:
    seen = captured("concat")
    quarter = WIDTH // 4
    assert seen.position is not None
    assert not seen.content[..., -quarter:].any()
    assert not seen.position[:, :-quarter].any()


def test_examples_are_the_same_for_every_model() -> None:
    data = datamodule("vit-digits")
    data.model_arguments()
    seed_everything(1, verbose=False)
    first = capture(ViT("add", **data.model_arguments(), d_model=16, num_layers=1, num_heads=2), data, tokens=160)
    second = capture(ViT("rope", **data.model_arguments(), d_model=16, num_layers=1, num_heads=2), data, tokens=160)
    assert len(first.valid) == 10
    assert torch.equal(first.batch[0], second.batch[0])
    assert first.tokens is None
    assert not torch.equal(first.batch[0][first.fit], first.batch[0][first.held_out])


def test_too_few_examples_are_refused() -> None:
    three = SimpleNamespace(split=lambda name: (range(3), None))
    with pytest.raises(ValueError, match="expected 4 validation examples or more, got 3"):
        capture(model("add"), three)


def test_padding_is_no_part_of_a_mean() -> None:
    seen = captured("rope")
    valid = torch.ones(seen.valid.shape, dtype=torch.bool)
    valid[::2, LENGTH // 2 :] = False
    loud = [replace(layer, x=torch.where(valid[..., None], layer.x, 1e3)) for layer in seen.layers]
    parts = replace(seen, valid=valid, layers=tuple(loud)).parts[1]
    kept, given = seen.layers[1].x[: len(valid) // 2], valid[: len(valid) // 2]
    constant = kept[given].mean(0)
    torch.testing.assert_close(parts.constant, constant)
    for place in (0, LENGTH - 1):
        torch.testing.assert_close(parts.position[place], kept[given[:, place], place].mean(0) - constant)


def test_a_position_that_no_fitted_example_has_is_no_part_of_position() -> None:
    seen = captured("rope")
    valid = torch.ones(seen.valid.shape, dtype=torch.bool)
    valid[seen.fit, -1] = False
    position = replace(seen, valid=valid).parts[1].position
    assert not position[-1].any()
    assert position[:-1].any(1).all()


def test_what_is_added_at_the_input_has_no_mean_over_tokens() -> None:
    seen = captured_padded("learned")
    counts = seen.valid[seen.fit].sum(0)
    position = seen.parts[0].position
    assert counts[0] > counts[-1]  # late positions have fewer tokens
    torch.testing.assert_close((position * counts[:, None]).sum(0), torch.zeros(WIDTH), atol=1e-5, rtol=0)
    torch.testing.assert_close(position - position[0], seen.position - seen.position[0])


def test_shuffling_leaves_padding_in_place() -> None:
    seen = captured_padded("add")
    order, valid = seen.shuffled, seen.valid[seen.held_out]
    assert all(sorted(row.tolist()) == list(range(LENGTH)) for row in order)
    for row, real in zip(order, valid, strict=True):
        length = int(real.sum())
        assert sorted(row[:length].tolist()) == list(range(length))
        assert row[length:].tolist() == list(range(length, LENGTH))
    whole = valid.all(1)
    assert whole.any()
    usual = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(0))
    assert torch.equal(order[whole], usual.expand(int(whole.sum()), -1))


def test_the_model_is_left_without_hooks() -> None:
    made = captured("add").module
    assert not any(module._forward_pre_hooks for module in made.modules())
    assert model("add").training is False
