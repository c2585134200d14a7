"""Properties of gradients."""

import torch

from pebench.conformance.bench import Bench, noise
from pebench.conformance.comparisons import require
from pebench.conformance.properties.base import encoding_property
from pebench.layers import initialise
from pebench.models.transformer import Transformer


@encoding_property("gradients")
def _gradients(bench: Bench) -> None:
    """Gradients reach every parameter, in every layer and head; but those declared idle.

    At first, after training, and where training has turned signs: what is clamped must not be lost.
    """
    fresh = Transformer(bench.subject.build(bench.spec))
    initialise(fresh, seed=0)
    # random weights, as a plain sum after a norm is constant and has no gradient
    weights = noise(3, bench.length, bench.encoding.model_width, seed=5)
    opposite = bench.trunk()
    with torch.no_grad():
        for parameter in opposite.encoding.parameters():
            # signs turned show what is clamped, or dead after a ReLU, on the other side of zero
            parameter.neg_()
    for model in (fresh, bench.trunk(), opposite):
        (model.train()(bench.content) * weights).sum().backward()
        starved = {name for name, _ in model.encoding.named_parameters()} - set(model.encoding.idle)
        starved = {name for name in starved if _lacks_gradient(model, name)}
        found = f"none for (all of) {sorted(starved)}; `prepare` runs without"
        require(not starved, "a gradient for every parameter", found)
        busy = [name for name in model.encoding.idle if not _lacks_gradient(model, name)]
        require(not busy, f"no gradient for the idle {list(model.encoding.idle)}", f"one for {busy}")


def _lacks_gradient(model: Transformer, name: str) -> bool:
    """Return True if a parameter of the encoding, or its part for some layer or head, has no gradient but rounding."""
    spec, grad = model.encoding.spec, model.encoding.get_parameter(name).grad
    if grad is None:
        return True
    require(bool(grad.isfinite().all()), f"a finite gradient for {name}", "infinities or none")
    # Axes of a layer's or head's size are kept, so that one layer without a gradient is found among others with one.
    others = [axis for axis, size in enumerate(grad.shape) if size not in (spec.num_layers, spec.num_heads)]
    parts = grad.abs().amax(dim=others) if others else grad.abs()
    # against the trunk's gradients, as what rounding leaves has their scale
    scale = max(p.grad.abs().max() for p in model.blocks.parameters() if p.grad is not None)
    return bool((parts <= 1e-6 * scale).any())
