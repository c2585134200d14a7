"""Callbacks of a run: randomness by step, validation curve, stopwatch, guards, checkpoints to resume from."""

import math
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.plugins import TorchCheckpointIO

from pebench.atomic import replacing
from pebench.errors import DivergedError, InterruptedRunError
from pebench.seeding import stream

ADVICE = "try a smaller train.learning_rate, or look for infinities in the encoding's values and gradients"
"""The way out of a divergence."""


class StepSeed(Callback):
    """Seeds dropout by run and step, so that rows with the same seed drop the same channels.

    Args:
        seed: The run's seed.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Seed dropout for the step."""
        # From the step and not from a state that is kept: a run that is resumed drops what it would have dropped.
        rank = (trainer.global_rank,) if trainer.global_rank else ()  # processes that share a batch drop differently
        seed = stream(self.seed, "step", trainer.global_step, *rank)
        torch.default_generator.manual_seed(seed)  # manual_seed would visit every kind of device: 0.4 ms a step
        if module.device.type != "cpu":
            torch.get_device_module(module.device).manual_seed(seed)


class Curve(Callback):
    """Keeps the validation metrics along the run, and reports progress.

    Args:
        on_progress: Called at every log and every validation with the step and the metrics known by then.

    Attributes:
        points: One mapping per validation, each with its ``step`` and the loss of the latest logged step.
        train_loss: Loss of that step, in nats.
    """

    def __init__(self, on_progress: Callable[[int, Mapping[str, float]], None]) -> None:
        self.on_progress = on_progress
        self.points: list[dict[str, float]] = []
        self.train_loss: float | None = None

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return True for the first steps; see `pebench.training.steps`."""
        return step < int(trainer.log_every_n_steps) and step & (step - 1) == 0  # type: ignore[attr-defined]

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Report progress a few times a run, and after its first steps, whose pace a user waits for."""
        if self.needs(trainer, trainer.global_step):
            self.on_progress(trainer.global_step, {})
        # float() makes an accelerator finish all steps before: now and then it costs little.
        if trainer.global_step % int(trainer.log_every_n_steps) == 0:  # type: ignore[attr-defined]
            self.train_loss = float(trainer.strategy.reduce(outputs["loss"], reduce_op="mean"))  # each has its share
            self.on_progress(trainer.global_step, self.points[-1] if self.points else {})

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Keep the validation metrics as a point.

        Raises:
            DivergedError: If a metric is not finite.
        """
        metrics = {name: float(v) for name, v in trainer.callback_metrics.items() if name.startswith("val/")}
        if not all(map(math.isfinite, metrics.values())):
            raise DivergedError(f"validation gives {metrics} at step {trainer.global_step}; {ADVICE}")
        trained = {} if self.train_loss is None else {"train/loss": self.train_loss}
        self.points.append({"step": trainer.global_step, **trained, **metrics})
        self.on_progress(trainer.global_step, self.points[-1])

    def best(self, metric: str, mode: str) -> dict[str, float]:
        """Return the validation metrics at the step that is chosen, and that step.

        Args:
            metric: Metric that chooses.
            mode: ``min`` or ``max``, whichever is best.
        """
        # Of equal points min and max return the first, as `best_checkpoint` keeps it.
        point = (min if mode == "min" else max)(self.points, key=lambda point: point[metric])
        return {"best_step": point["step"]} | {name: value for name, value in point.items() if name.startswith("val/")}

    def state_dict(self) -> dict[str, Any]:
        """Return the points, for a checkpoint."""
        return {"points": self.points, "train_loss": self.train_loss}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.points, self.train_loss = list(state_dict["points"]), state_dict["train_loss"]


class OwnSignals(Callback):
    """Restores the handler of SIGTERM: Lightning's own would have the run fail where it may stop."""

    def __init__(self) -> None:
        # Now, as Lightning puts its own in place before a callback hears that training starts.
        self.handler = signal.getsignal(signal.SIGTERM)

    def on_train_start(self, *_: Any) -> None:
        """Restore the handler that Lightning has replaced by now."""
        # Python allows it in the main thread alone; None is a handler that was not set from Python.
        if threading.current_thread() is threading.main_thread() and self.handler is not None:
            signal.signal(signal.SIGTERM, self.handler)

    def on_test_start(self, *_: Any) -> None:
        """Restore the handler again: testing replaces it too."""
        self.on_train_start()


