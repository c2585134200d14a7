"""Ablation: the loss of a model whose attention logits lack one product of content, position or constants."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.pairs import whole
from pebench.results.inside import PRODUCTS
from pebench.training.analysis.capture import Capture, Layer
from pebench.training.analysis.logits import moved_parts, product


class Without:
    """An encoding's hooks, with one product of content and position taken from the logits of one block.

    Args:
        capture: Capture of the model.
        layer: Layer of the block, with the state of the pass at hand.
        name: Product to take away.
        order: (B, L), the order in which keys are taken: their own, or a random one for the control.
        x: (B, L, D), the residual stream before the block.
    """

    def __init__(self, capture: Capture, layer: Layer, name: str, order: Tensor, x: Tensor) -> None:
        self.encoding = capture.encoding
        taken = product(moved_parts(capture, layer, x), name, layer)  # (B, H, L, L)
        self.taken = taken.gather(-1, order[:, None, None, :].expand_as(taken))

    def query_key(self, *arguments: Any) -> tuple[Tensor, Tensor]:
        """Return what the encoding makes of queries and keys."""
        return self.encoding.query_key(*arguments)

    def bias(self, *arguments: Any) -> Tensor:
        """Return the encoding's term of the logits less the product."""
        bias = whole(self.encoding.bias(*arguments))
        return -self.taken if bias is None else bias - self.taken

    def value(self, *arguments: Any) -> Tensor:
        """Return what the encoding makes of values."""
        return self.encoding.value(*arguments)

    def output(self, *arguments: Any) -> Tensor:
        """Return what the encoding makes of the output of heads."""
        return self.encoding.output(*arguments)


def ablation(capture: Capture) -> dict[str, float] | None:
    """Measure how much the loss rises if one product is taken from the logits of every layer.

    As a control the same product is taken from other keys of the text, in a random order, which removes as much of the
    logits' variance and adds as much noise.

    Returns:
        ``loss``, in nats, on held-out examples; and for each product a rise, and one with ``, permuted`` after
        its name. None where the encoding's hook is not affine in queries and keys.
    """
    other = capture.shuffled  # (B, L)
    own = torch.arange(other.shape[1], device=other.device).expand_as(other)
    found = {"loss": capture.loss}
    with torch.no_grad():
        try:
            for name in PRODUCTS:
                for label, order in ((name, own), (f"{name}, permuted", other)):
                    with _without(capture, name, order):
                        found[label] = float(capture.module.loss(capture.held_out_batch)) - capture.loss
        except ValueError:
            return None
    return found


@contextmanager
def _without(capture: Capture, name: str, order: Tensor) -> Iterator[None]:
    def without(layer: Layer) -> Any:
        def hook(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            x, _, state, masks = inputs
            current = replace(layer, x=x, state=state, masks=masks)
            return x, Without(capture, current, name, order[:, : x.shape[1]], x), state, masks

        return hook

    with ExitStack() as hooks:
        for layer in capture.layers:
            hooks.enter_context(layer.block.register_forward_pre_hook(without(layer)))
        yield
