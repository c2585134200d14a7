"""Channels in which position hardly varies: what the loss owes to them."""

import torch

from pebench.training.analysis.capture import Capture
from pebench.training.analysis.position_mean import loss_without

SMALL = 0.07
"""Standard deviation over the positions of tokens, relative to position's root mean square, below which a channel is
constant: 0.05 for a sinusoid of amplitude 1."""


def constant_channels(capture: Capture) -> dict[str, float] | None:
    """Measure how much the loss rises if position's nearly constant channels are set to zero at the input.

    As a control as many of the other channels are set to zero, chosen at random, or all of them if they are fewer.

    Returns:
        ``share``, the part of position's channels that are nearly constant; ``loss``, in nats, on held-out examples;
        ``constant`` and ``others``, the rise without either. None where position does not enter at the input.
    """
    if capture.position is None:
        return None
    position, rows = capture.position, capture.position_rows()
    used = position.abs().amax(0) > 0
    constant = used & (rows.std(0, correction=0) < SMALL * rows[:, used].square().mean().sqrt())
    varying = (used & ~constant).nonzero()[:, 0]
    count = min(int(constant.sum()), len(varying))
    chosen = varying[torch.randperm(len(varying), generator=torch.Generator().manual_seed(0))[:count]]
    others = torch.zeros_like(used)
    others[chosen] = True
    return {
        "share": float(constant.sum() / used.sum()),
        "loss": capture.loss,
        "constant": loss_without(capture, 0, position * constant) - capture.loss,
        "others": loss_without(capture, 0, position * others) - capture.loss,
    }