class FiniteLoss(Callback):
    """Stops a run whose loss is infinite or no number, within `EVERY` steps."""

    # To look at the loss makes an accelerator wait, which every step should not.
    EVERY = 25

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return True for the steps whose loss is looked at."""
        return step % self.EVERY == 0

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Check the loss.

        Raises:
            DivergedError: If it is not finite.
        """
        if not self.needs(trainer, trainer.global_step):
            return
        loss = outputs["loss"]
        # All processes decide together: one that raised alone would leave the others waiting for its gradients.
        if not trainer.strategy.reduce_boolean_decision(bool(loss.isfinite())):
            raise DivergedError(f"the loss is {float(loss)} at step {trainer.global_step}; {ADVICE}")


class LastValidation(Callback):
    """Makes validation follow the last step, even where the evaluations do not divide the steps."""

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return True for the last step."""
        return step == trainer.max_steps

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Ask for the end at the last step; Lightning then validates."""
        if self.needs(trainer, trainer.global_step):
            trainer.should_stop = True


class Resumable(Checkpoint):
    """Keeps the whole state of training after every validation and every minute, and stops when asked.

    Asked to stop, it saves at the end of the step, unless a validation is due there: then, as in the middle
    of a validation or test, the run resumes from the validation before.

    Args:
        path: Path of the checkpoint.
        stop: Returns True to stop the run.
        made_of: Data, code and versions of the run, kept with its state.
    """

    EVERY_S = 60.0

    def __init__(self, path: Path, stop: Callable[[], bool], made_of: Mapping[str, Any]) -> None:
        self.path, self.stop, self.made_of = path, stop, made_of
        self.saved = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        """Return what the run is made of, for a checkpoint."""
        return {"made_of": dict(self.made_of)}

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return True for the steps at which a minute may be over, and once asked to stop."""
        return step % int(trainer.log_every_n_steps) == 0 or self.stop()  # type: ignore[attr-defined]

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop if asked, with a checkpoint.

        Raises:
            InterruptedRunError: If asked to stop.
        """
        step = trainer.global_step
        stop = trainer.strategy.reduce_boolean_decision(self.stop(), all=False)  # whichever process was asked
        # A checkpoint of this moment would lack the validation that is due; `on_validation_end` saves one with it.
        validates = step % int(trainer.val_check_interval or 1) == 0 or step == trainer.max_steps
        if not validates and (stop or self._due(trainer)):
            self._save(trainer)
        if stop:
            raise InterruptedRunError(f"stopped at step {step}")

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Keep the state."""
        if trainer.state.fn == "fit":  # a validation apart from training has no state to resume
            self._save(trainer)

    def on_validation_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stop if asked."""
        if trainer.world_size == 1 and self.stop():  # several processes have unequal numbers of batches here
            raise InterruptedRunError("stopped while evaluating")

    def on_test_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stop if asked."""
        self.on_validation_batch_end(trainer)

    def _due(self, trainer: Trainer) -> bool:
        """Return True once a minute is over; only asked now and then, as processes must agree."""
        if trainer.global_step % int(trainer.log_every_n_steps):  # type: ignore[attr-defined]
            return False
        return trainer.strategy.reduce_boolean_decision(time.monotonic() - self.saved > self.EVERY_S, all=False)

    def _save(self, trainer: Trainer) -> None:
        trainer.save_checkpoint(self.path)
        for logger in trainer.loggers:
            logger.save()  # what the resumed run will not log again
        self.saved = time.monotonic()


class DurableCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its place, then moves it there: it is whole or it is the one before.

    Lightning writes to the temporary folder and copies, which a full disk or a power cut can break off.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Write, make sure that it is on the disk, and move."""
        with replacing(Path(path), durable=True) as file:
            torch.save(checkpoint, file)
