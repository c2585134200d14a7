"""Length and resolution extrapolation: the test split at sizes that the model was not trained at."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from lightning.pytorch import Trainer
from torchmetrics import Metric

from pebench.data.base import TensorDataModule
from pebench.encodings.base import EncodingError
from pebench.encodings.checks import blame
from pebench.errors import InterruptedRunError
from pebench.models.base import SequenceModule
from pebench.training.by_position import LossByPosition

log = logging.getLogger(__name__)

INTERPOLATES = "interpolates"
"""Policy of an encoding that refuses other sizes, where its tables are interpolated for them."""


class Beyond(NamedTuple):
    """Measurements at other sizes.

    Args:
        metrics: ``test/accuracy@1.5x`` and the like.
        facts: The `beyond` of a `pebench.runs.records.Record`.
    """

    metrics: dict[str, float]
    facts: dict[str, Any]


def measure_extrapolation(
    trainer: Trainer,
    module: SequenceModule,
    data: TensorDataModule,
    factors: Sequence[float],
    stop: Callable[[], bool],
    interpolate: str | None = None,
) -> Beyond:
    """Measure the metrics of the test split at other sizes, without further training.

    A language model predicts the same tokens in longer windows, and, as a control, in windows of the trained length
    that overlap by half, ``sliding``, which give half of the tokens more context, without new positions.
    A classifier's control is ``shuffled``, its tokens or patches in random order, which leaves a bag of them.

    Args:
        trainer: The run's trainer, which sets device and precision.
        module: Model with the weights that were tested.
        data: The run's data.
        factors: Sizes as multiples of the trained length or width.
        stop: Asked at every batch whether to stop.
        interpolate: How tables of an encoding that refuses other sizes are interpolated, one of
            `pebench.config.INTERPOLATIONS`; ``None`` leaves it at the refusal.

    Returns:
        Nothing at a size whose positions the encoding refuses or breaks at, and nothing that is not finite.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    # Lightning moves a model to the CPU when a test is over.
    module.to(trainer.strategy.root_device).eval()
    sizes = {f"{factor:g}x": factor for factor in factors}
    policy = policy_of(module, interpolate)
    positions, metrics, measured = LossByPosition(module, data, sizes), dict[str, float](), list[str]()
    for label, batches in data.beyond(factors):
        tested = module
        try:
            if interpolate and policy == INTERPOLATES and label in sizes:
                tested = module.resized(interpolation=interpolate, **enlarged(data, sizes[label]))
            # The context brings autocast: sizes must differ from the test in nothing else.
            with (
                torch.inference_mode(),
                trainer.precision_plugin.forward_context(),
                positions.watch(label, tested, batches),
            ):
                for batch in prepared_batches(batches, tested, data, stop):
                    tested.update(batch, "test")
        except (EncodingError, LookupError, RuntimeError, ValueError) as error:  # no reason to lose a run
            # A refusal is what its card says, and needs no warning.
            if policy != "refuses":
                log.warning("nothing was measured at %s: %s", label, blame(error))
        else:
            metrics |= finite_metrics(tested, label)
            measured.append(label)
        # After an error too, or the next size would begin with batches of this one.
        for metric in test_metrics(module).values():
            metric.reset()
        torch.cuda.empty_cache()  # here, where an error no longer holds tensors; without CUDA it does nothing
    found = positions.found(trainer, measured)
    return Beyond(metrics, ({"policy": policy} if sizes else {}) | ({"by_position": found} if found else {}))


def policy_of(module: SequenceModule, interpolate: str | None) -> str:
    """Return what an encoding does with positions outside the trained ones.

    Args:
        module: The model that has it.
        interpolate: See `measure_extrapolation`.

    Returns:
        Its `beyond`, or `INTERPOLATES`.
    """
    encoding = module.trunk.encoding
    # A part may declare a table that its options leave out.
    tables = any(
        getattr(part, name, None) is not None for part in encoding.modules() for name, _ in getattr(part, "layouts", ())
    )
    return INTERPOLATES if interpolate and tables and encoding.beyond == "refuses" else encoding.beyond


def enlarged(data: TensorDataModule, factor: float) -> dict[str, int]:
    """Return the arguments of a model for data that are so many times as long, or as wide and high."""
    return {name: round(factor * size) for name, size in data.describe().items() if name in ("max_len", "image_size")}


def finite_metrics(module: SequenceModule, label: str) -> dict[str, float]:
    """Return the metrics of the test split by their names at a size, without those that are not finite."""
    found = {}
    for name, metric in test_metrics(module).items():
        if math.isfinite(value := float(metric.compute())):
            found[f"{name}@{label}"] = value
        else:  # which no record can hold
            log.warning("nothing was measured at %s: %s is %s", label, name, value)
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
