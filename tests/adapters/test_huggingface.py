"""GPT-2 and Llama of transformers: with what they ship with they are as before, whatever batch they are given."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pebench import swap
from pebench.errors import UserError

from .models import LENGTH, TOKENS, gpt2, llama, tokens


def close(ours: Tensor, theirs: Tensor) -> None:
    assert theirs.std() > 0.1
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-5)


def padded() -> dict[str, Tensor]:
    """A batch whose first row is padded left and whose second one right, with the positions that `generate` gives."""
    mask = torch.ones(3, LENGTH, dtype=torch.long)
    mask[0, :4], mask[1, -5:] = 0, 0
    return {"attention_mask": mask, "position_ids": (mask.cumsum(dim=1) - 1).clamp(min=0)}


@pytest.mark.parametrize(("make", "name"), [(gpt2, "learned"), (llama, "rope")])
def test_a_model_keeps_its_outputs_with_what_it_ships_with(make: Any, name: str) -> None:
    model = make()
    ours = swap(copy.deepcopy(model), name)
    batch = tokens()
    close(ours(batch).logits, model(batch).logits)
    close(ours(tokens(1, 5)).logits, model(tokens(1, 5)).logits)
    real = padded()["attention_mask"].bool()
    theirs = model(batch, **padded()).logits[real]
    close(ours(batch, **padded()).logits[real], theirs)
    # numbers of positions are for absolute encodings: without them each row is numbered from its first token
    close(ours(batch, attention_mask=padded()["attention_mask"]).logits[real], theirs)
    embedded = model.get_input_embeddings()(batch)
    close(ours(inputs_embeds=embedded).logits, model(inputs_embeds=embedded).logits)


@pytest.mark.parametrize("scale", [{"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True}])
def test_a_model_keeps_its_own_scale_of_logits(scale: dict[str, bool]) -> None:
    model = gpt2(**scale)
    close(swap(copy.deepcopy(model), "learned")(tokens()).logits, model(tokens()).logits)


@pytest.mark.parametrize(("make", "name"), [(gpt2, "learned"), (llama, "rope")])
def test_rows_of_several_texts_and_shifted_rows_are_as_before(make: Any, name: str) -> None:
    model = make()
    ours = swap(copy.deepcopy(model), name)
    packed = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2], [*range(3, 15)]])
    batch = tokens(2)
    # with a cache transformers lets these texts see each other
    close(ours(batch, position_ids=packed).logits, model(batch, position_ids=packed, use_cache=False).logits)


@pytest.mark.parametrize(("make", "name"), [(gpt2, "learned"), (llama, "rope")])
def test_generation_needs_no_cache(make: Any, name: str) -> None:
    model = make()
    ours = swap(copy.deepcopy(model), name)
    mask = torch.ones(2, 6, dtype=torch.long)
    mask[0, :2] = 0
    options: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    found = [each.generate(tokens(2, 6), **options) for each in (ours, model)]
    assert found[0].shape == (2, 11)
    assert torch.equal(*found)


def test_both_layouts_of_rotations_are_served() -> None:
    model = llama()
    neighbours = copy.deepcopy(model)
    for layer in neighbours.model.layers:
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            # rows of a head: (2, K/2) in halves, (K/2, 2) in neighbours, as Meta and GPT-J store them
            halves = projection.weight.data.unflatten(0, (-1, 2, 4))
            projection.weight.data = halves.transpose(1, 2).flatten(0, 2)
    batch, expected = tokens(), model(tokens()).logits
    assert (neighbours(batch).logits - expected).abs().max() > 0.1
    close(swap(neighbours, "rope(pairing=neighbours)")(batch).logits, expected)


SCALED: dict[str, dict[str, Any]] = {
    "linear": {"factor": 3.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 8},
}


@pytest.mark.parametrize("kind", SCALED)
def test_scaled_rotations_are_kept(kind: str) -> None:
    model = llama(rope_parameters={"rope_type": kind, "rope_theta": 500.0} | SCALED[kind])
    expected = model(tokens()).logits
    assert (llama()(tokens()).logits - expected).abs().max() > 0.1
    ours = swap(model, "rope")
    close(ours(tokens()).logits, expected)
    close(copy.deepcopy(ours)(tokens()).logits, expected)


def test_rotations_that_depend_on_the_text_are_refused() -> None:
    model = llama(rope_parameters={"rope_type": "dynamic", "rope_theta": 500.0, "factor": 2.0})
    with pytest.raises(UserError, match="same in texts of any length, got rope_type = 'dynamic'"):
        swap(model, "rope")
    swap(model, "rope(theta=500.0)")


def test_what_a_model_ships_with_is_turned_off() -> None:
    batch = tokens()
    for make, depth, own in ((gpt2, "n_layer", "learned"), (llama, "num_hidden_layers", "rope")):
        model = swap(make(**{depth: 1}), own)  # of one layer: causal masks of two give an order
        with_positions = model(batch).logits
        without = swap(model, "none")(batch).logits
        assert (with_positions - without).abs().max() > 0.1
        # no position: the last token sees the same set of tokens before it, in whatever order
        order = torch.cat((torch.randperm(LENGTH - 1), torch.tensor([LENGTH - 1])))
        close(model(batch[:, order]).logits[:, -1], without[:, -1])
        assert (swap(model, own)(batch).logits - without).abs().max() > 0.05  # and positions again


def test_a_user_s_base_is_taken_and_the_model_s_table_is_not_drawn_anew() -> None:
    batch, model = tokens(), llama()
    expected = llama(rope_parameters={"rope_type": "default", "rope_theta": 40.0})(batch).logits
    close(swap(model, "rope(theta=40.0)")(batch).logits, expected)
    assert (swap(llama(), "rope")(batch).logits - expected).abs().max() > 0.01
    drawn, kept = (swap(gpt2(), name).transformer.position.encoding for name in ("learned(ratio=0.5)", "learned"))
    torch.testing.assert_close(kept.table.data, gpt2().transformer.wpe.weight.data)
    assert not torch.allclose(drawn.table * drawn.pace, kept.table * kept.pace, atol=0.1)


def test_position_is_as_loud_as_content() -> None:
    """An encoding's `ratio` is relative to content, whose root mean square is not 1 in these models."""
    model = gpt2()
    quiet = model.transformer.wte.weight.detach() * 0.02
    model.transformer.wte.weight.data = quiet
    heard: list[Tensor] = []
    swap(model, "add(ratio=2.0)").transformer.drop.register_forward_hook(lambda *given: heard.append(given[-1]))
    model(tokens())
    position = heard[0] - quiet[tokens()]
    rms = [x.square().mean().sqrt().item() for x in (position, quiet)]
    assert rms[0] == pytest.approx(2 * rms[1], rel=1e-4)


