"""The test split again, at lengths and resolutions that the model was not trained at, and without its order."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from lightning.pytorch import Trainer
from torchmetrics import Metric

from pebench.data.base import TensorDataModule
from pebench.encodings.base import EncodingError
from pebench.encodings.checks import blame
from pebench.errors import InterruptedRunError
from pebench.models.base import SequenceModule

log = logging.getLogger(__name__)


def measure_beyond(
    trainer: Trainer, module: SequenceModule, data: TensorDataModule, factors: Sequence[float], stop: Callable[[], bool]
) -> dict[str, float]:
    """Metrics of the test split at other sizes, without further training.

    A language model is asked for the same tokens in longer windows, and, as a control, with windows of the
    trained length that overlap by half, ``sliding``: what longer windows gain by context alone, it gains too.
    A classifier's control is ``shuffled``, its tokens or patches in random order: what a bag of them tells.

    Args:
        trainer: Of the run; it says where the model computes, and in which precision.
        module: With the weights that were tested.
        data: Of the run.
        factors: How many times as long or as wide as in training.
        stop: Asked at every batch whether to stop.

    Returns:
        ``test/accuracy@1.5x`` and the like; nothing at a size whose positions the encoding refuses or breaks at, and
        nothing that is not finite.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    encoding = module.trunk.encoding
    module.to(trainer.strategy.root_device).eval()
    found: dict[str, float] = {}
    for label, batches in data.beyond(factors):
        try:
            with torch.inference_mode(), trainer.precision_plugin.forward_context():
                for batch in ready(batches, module, data, stop):
                    module.update(batch, "test")
        except (EncodingError, LookupError, RuntimeError, ValueError) as error:  # no reason to lose a run
            if encoding.beyond != "refuses":
                log.warning("nothing was measured at %s: %s", label, blame(error))
        else:
            for name, metric in tested(module).items():
                if math.isfinite(value := float(metric.compute())):
                    found[f"{name}@{label}"] = value
                else:  # which no record can hold
                    log.warning("nothing was measured at %s: %s is %s", label, name, value)
        for metric in tested(module).values():
            metric.reset()
    return found


def ready(
    batches: Iterable[Any], module: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> Iterator[Any]:
    """Batches as a Trainer would hand them to a model: on its device, and prepared.

    Args:
        batches: Of its data.
        module: Where they go.
        data: Of the run.
        stop: Asked at every batch whether to stop.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    for batch in batches:
        if stop():
            raise InterruptedRunError("stopped while measuring what was trained")
        yield data.on_after_batch_transfer(tuple(part.to(module.device) for part in batch), 0)


def tested(module: SequenceModule) -> dict[str, Metric]:
    """The metrics of the test split."""
    return {name: module.metric(name) for name in module.metrics if name.startswith("test/")}
