"""A swapped model is a model: it trains, is copied, kept and loaded; what cannot be swapped is told by name."""

import ast
import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pebench.adapters
from pebench import EncodingSpec, PositionalEncoding, swap
from pebench.errors import UserError

from .models import gpt2, images, llama, tokens, vit

MODELS = [pytest.param(make, id=make.__name__) for make in (gpt2, llama, vit)]


def loss_of(model: Any) -> Tensor:
    if type(model).__name__ == "VisionTransformer":
        return nn.functional.cross_entropy(model(images(5)), torch.arange(5))
    loss: Tensor = model(tokens(), labels=tokens()).loss
    return loss


def output_of(model: Any) -> Tensor:
    found = model(images()) if type(model).__name__ == "VisionTransformer" else model(tokens()).logits
    return found.detach()


@pytest.mark.parametrize("make", MODELS)
def test_twenty_steps_lower_the_loss_and_move_the_encoding(make: Callable[..., Any]) -> None:
    model = swap(make(), "stack(first='learned(ratio=0.5)',second=shaw)").train()
    own = {name: p.detach().clone() for name, p in model.named_parameters() if "position.encoding" in name}
    assert len(own) >= 2
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(20):
        losses.append(loss_of(model))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.7 * losses[0]
    now = dict(model.named_parameters())
    assert all(not torch.equal(now[name], before) for name, before in own.items())


@pytest.mark.parametrize("make", MODELS)
def test_a_swapped_model_is_copied_kept_and_loaded(make: Callable[..., Any]) -> None:
    model = swap(make(), "gated-add")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    expected = output_of(model)
    assert torch.equal(output_of(copy.deepcopy(model)), expected)
    file = io.BytesIO()
    torch.save(model, file)
    assert torch.equal(output_of(torch.load(io.BytesIO(file.getvalue()), weights_only=False)), expected)
    other = swap(make(), "gated-add")
    assert not torch.equal(output_of(other), expected)
    other.load_state_dict(model.state_dict())
    assert torch.equal(output_of(other), expected)


@pytest.mark.parametrize("make", MODELS)
def test_a_copy_is_independent(make: Callable[..., Any]) -> None:
    model = swap(make(), "learned")
    expected, other = output_of(model), copy.deepcopy(model)
    swap(other, "none")
    assert not torch.equal(output_of(other), expected)
    assert torch.equal(output_of(model), expected)


@pytest.mark.parametrize("make", MODELS)
def test_the_last_swap_counts(make: Callable[..., Any]) -> None:
    model = make()
    for name in ("learned", "add", "rope(theta=50.0)", "alibi"):
        swap(model, name)
    assert not [name for name, _ in model.named_parameters() if "position" in name]
    torch.testing.assert_close(output_of(model), output_of(swap(make_with_folded_rows(make), "alibi")))


def make_with_folded_rows(make: Callable[..., Any]) -> Any:
    """The class token keeps its row of the table at the first swap alone."""
    return swap(make(), "none") if make is vit else make()


@pytest.mark.parametrize("make", MODELS)
def test_a_model_of_16_bit_stays_one(make: Callable[..., Any]) -> None:
    model = swap(make().bfloat16(), "stack(first=add,second=shaw)")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    inputs = images().bfloat16() if make is vit else tokens()
    found = model(inputs)
    found = found if make is vit else found.logits
    assert found.dtype == torch.bfloat16
    assert found.isfinite().all()


@pytest.mark.parametrize(
    ("model", "encoding", "message"),
    [
        (lambda: nn.Linear(2, 2), "alibi", "with one GPT2Model, LlamaModel, VisionTransformer in it, got Linear"),
        (gpt2, "concat", "'concat' needs a model that embeds tokens in 24 channels, got one of 32"),
        (gpt2, "alibo", "unknown encoding 'alibo'. Did you mean 'alibi'"),
        (gpt2, "rope(theta=-1.0)", "cannot have the encoding: theta of encoding 'rope' must be positive"),
        (llama, "rope(pairing=pairs)", "must be halves or neighbours, got 'pairs'"),
        (vit, "path", "this model cannot have the encoding: encoding 'path' serves 1 position axes, got 2"),
    ],
    ids=["model", "width", "name", "option", "choice", "axes"],
)
def test_what_cannot_be_swapped_is_told_and_the_model_left_alone(
    model: Callable[[], Any], encoding: str, message: str
) -> None:
    made = model()
    names = list(made.state_dict())
    with pytest.raises(UserError, match=message):
        swap(made, encoding)
    assert list(made.state_dict()) == names


def test_neither_library_is_imported_at_the_top_of_a_file() -> None:
    """Only what is handed over needs one of them, and has imported it."""
    for path in Path(pebench.adapters.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"timm", "transformers"}, path.name


class Listening(PositionalEncoding):
    """Keeps what its hooks are given, and changes nothing but the stream."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.heard: list[tuple[str, int, tuple[Tensor, ...]]] = []

    def embed(self, x: Tensor, state: Any) -> Tensor:
        self.heard.append(("embed", -1, (x,)))
        return x

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        self.heard.append(("residual", layer, (x,)))
        return x + layer * x.roll(1, dims=-1)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        self.heard.append(("query_key", layer, (q, k, x)))
        return q, k

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> None:
        self.heard.append(("bias", layer, (q, k, x)))


def projections(model: Any, layer: int, x: Tensor) -> Tensor:
    """Return queries and keys of normalised input (B, L, D), as the model's own weights make them: (B, L, 2D)."""
    if type(model).__name__ == "VisionTransformer":
        return model.blocks[layer].attn.qkv(x)[..., :64]
    if type(model).__name__ == "GPT2LMHeadModel":
        return model.transformer.h[layer].attn.c_attn(x)[..., :64]
    layer_of_llama = model.model.layers[layer].self_attn
    keys = layer_of_llama.k_proj(x).unflatten(-1, (2, 1, 8)).expand(-1, -1, -1, 2, -1).flatten(2)
    return torch.cat((layer_of_llama.q_proj(x), keys), dim=-1)


@pytest.mark.parametrize("make", MODELS)
def test_hooks_are_called_in_order_and_given_what_the_interface_says(make: Callable[..., Any]) -> None:
    model = swap(make(), Listening)
    before = output_of(swap(copy.deepcopy(model), "none"))
    found = output_of(model)
    assert not torch.allclose(found, before, atol=1e-3)  # the model goes on with what a hook returned
    (encoding,) = [module for module in model.modules() if isinstance(module, Listening)]
    calls = [("residual", 0), ("query_key", 0), ("bias", 0), ("residual", 1), ("query_key", 1), ("bias", 1)]
    assert [(name, layer) for name, layer, _ in encoding.heard] == [("embed", -1), *calls]
    for name, layer, given in encoding.heard:
        if name in ("embed", "residual"):
            assert given[0].shape == (3, 12, 32)
        else:
            q, k, x = given
            assert q.shape == k.shape == (3, 4, 12, 8)
            whole = torch.cat((q.transpose(1, 2).flatten(2), k.transpose(1, 2).flatten(2)), dim=-1)
            torch.testing.assert_close(whole, projections(model, layer, x))


def test_a_copy_can_be_made_behind_a_pass_with_a_graph() -> None:
    model = swap(vit(), "gated-add(table=learned)")
    expected = model(images())
    assert model.position.given.state.requires_grad
    assert torch.equal(copy.deepcopy(model)(images()), expected)
