"""The best constant prediction for a task, by which its chance level is measured."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from pebench.data.base import TensorDataModule
from pebench.models.base import SequenceModule

FIT_STEPS = 200
"""Training steps of the constant."""

WHOLE = 2**18
"""Numbers in the inputs of a training split up to which each step takes all of it."""

PART = 2**15
"""Numbers in the inputs of a step where the split is larger."""


def fit_constant(model: SequenceModule, data: TensorDataModule) -> None:
    """Replace a model's forward pass by a constant, trained by the model's own loss.

    The constant has the width of the output, and is the same for every example and token.
    """
    whole, shapes = model.forward, dict[torch.Size, torch.Size]()
    batches = _endless(data)
    # the width is asked of the model, as a task's data need not tell the number of outputs
    with torch.no_grad():
        width = whole(*_inputs(model, data, next(batches))).shape[-1]
    constant = nn.Parameter(torch.zeros(width))

    def forward(inputs: Tensor, *rest: Any, **options: Any) -> Tensor:
        if inputs.shape not in shapes:  # the model itself runs once for each shape, to know that of its output
            with torch.no_grad():
                shapes[inputs.shape] = whole(inputs, *rest, **options).shape
        return constant.expand(shapes[inputs.shape])

    # on the instance: its loss and metric stay, and call this in place of the network
    model.forward = forward  # type: ignore[method-assign]
    # 0.2 a step: logits of rare classes are several units away; the decay lets the last steps settle
    optimizer = torch.optim.Adam([constant], lr=0.2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, FIT_STEPS)
    for _ in range(FIT_STEPS):
        optimizer.zero_grad()
        # the hook that a Trainer would call on a batch
        model.loss(data.on_after_batch_transfer(next(batches), 0)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def _inputs(model: SequenceModule, data: TensorDataModule, batch: Any) -> list[Any]:
    """Return what the model's forward pass is called with for a batch."""
    seen: list[list[Any]] = []
    with model.register_forward_pre_hook(lambda _, arguments: seen.append(list(arguments))):
        model.loss(data.on_after_batch_transfer(batch, 0))
    return seen[0]


def _endless(data: TensorDataModule) -> Iterator[Any]:
    """Yield training examples for ever: all of a small split, else random ones, fewer where they are long."""
    rows, _ = data.split("train")
    count = len(rows)  # type: ignore[arg-type]
    length = max(1, rows[torch.tensor([0])][0].numel())
    if count * length <= WHOLE:  # no noise, which would decide between labels that are about as frequent
        while True:
            yield rows[torch.arange(count)]
    noise = torch.Generator().manual_seed(0)
    while True:
        yield rows[torch.randint(0, count, (max(16, PART // length),), generator=noise)]
