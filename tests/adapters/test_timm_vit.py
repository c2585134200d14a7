"""timm's vision transformer: with its learned table it is as before, and hooks see the patches alone."""

import copy
import pickle
from typing import Any

import pytest
import torch

from pebench import swap
from pebench.errors import UserError

from .models import images, vit

SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"reg_tokens": 0},
    "registers": {"reg_tokens": 2},
    "rows of patches alone": {"no_embed_class": True},
    "no class token": {"class_token": False, "global_pool": "avg", "reg_tokens": 0},
    "norms": {"qk_norm": True, "scale_attn_norm": True, "pre_norm": True, "init_values": 0.1},
    "any size": {"dynamic_img_size": True},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_a_model_keeps_its_outputs_with_its_learned_table(changes: dict[str, Any]) -> None:
    model = vit(**changes)
    ours = swap(copy.deepcopy(model), "learned")
    theirs = model(images())
    assert theirs.std() > 0.05
    torch.testing.assert_close(ours(images()), theirs, atol=2e-5, rtol=1e-5)
    without = swap(ours, "none")(images())
    assert (without - theirs).abs().max() > 0.01
    # no position: patches in another order change nothing
    blocks = images().unflatten(2, (3, 4)).unflatten(4, (4, 4))[:, :, [2, 0, 1]][:, :, :, :, [1, 3, 0, 2]]
    torch.testing.assert_close(ours(blocks.flatten(4).flatten(2, 3)), without, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["rope", "alibi", "concat-qk", "cpe", "add"])
def test_class_token_and_registers_have_no_position(name: str) -> None:
    model = swap(vit(), name)
    (layer, _), x = (block.attn for block in model.blocks), torch.randn(2, 14, 32)
    model(images())
    given = model.position.given
    q = layer.qkv(x).unflatten(-1, (3, 4, -1))[:, :, 0].transpose(1, 2)
    queries, keys, bias = layer._hooked(q, q, x, given)
    assert torch.equal(queries[:, :, :2, :8], q[:, :, :2])
    assert torch.equal(keys[:, :, :2, :8], q[:, :, :2])
    if bias is not None:
        assert bias.shape[-2:] == (14, 14)
        assert bias[..., :2, :].eq(0).all()
        assert bias[..., :2].eq(0).all()
        assert bias[..., 2:, 2:].ne(0).any()
    streams: list[torch.Tensor] = []
    for block in model.blocks:
        block.norm1.register_forward_hook(lambda norm, args, output: streams.append(args[0]))
    without = swap(copy.deepcopy(model), "none")
    model(images())
    without(images())
    assert torch.equal(streams[0][:, :2], streams[2][:, :2])
    assert torch.equal(streams[0], streams[2]) is (name != "add")


def test_a_model_of_any_size_has_the_grid_of_the_image() -> None:
    model = swap(vit(dynamic_img_size=True), "alibi")
    assert model(torch.randn(1, 3, 20, 12)).isfinite().all()
    assert model.position.given.length == 15


def test_dropout_of_input_and_weights_is_kept() -> None:
    for where in ("pos_drop_rate", "attn_drop_rate"):
        model = swap(vit(**{where: 0.5}), "none").train()
        assert not torch.equal(model(images()), model(images())), where
        assert torch.equal(model.eval()(images()), model(images())), where


def test_features_and_checkpointed_activations_are_served() -> None:
    model = swap(vit(), "stack(first=learned,second=alibi)")
    features = model.forward_features(images())
    found = model.forward_intermediates(images(), indices=[1], norm=True, intermediates_only=True)
    torch.testing.assert_close(found[0].flatten(2).mT, features[:, 2:])
    grads = []
    for checkpointed in (False, True):
        model.set_grad_checkpointing(checkpointed)
        model.zero_grad()
        model.train()(images()).square().sum().backward()
        grads.append([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch_drop_rate": 0.5}, "all patches of an image"),
        ({"attn_layer": "diff"}, "timm's class Attention in every block, got timm.layers.diff_attention.DiffAttention"),
        ({"block_fn": "ParallelScalingBlock"}, "timm's class Attention in every block, got builtins.NoneType"),
    ],
    ids=["patch_drop", "attention", "block"],
)
def test_a_model_that_hooks_cannot_be_placed_in_is_refused(changes: dict[str, Any], message: str) -> None:
    if "block_fn" in changes:
        import timm.models.vision_transformer as module

        changes = {"block_fn": module.ParallelScalingBlock}
    with pytest.raises(UserError, match=message):
        swap(vit(**changes), "alibi")


def test_other_ways_of_adding_positions_are_refused() -> None:
    vit()  # skips where timm is missing
    from timm.models.deit import VisionTransformerDistilled

    model = VisionTransformerDistilled(img_size=8, patch_size=4, embed_dim=32, depth=1, num_heads=4)
    with pytest.raises(UserError, match="got that of VisionTransformerDistilled"):
        swap(model, "alibi")
    with pytest.raises(UserError, match="max_len is for texts"):
        swap(vit(), "alibi", max_len=3)
    with pytest.raises(UserError, match="expected no attention mask"):
        swap(vit(), "alibi")(images(), is_causal=True)


def _groups(model: Any, **options: Any) -> dict[str, tuple[float, float]]:
    """The weight decay and the scale of the learning rate of each parameter, by name."""
    optimizer = pytest.importorskip("timm.optim").create_optimizer_v2(
        model, opt="adamw", lr=1.0, weight_decay=0.1, **options
    )
    names = {parameter: name for name, parameter in model.named_parameters()}
    return {
        names[parameter]: (group["weight_decay"], group.get("lr_scale", 1.0))
        for group in optimizer.param_groups
        for parameter in group["params"]
    }


@pytest.mark.parametrize("options", [{}, {"layer_decay": 0.5}])
def test_optimizers_of_timm_treat_an_encoding_as_the_models_own_table(options: dict[str, Any]) -> None:
    plain = _groups(vit(), **options)
    learned = _groups(swap(vit(), "learned"), **options)
    assert learned.pop("position.encoding.table") == plain.pop("pos_embed")
    assert learned == plain
    copied = copy.deepcopy(swap(swap(vit(), "learned"), "t5-bias"))
    found = _groups(pickle.loads(pickle.dumps(copied)), **options)
    own = {name: group for name, group in found.items() if name.startswith("position.")}
    assert {decay for decay, _ in own.values()} == {0.0}
