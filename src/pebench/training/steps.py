"""Plain steps: those at whose end nothing is logged, measured or saved go without Lightning's loop around each.

Lightning calls about thirty hooks in a step, which takes a millisecond or two; in two of fifty steps they have
something to do. The others are made here, by the same operations in the same order, so that a run ends the same to the
last bit. Lightning's own progress is counted on with each, so that checkpoints are what they would have been.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import lightning
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop
from torch import Tensor

from pebench.models.base import SequenceModule
from pebench.training.callbacks import StepSeed
from pebench.training.captured import CapturedStep, make_capturable, recorder_of
from pebench.training.turns import turns_of_this_run

log = logging.getLogger(__name__)

CALLBACK_HOOKS = (
    "on_train_batch_start", "on_train_batch_end", "on_before_zero_grad", "on_before_backward", "on_after_backward",
    "on_before_optimizer_step",
)  # fmt: skip
"""Hooks of a callback that Lightning calls in every step."""

MODULE_HOOKS = (*CALLBACK_HOOKS, "backward", "optimizer_step", "optimizer_zero_grad", "lr_scheduler_step")
"""Hooks of a module that Lightning calls in every step, and that none of ours defines."""

OURS = ("training_step", "configure_optimizers", "configure_gradient_clipping")
"""Methods of our modules that a plain step relies on."""


class PlainSteps(_TrainingEpochLoop):
    """Lightning's loop over batches, which makes the steps between those that anyone looks at by itself.

    A callback with a method ``needs(trainer, step)`` is asked, before each step, whether it looks at that one.

    Args:
        trainer: The run's trainer, of which this is to be the loop.
        capture: Repeat plain steps from a recording, where the device has such.

    Attributes:
        captured: The step that is recorded, if there is one.
    """

    def __init__(self, trainer: Trainer, capture: bool = False) -> None:
        super().__init__(trainer, trainer.min_steps, trainer.max_steps)
        self.captured: CapturedStep | None = None
        self._capture, self._reason = capture, ""
        self._needs: Sequence[Callable[[Trainer, int], bool]] = ()
        self._seeds: Sequence[StepSeed] = ()

    def on_run_start(self, data_fetcher: Any) -> None:
        """Find whether plain steps are the same as Lightning's, and say so where they are not."""
        super().on_run_start(data_fetcher)
        callbacks: Sequence[Any] = self.trainer.callbacks  # type: ignore[attr-defined]
        self._reason = obstacle(self.trainer)
        if self._reason:
            log.info("every step goes through Lightning's loop: %s", self._reason)
        if self._capture:
            self._begin_capture()
        self._needs = [callback.needs for callback in callbacks if hasattr(callback, "needs")]
        self._seeds = [callback for callback in callbacks if isinstance(callback, StepSeed)]

    def _begin_capture(self) -> None:
        recorder, device = recorder_of(self.trainer.strategy.root_device), self.trainer.strategy.root_device.type
        if reason := self._reason or ("" if recorder else f"the device is {device}"):
            log.warning("no step is captured: %s", reason)
        elif recorder:
            make_capturable(self.trainer.optimizers[0])
            self.captured = CapturedStep(self._compute, recorder, self._host)

    def advance(self, data_fetcher: Any) -> None:
        """Make plain steps up to the next one that is looked at, then that one as Lightning does."""
        # After a resumption Lightning's first turn may make no step, but end a validation.
        while not (self._reason or self.restarting or self._looked_at(self.global_step + 1)):
            batch = self._on_device(next(data_fetcher)[0])
            for callback in self._seeds:
                callback.on_train_batch_start(self.trainer, self.trainer.lightning_module, batch, self.batch_idx + 1)
            (self.captured or self._compute)(batch)
            self.trainer.lr_scheduler_configs[0].scheduler.step()  # type: ignore[call-arg]
            self._count()
        super().advance(data_fetcher)

    def _looked_at(self, step: int) -> bool:
        trainer = self.trainer
        return (
            step == trainer.max_steps
            or step % int(trainer.log_every_n_steps) == 0  # type: ignore[attr-defined]
            or step % int(trainer.val_check_batch) == 0  # type: ignore[arg-type]
            or any(needs(trainer, step) for needs in self._needs)
        )

    def _on_device(self, batch: Any) -> Any:
        """Return a batch of the loader as Lightning gives it to a step."""
        trainer = self.trainer
        batch = trainer.precision_plugin.convert_input(batch)
        batch = trainer.lightning_module._on_before_batch_transfer(batch, dataloader_idx=0)
        return trainer.strategy.batch_to_device(batch, dataloader_idx=0)

    def _compute(self, batch: Any) -> None:
        """Compute new weights from a batch on the device."""
        trainer, module = self.trainer, self.trainer.lightning_module
        (optimizer,) = trainer.optimizers
        with trainer.precision_plugin.train_step_context():
            loss = module.training_step(batch, self.batch_idx + 1)
        optimizer.zero_grad()
        loss.backward()
        module.configure_gradient_clipping(optimizer, trainer.gradient_clip_val, trainer.gradient_clip_algorithm)
        optimizer.step()

    def _host(self) -> Any:
        """Return the state beside the model that a step may change: of generators, and of encodings that draw."""
        module = self.trainer.lightning_module
        counted = {name: value for name, value in module.state_dict().items() if not isinstance(value, Tensor)}
        # On a processor dropout draws from the first, as it does on a card from the second. A recording may draw from
        # the card's where it is alone: all recordings read its numbers from one place.
        shared, on_card = turns_of_this_run() is not None, module.device.type != "cpu"
        ours = torch.default_generator.get_state().tolist() if shared or on_card else None
        return counted, ours, torch.cuda.get_rng_state().tolist() if shared and on_card else None

    def _count(self) -> None:
        """Count a step as Lightning would."""
        optimizer = self.automatic_optimization.optim_progress.optimizer
        for progress in (self.batch_progress, self.scheduler_progress, optimizer.step, optimizer.zero_grad):
            for tracker in (progress.total, progress.current):
                for name in vars(tracker):  # ready, started, processed, completed: as many as it has
                    setattr(tracker, name, getattr(tracker, name) + 1)
        self._batches_that_stepped += 1


def obstacle(trainer: Trainer) -> str:
    """Return why plain steps would not be the same as Lightning's; empty if they are.

    Args:
        trainer: The trainer of a run, whose fit has begun.
    """
    module: LightningModule = trainer.lightning_module
    if trainer.world_size > 1:
        return "several processes share it"
    if getattr(trainer.precision_plugin, "scaler", None) is not None:
        return "float16 scales the loss"
    if not isinstance(module, SequenceModule):
        return f"{type(module).__name__} is no module of pebench"
    changed = [name for name in MODULE_HOOKS if _differs(module, lightning.LightningModule, name)]
    changed += [name for name in OURS if _differs(module, SequenceModule, name)]
    if changed:
        return f"{type(module).__name__} defines {', '.join(changed)}"
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(callback, StepSeed) or hasattr(callback, "needs"):
            continue
        if any(_differs(callback, Callback, name) for name in CALLBACK_HOOKS):
            return f"{type(callback).__name__} looks at every step"
    return ""


def captured_steps(trainer: Trainer) -> int:
    """Return how many steps of a run's fit were repeated from a recording."""
    step = getattr(trainer.fit_loop.epoch_loop, "captured", None)
    return step.replayed if step else 0


def _differs(thing: object, base: type, name: str) -> bool:
    """Return True if the class of an object has another method of that name than a base."""
    return getattr(type(thing), name) is not getattr(base, name)
