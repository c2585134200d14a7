"""What the runner adds to a Lightning Trainer: randomness by step, a curve, a stopwatch, a guard."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from pebench.streams import stream


class StepSeed(Callback):
    """Seeds dropout by run and step, so that rows with the same seed drop the same channels.

    Args:
        seed: Of the run.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Start the step's stream."""
        seed = stream(self.seed, "step", trainer.global_step)
        torch.default_generator.manual_seed(seed)  # manual_seed would visit every kind of device: 0.4 ms a step
        if module.device.type != "cpu":
            torch.get_device_module(module.device).manual_seed(seed)


class Curve(Callback):
    """Keeps the validation metrics along the run, and tells of progress.

    Args:
        on_progress: Called at every log and every validation with the step and the metrics known by then.

    Attributes:
        points: One mapping per validation, each with its ``step``.
    """

    def __init__(self, on_progress: Callable[[int, Mapping[str, float]], None]) -> None:
        self.on_progress = on_progress
        self.points: list[dict[str, float]] = []

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell of progress a few times a run."""
        if trainer.global_step % int(trainer.log_every_n_steps) == 0:  # type: ignore[attr-defined]
            self.on_progress(trainer.global_step, self.points[-1] if self.points else {})

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Keep a point."""
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        self.points.append({"step": trainer.global_step, **metrics})
        self.on_progress(trainer.global_step, self.points[-1])


class Stopwatch(Callback):
    """Measures training time without validation, from the end of the first steps on.

    Attributes:
        seconds: Training time measured.
        steps: Steps in it.
    """

    WARM_UP = 3

    def __init__(self) -> None:
        self.seconds, self.steps = 0.0, 0
        self._since: float | None = None

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a step; start the watch once warm."""
        if self._since is not None:
            self.steps += 1
        elif trainer.global_step >= min(self.WARM_UP, max(1, int(trainer.max_steps) - 1)):
            self._since = time.perf_counter()

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Stop the watch."""
        self._pause()

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Stop the watch."""
        self._pause()

    def _pause(self) -> None:
        if self._since is not None:
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()  # work that is still queued was not done in no time
            self.seconds += time.perf_counter() - self._since
            self._since = None

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Start the watch again."""
        if trainer.state.fn == "fit" and trainer.global_step >= self.WARM_UP:
            self._since = time.perf_counter()


class DivergedError(Exception):
    """The loss is no longer a number."""


class FiniteLoss(Callback):
    """Stops a run whose loss is infinite or no number, within `EVERY` steps."""

    EVERY = 25

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the loss.

        Raises:
            DivergedError: If it is not finite.
        """
        loss = outputs["loss"] if isinstance(outputs, Mapping) else outputs
        if trainer.global_step % self.EVERY == 0 and isinstance(loss, Tensor) and not bool(loss.isfinite()):
            raise DivergedError(f"the loss is {float(loss)} at step {trainer.global_step}")
