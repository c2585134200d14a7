"""Length and resolution extrapolation: the test split at sizes that the model was not trained at."""

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


def measure_extrapolation(
    trainer: Trainer, module: SequenceModule, data: TensorDataModule, factors: Sequence[float], stop: Callable[[], bool]
) -> dict[str, float]:
    """Measure the metrics of the test split at other sizes, without further training.

    A language model predicts the same tokens in longer windows, and, as a control, in windows of the trained length
    that overlap by half, ``sliding``, which gain the same context as longer windows without their new positions.
    A classifier's control is ``shuffled``, its tokens or patches in random order, which leaves a bag of them.

    Args:
        trainer: The run's trainer, which sets device and precision.
        module: Model with the weights that were tested.
        data: The run's data.
        factors: Sizes as multiples of the trained length or width.
        stop: Asked at every batch whether to stop.

    Returns:
        ``test/accuracy@1.5x`` and the like; nothing at a size whose positions the encoding refuses or breaks at, and
        nothing that is not finite.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    encoding = module.trunk.encoding
    # Lightning moves a model to the CPU when a test is over.
    module.to(trainer.strategy.root_device).eval()
    found: dict[str, float] = {}
    for label, batches in data.beyond(factors):
        try:
            # The context brings autocast: sizes must differ from the test in nothing else.
            with torch.inference_mode(), trainer.precision_plugin.forward_context():
                for batch in prepared_batches(batches, module, data, stop):
                    module.update(batch, "test")
        except (EncodingError, LookupError, RuntimeError, ValueError) as error:  # no reason to lose a run
            # A refusal is what its card says, and needs no warning.
            if encoding.beyond != "refuses":
                log.warning("nothing was measured at %s: %s", label, blame(error))
        else:
            for name, metric in test_metrics(module).items():
                if math.isfinite(value := float(metric.compute())):
                    found[f"{name}@{label}"] = value
                else:  # which no record can hold
                    log.warning("nothing was measured at %s: %s is %s", label, name, value)
        # After an error too, or the next size would begin with batches of this one.
        for metric in test_metrics(module).values():
            metric.reset()
    return found


def prepared_batches(
    batches: Iterable[Any], module: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> Iterator[Any]:
    """Yield batches as a Trainer would give them to a model: on its device, and augmented or padded by the data.

    Args:
        batches: Batches from a data loader.
        module: Model whose device they go to.
        data: The run's data.
        stop: Asked at every batch whether to stop.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    for batch in batches:
        if stop():
            raise InterruptedRunError("stopped while measuring what was trained")
        yield data.on_after_batch_transfer(tuple(part.to(module.device) for part in batch), 0)


def test_metrics(module: SequenceModule) -> dict[str, Metric]:
    """Return the metrics of the test split by name."""
    return {name: module.metric(name) for name in module.metrics if name.startswith("test/")}
