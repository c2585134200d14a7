"""Loss by position: the loss of a language model's test tokens by the place that they have in longer windows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from lightning.pytorch import Trainer
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader

from pebench.data.base import TensorDataModule
from pebench.data.batches import IGNORE, Windows
from pebench.data.language import RunningText
from pebench.models.base import SequenceModule
from pebench.models.language_model import LanguageModel
from pebench.runs.records import PARTS

CONTROL = "sliding"
"""Label of the windows of the trained length that overlap."""


class LossByPosition:
    """Sums of the losses of test tokens by position, collected from the forward passes that measure other sizes.

    A token's position is its place in the windows of a size. The same tokens in sliding windows are the control: they
    are as hard there, and have as much context as a window of the trained length gives.

    Args:
        module: Model that is tested.
        data: The run's data; other than running text they have no positions here.
        sizes: Multiples of the trained length by label.
    """

    def __init__(self, module: SequenceModule, data: TensorDataModule, sizes: Mapping[str, float]) -> None:
        serves = isinstance(module, LanguageModel) and isinstance(data, RunningText)
        self.trained = data.max_len if isinstance(data, RunningText) else 0
        self.lengths = {label: round(factor * self.trained) for label, factor in sizes.items()} if serves else {}
        self.token_bytes: Tensor | None = None
        if isinstance(module, LanguageModel) and "test/bits_per_byte" in module.metrics:
            self.token_bytes = module.token_bytes.cpu()
        shapes = {label: (2, 1 + self._part(length - 1)) for label, length in self.lengths.items()}
        # nats, and the bytes or tokens that they are of: of the longer windows, and of the same tokens in the control
        self.longer = {label: torch.zeros(shape, dtype=torch.float64) for label, shape in shapes.items()}
        self.control = {label: torch.zeros(shape, dtype=torch.float64) for label, shape in shapes.items()}

    def _part(self, position: Any) -> Any:
        # One part ends exactly at the trained length, whether or not PARTS divides it.
        return PARTS * position // self.trained

    @contextmanager
    def watch(self, label: str, module: SequenceModule, batches: DataLoader[Any]) -> Iterator[None]:
        """Collect the losses of what a model computes within the context.

        Args:
            label: A size, or `CONTROL`.
            module: The model.
            batches: The batches that it is given, in this order.
        """
        kept = self.lengths if label == CONTROL else {label} & {*self.lengths}
        if not kept or not isinstance(batches.dataset, Windows):
            yield
            return
        windows, order = batches.dataset, iter(batches.sampler)

        def add(_: torch.nn.Module, inputs: Any, logits: Tensor) -> None:
            index = next(order)
            targets = windows[index][1].flatten()
            # Of a model in 16 bit the logits are too, which is too coarse for the logarithm of a softmax.
            losses = F.cross_entropy(logits.float().flatten(0, 1), targets.to(logits.device), reduction="none")
            places = (index[:, None] * windows.stride + torch.arange(windows.length)).flatten()
            counted = targets != IGNORE
            self._add(kept, label == CONTROL, places[counted], targets[counted], losses.cpu().double()[counted])

        with module.register_forward_hook(add):
            yield

    def _add(self, labels: Any, control: bool, places: Tensor, targets: Tensor, losses: Tensor) -> None:
        """Add losses (tokens,) to the sums of some sizes; places count from the beginning of the text."""
        sizes = torch.ones_like(losses) if self.token_bytes is None else self.token_bytes[targets].double()
        for label in labels:
            sums = (self.control if control else self.longer)[label]
            parts = self._part(places % self.lengths[label])
            for row, values in zip(sums, (losses, sizes), strict=True):
                row += torch.bincount(parts, values, minlength=len(row))

    def found(self, trainer: Trainer, measured: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
        """Return the mean losses of every part, in bits per byte, or in nats per token where bytes are not known.

        Args:
            trainer: The run's trainer, whose processes each saw a share of the windows.
            measured: Labels of the sizes whose windows all passed.

        Returns:
            ``bits_per_byte@2x`` and the like to ``longer`` and ``sliding``, each a number for every `PARTS`-th of the
            trained length; None where it is not finite.
        """
        name, unit = ("loss", 1.0) if self.token_bytes is None else ("bits_per_byte", math.log(2))
        return {
            f"{name}@{label}": {
                kind: _means(_joined(sums[label], trainer), unit)
                for kind, sums in (("longer", self.longer), (CONTROL, self.control))
            }
            for label in self.lengths
            if label in measured
        }


def _joined(sums: Tensor, trainer: Trainer) -> Tensor:
    """Return the sum over all processes."""
    if trainer.world_size == 1:
        return sums
    return trainer.strategy.reduce(sums.to(trainer.strategy.root_device), reduce_op="sum").cpu()  # type: ignore[union-attr]


def _means(sums: Tensor, unit: float) -> list[float | None]:
    nats, sizes = sums
    return [value if math.isfinite(value) else None for value in (nats / sizes / unit).tolist()]
