"""Position means: the loss of a model from which each position's mean vector is taken away in one layer."""

from typing import Any

import torch
from torch import Tensor, nn

from pebench.training.analysis.capture import Capture


def position_mean(capture: Capture) -> dict[str, list[float] | float]:
    """Measure how much the loss rises if each position's mean vector is subtracted before one block.

    Before the first block this takes away all that an encoding adds to the input, by construction. After it, a
    rise above the control says that the model reads position from one vector for each position. As a control the same
    vectors are subtracted in a random order of each text's positions, which leaves position in place and adds as much
    of a wrong one; a model that is disturbed by that may lose more than without position.

    Returns:
        ``loss``, in nats, on the held-out examples; ``position`` and ``permuted``, a rise for each block.
    """
    rises: dict[str, list[float]] = {"position": [], "permuted": []}
    for layer, parts in zip(capture.layers, capture.parts, strict=True):
        for name, vectors in (("position", parts.position), ("permuted", parts.position[capture.shuffled])):
            rises[name].append(loss_without(capture, layer.index, vectors) - capture.loss)
    return {"loss": capture.loss, **rises}


def loss_without(capture: Capture, index: int, taken: Tensor) -> float:
    """Return the loss of the held-out examples, in nats, with vectors subtracted before one block.

    Args:
        capture: Capture of the model.
        index: Number of the block.
        taken: (L, D), or (B, L, D) for each example by itself, the vectors.
    """

    def subtract(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return inputs[0] - taken, *inputs[1:]

    with capture.layers[index].block.register_forward_pre_hook(subtract), torch.no_grad():
        return float(capture.module.loss(capture.held_out_batch))