def test_checkpointed_activations_find_their_own_pass() -> None:
    grads = []
    for checkpointed in (False, True):
        model = swap(gpt2(), "stack(first=learned,second=cpe)").train()
        if checkpointed:
            model.activation_checkpointing_enable()
        loss = model(tokens(), attention_mask=padded()["attention_mask"], labels=tokens()).loss
        model(tokens(2, 5))  # another pass, before the first one's activations are computed again
        loss.backward()
        grads.append({name: parameter.grad for name, parameter in model.named_parameters()})
    for name, grad in grads[0].items():
        torch.testing.assert_close(grads[1][name], grad, msg=name)


def test_dropout_of_attention_weights_is_kept() -> None:
    model = swap(gpt2(attn_pdrop=0.5), "alibi").train()
    assert not torch.equal(model(tokens()).logits, model(tokens()).logits)
    assert torch.equal(model.eval()(tokens()).logits, model(tokens()).logits)


def test_other_models_of_the_same_configuration_are_left_alone() -> None:
    model = gpt2()
    other = type(model)(model.config).eval()
    before = other(tokens()).logits
    swap(model, "alibi")
    assert other.config is not model.config
    assert model.config is model.transformer.config is model.transformer.h[0].attn.config
    assert torch.equal(other(tokens()).logits, before)


def test_a_model_inside_of_a_model_is_found() -> None:
    whole = nn.ModuleDict({"left": llama().model, "head": nn.Linear(32, TOKENS)})
    assert swap(whole, "alibi") is whole
    assert type(whole["left"].position.encoding).__name__ == "AlibiEncoding"
    whole["right"] = gpt2()
    with pytest.raises(UserError, match="ModuleDict with 2 of them"):
        swap(whole, "alibi")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"use_cache": True}, "a swapped model keeps no KV cache: call it with use_cache=False"),
        ({"output_attentions": True}, "expected output_attentions=False"),
        ({"attention_mask": torch.ones(3, 1, LENGTH, LENGTH)}, r"attention_mask of shape \(3, 12\)"),
        ({"input_ids": tokens().view(1, 3, LENGTH)}, r"two dimensions \(rows, tokens\), got \(1, 3, 12\)"),
    ],
    ids=["cache", "weights", "mask", "shape"],
)
def test_a_batch_that_hooks_cannot_serve_is_refused(call: dict[str, Any], message: str) -> None:
    model = swap(gpt2(), "alibi")
    with pytest.raises(UserError, match=message):
        model(**{"input_ids": tokens()} | call)


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (gpt2, {"add_cross_attention": True}, "without cross-attention"),
        (llama, {"head_dim": 16}, "got 4 heads of 16"),
        (llama, {"is_causal": False}, "expected a causal model"),
    ],
    ids=["cross-attention", "heads", "bidirectional"],
)
def test_a_model_that_hooks_cannot_be_placed_in_is_refused(make: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        swap(make(**changes), "alibi")


def test_a_table_longer_than_the_model_s_own_is_refused() -> None:
    with pytest.raises(UserError, match="at most 16, the rows of the model's own table, got 17"):
        swap(gpt2(), "learned", max_len=17)
    encoding = swap(gpt2(), "learned", max_len=9).transformer.position.encoding
    assert torch.equal(encoding.table, gpt2().transformer.wpe.weight[:9])
