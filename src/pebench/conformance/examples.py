"""The examples of a task's data, as properties look at them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pebench.data.base import TensorDataModule


def fingerprints(data: TensorDataModule, split: str) -> set[bytes]:
    """Return the inputs of every example of a split, without padding."""
    rows, lengths = data.split(split)
    count = len(rows)  # type: ignore[arg-type]
    order = torch.arange(count) if lengths is None else lengths.argsort(stable=True)
    # examples of one length make a batch without padding; a batch is as large as memory easily holds
    sizes = [count] if lengths is None else lengths[order].unique_consecutive(return_counts=True)[1].tolist()
    found = set[bytes]()
    for alike in order.split(sizes):
        for index in alike.split(1000):
            inputs = rows[index][0]
            found.update(example.numpy().tobytes() for example in inputs.contiguous())
    return found


def labels_of(data: TensorDataModule, split: str) -> Tensor:
    """Return the different labels of a split."""
    rows, _ = data.split(split)
    order = torch.arange(len(rows))  # type: ignore[arg-type]
    return torch.cat([rows[index][-1].unique() for index in order.split(1000)])


def first_batches(data: TensorDataModule) -> list[Tensor]:
    """Return the inputs of the first three training batches."""
    torch.seed()  # the global generator must not matter
    return [batch[0] for batch, _ in zip(data.train_dataloader(), range(3), strict=False)]


def equal(one: list[Tensor], other: list[Tensor]) -> bool:
    """Return True if two lists hold the same tensors."""
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True)
    )


def batches_of(rows: Any, index: Tensor, size: int) -> Iterator[Any]:
    """Yield batches of some examples, in their order."""
    return (rows[part] for part in index.split(size))
