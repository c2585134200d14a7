"""Position means: the loss of a model from which each position's mean vector is taken away in one layer."""

from typing import Any

import torch
from torch import Tensor, nn

from pebench.training.analysis.capture import Capture
from pebench.training.analysis.logits import parts_of


def position_mean(capture: Capture) -> dict[str, list[float] | float]:
    """Measure how much the loss rises if position is taken away in front of one block, by subtracting its mean.

    Position then costs what a bias for each position would give: if subtracting one vector for each position undoes
    what the encoding gives, the model has kept position as such a bias. As a control the same vectors are subtracted
    in a random order of positions, which takes away as much energy.

    Returns:
        ``loss``, in nats, on the held-out examples; ``position`` and ``permuted``, a rise for each block.
    """
    base = loss_without(capture)
    order = torch.randperm(capture.valid.shape[1], generator=torch.Generator().manual_seed(0))
    found: dict[str, list[float] | float] = {"loss": base}
    for name in ("position", "permuted"):
        rises = []
        for layer in capture.layers:
            position = parts_of(capture, layer).position
            vectors = position if name == "position" else position[order.to(position.device)]
            rises.append(loss_without(capture, layer.index, vectors) - base)
        found[name] = rises
    return found


def loss_without(capture: Capture, index: int | None = None, taken: Tensor | None = None) -> float:
    """Return the loss of the held-out examples, in nats, with vectors subtracted in front of one block.

    Args:
        capture: Capture of the model.
        index: Number of the block; None changes nothing.
        taken: (L, D), the vectors.
    """
    batch = tuple(part[capture.held_out] for part in capture.batch)

    def subtract(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return inputs[0] - taken, *inputs[1:]

    hook = None if index is None else capture.layers[index].block.register_forward_pre_hook(subtract)
    try:
        with torch.no_grad():
            return float(capture.module.loss(batch))
    finally:
        if hook is not None:
            hook.remove()
