"""The Lightning Trainer of a run, and the callback that keeps its best weights."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.fabric.plugins.environments import LightningEnvironment  # type: ignore[attr-defined]
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import Logger

from pebench.config import AUTO, Options, RunConfig
from pebench.errors import NAN_REFUSED, DivergedError, UserError
from pebench.runs.rubbish import CHECKPOINTS
from pebench.tasks import Task
from pebench.training.callbacks import ADVICE, DurableCheckpointIO
from pebench.training.environment import allow_tf32
from pebench.training.steps import PlainSteps
from pebench.training.turns import turn_callbacks

IGNORED_WARNINGS = (
    ".*does not have many workers.*",  # the data is in memory
    ".*GPU available but not used.*",
    ".*exists and is not empty.*",
    ".*smaller than the logging interval.*",
    ".*LeafSpec.*",  # lightning 2.6 beside torch 2.15
    ".*srun.*",  # a machine with SLURM
    ".*sync_dist=True.*",  # what is logged is computed over all processes
)
"""Lightning's warnings that mean nothing here."""


class BestCheckpoint(ModelCheckpoint):
    """Keeps the weights that validation likes best; finds them beside a checkpoint that has been moved."""

    def needs(self, trainer: lightning.Trainer, step: int) -> bool:
        """Return False: it saves after validations alone."""
        return False

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint, with its paths in the folder of this attempt."""

        def here(path: str) -> str:
            return path and str(Path(str(self.dirpath)) / Path(path).name)

        # `dirpath` too: where it differs Lightning forgets the scores, and the next validation would count as the best.
        names = ("best_model_path", "kth_best_model_path", "last_model_path")
        moved: dict[str, Any] = {name: here(state_dict[name]) for name in names}
        moved["best_k_models"] = {here(path): score for path, score in state_dict["best_k_models"].items()}
        super().load_state_dict(state_dict | moved | {"dirpath": self.dirpath})


def best_checkpoint(task: Task, config: RunConfig, folder: Path) -> ModelCheckpoint:
    """Return the callback that keeps the weights that validation likes best.

    Args:
        task: The run's task, which decides what is monitored.
        config: Run to train.
        folder: The run's folder.
    """
    monitor, mode = task.monitored(config.train.monitor)
    return BestCheckpoint(
        folder / CHECKPOINTS, filename="best", monitor=monitor, mode=mode, save_top_k=1, save_weights_only=True
    )


def make_trainer(
    config: RunConfig, options: Options, loggers: Sequence[Logger], callbacks: list[Any]
) -> lightning.Trainer:
    """Return a Lightning Trainer for one run, silent but for its loggers.

    Args:
        config: Run to train.
        options: Output folder, device and number of devices.
        loggers: Loggers of the run.
        callbacks: Callbacks of the run.

    Raises:
        UserError: If this machine does not have the run's precision.
    """
    if config.train.precision == AUTO:
        raise UserError("train.precision=auto is chosen where runs are planned, for all rows alike; name it here.")
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in IGNORED_WARNINGS:
        warnings.filterwarnings("ignore", message)
    train, device = config.train, options.device
    if device == "auto":  # never a Mac's GPU, which lacks the 64-bit numbers in which encodings compute angles
        device = "cuda" if torch.cuda.is_available() else "cpu"
    trainer = lightning.Trainer(
        accelerator=device,
        devices=options.devices,
        strategy="ddp" if options.devices > 1 else "auto",
        precision=train.precision,  # type: ignore[arg-type]
        max_steps=train.max_steps,
        max_epochs=-1,  # the data are a stream without end: steps alone count
        val_check_interval=max(1, train.max_steps // train.evaluations),
        check_val_every_n_epoch=None,  # so that the interval counts steps of the whole run
        gradient_clip_val=train.clip,
        log_every_n_steps=min(50, max(1, train.max_steps // 10)),  # ten times at least in a short run
        num_sanity_val_steps=0,  # which would put a point of an untrained model on the curve
        logger=[*loggers],
        plugins=[DurableCheckpointIO(), LightningEnvironment()],  # whatever scheduler we are under, a run is ours
        use_distributed_sampler=False,  # the data deals out its own batches
        callbacks=[*turn_callbacks(), *callbacks],  # first: what it passes on is the process before the step
        enable_autolog_hparams=False,  # the HParams row is written once, at the end, with its metrics
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    if trainer.precision != train.precision:  # Lightning takes another, and only warns
        raise UserError(f"train.precision={train.precision} needs a GPU; on processors: bf16-mixed.")
    allow_tf32(device == "cuda" and train.precision.endswith("-mixed"))
    trainer.fit_loop.epoch_loop = PlainSteps(trainer, train.capture)
    return trainer


@contextmanager
def telling_divergence(trainer: lightning.Trainer) -> Iterator[None]:
    """Say at which step a model answers with NaN, where a metric of validation refuses it.

    Raises:
        DivergedError: In place of the metric's error.
    """
    try:
        yield
    except RuntimeError as error:
        if NAN_REFUSED not in str(error):
            raise
        raise DivergedError(f"validation gives NaN at step {trainer.global_step}; {ADVICE}") from error
