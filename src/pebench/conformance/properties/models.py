"""Properties of whole models with an encoding, and of compiled hooks."""

from typing import Any

import torch
from torch import Tensor

from pebench.conformance.bench import DEFAULTS, Bench, default_dtype, noise, perturbed
from pebench.conformance.comparisons import require, require_same
from pebench.conformance.properties.base import encoding_property
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.attention import Masks
from pebench.models.base import SequenceModule


@encoding_property("models")
def _models(bench: Bench) -> None:
    """The image, text or language model of this setting has a loss that reaches all of its parameters."""
    made = _module_and_batch(bench)
    if made is None:
        return
    model, batch = made
    loss = model.loss(batch)
    require(bool(loss.isfinite()), "a finite loss", loss.item())
    loss.backward()
    starved = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    require(not starved, "a finite gradient for every parameter", f"none for {starved}")


@encoding_property("model types", slow=True)
def _model_types(bench: Bench) -> None:
    """A whole model that is built in 16 or 64 bit, as Lightning builds it, has the loss of the same weights in 32."""
    made = _module_and_batch(bench)
    if made is None:
        return
    model, batch = made
    expected = model.loss(batch).item()
    for dtype in DEFAULTS:
        with default_dtype(dtype):
            other = _module_and_batch(bench)[0]  # type: ignore[index]
            other.load_state_dict(model.state_dict())
            loss = other.loss(batch)
            loss.backward()
        error = abs(loss.item() - expected)
        require(error < 0.05, f"an error of the loss below 0.05 in {dtype}", f"{error:.2g}")
        wrong = [name for name, p in other.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
        require(not wrong, f"a finite gradient for every parameter in {dtype}", f"none for {wrong}")


def _module_and_batch(bench: Bench) -> tuple[SequenceModule, tuple[Tensor, ...]] | None:
    """Return the LightningModule of a setting with a batch, or None for a setting without one."""
    size: Any = {"d_model": 32, "num_layers": 2, "num_heads": 4}
    random, name, options = torch.Generator().manual_seed(5), bench.subject.encoding, bench.subject.options
    tokens, labels = torch.randint(11, (4, 9), generator=random), torch.tensor([0, 1, 2, 0])
    model: SequenceModule
    if bench.setting.name == "grid":
        model = perturbed(ViT(name, options, image_size=8, patch_size=2, **size))
        return model, (noise(4, 3, 8, 8), labels)
    if bench.setting.name == "text":
        model = perturbed(TextClassifier(name, options, vocab_size=11, max_len=9, num_classes=3, **size))
        # lengths from 9 to 2: padding in all samples but one
        return model, (tokens, torch.tensor([9, 2, 7, 5]), labels)
    if bench.setting.name == "causal text":
        model = perturbed(LanguageModel(name, options, vocab_size=11, max_len=8, **size))
        return model, (tokens[:, :-1], tokens[:, 1:])
    return None


@encoding_property("compiled", once=True, slow=True)
def _compiled(bench: Bench) -> None:
    """Compiled in one piece, its hooks give the same, and the same gradients."""
    model = bench.trunk()
    with torch.no_grad():
        prepared = model.encoding.prepare(model.encoding.place(bench.positions))

    def run(x: Tensor) -> Tensor:
        state = model.encoding(prepared)
        masks = Masks(bench.spec.causal, x.shape[1], x.device, None)
        x = model.encoding.embed(x, state)
        for layer, block in enumerate(model.blocks):
            x = block(model.encoding.residual(x, None, state, layer), model.encoding, state, masks)
        return x

    # a process that checks many encodings would reach the limit of recompilations
    torch._dynamo.reset()
    # "eager" traces without generating code: graph breaks are errors, and no C++ compiler is needed
    compiled = torch.compile(run, backend="eager", fullgraph=True)
    outputs = []
    for function in (run, compiled):
        content = bench.content.clone().requires_grad_()
        output = function(content)
        # cubes, as after a norm the mean of outputs has hardly a gradient
        output.pow(3).mean().backward()
        assert content.grad is not None
        outputs.append((output.detach(), content.grad))
    torch._dynamo.reset()
    for one, other in zip(*outputs, strict=True):
        require_same(one, other, "compiled hooks to give the same")
