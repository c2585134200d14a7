"""Resumption of a run: where an earlier attempt stopped, what it left, and whose checkpoints those are."""

import os
import shutil
import time
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from pebench.atomic import PART
from pebench.runs.records import FILE_NAME, WEIGHTS
from pebench.runs.rubbish import CHECKPOINTS
from pebench.training.loggers import FOLDER as LOGS
from pebench.training.tensorboard import FAILED


def check_whole(checkpoint: Path) -> None:
    """Refuse a checkpoint of which a part is not as it was written.

    torch stores a CRC-32 with each part, and does not look at it when it loads: one flipped bit in a weight would train
    on as another run.

    Raises:
        ValueError: With the part that is damaged.
        zipfile.BadZipFile: If it is no checkpoint of torch's.
    """
    with zipfile.ZipFile(checkpoint) as file:
        if damaged := file.testzip():
            raise ValueError(f"{checkpoint.name}: the checksum of its part {damaged} is not that of its content")


def resumable_step(checkpoint: Path, made_of: Mapping[str, Any] | None = None) -> int:
    """Return the step that an earlier attempt can be resumed from; 0 if there is none, or it cannot be read.

    Args:
        checkpoint: Checkpoint that the earlier attempt left.
        made_of: Data, code and versions of this attempt, if they matter; a run of others is another run, and begins
            again.
    """
    if not checkpoint.is_file():
        return 0
    try:
        for kept in checkpoint.parent.glob("*.ckpt"):  # the best weights so far, too
            check_whole(kept)
        # Mapped: of the whole state two entries are read.
        values = torch.load(checkpoint, weights_only=True, mmap=True)
        # Lightning keeps the state of a callback under the name of its class.
        if made_of and values["callbacks"].get("Resumable", {}).get("made_of") != made_of:
            warnings.warn(f"{checkpoint} is of other data, code or versions; the run begins again", stacklevel=2)
            return 0
        return int(values["global_step"])
    except Exception as error:  # torch raises many kinds for a damaged file
        warnings.warn(f"{checkpoint} is damaged ({error}); the run begins again", stacklevel=2)
        return 0


def clear(folder: Path, step: int) -> None:
    """Remove an earlier attempt's files from its folder, except those that this one resumes from.

    Args:
        folder: The run's folder; made if need be.
        step: Step that this attempt begins with; 0 for a new run.
    """
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return  # of the processes that share a run, the first alone writes
    folder.mkdir(parents=True, exist_ok=True)
    leftovers = [*folder.glob(PART), *folder.glob(f"*{FAILED}"), folder / WEIGHTS]
    for record in folder.glob(FILE_NAME):  # by a newer pebench, or damaged: it cannot be read here
        record.replace(folder / f"unreadable-{time.time_ns()}.json")
    if not step:
        for name in (CHECKPOINTS, LOGS):
            shutil.rmtree(folder / name, ignore_errors=True)
        leftovers += folder.glob("events.out.tfevents.*")
    leftovers += folder.glob(f"{CHECKPOINTS}/{PART}")
    for leftover in {*leftovers}:
        leftover.unlink(missing_ok=True)  # another process may have finished writing it


def check_best(best: ModelCheckpoint, step: float) -> None:
    """Refuse weights that this run did not write: two processes may be at one run where neither sees the other.

    Args:
        best: Callback that kept the best weights.
        step: Step of the best validation.

    Raises:
        RuntimeError: If the weights are of another step. Checkpoints are removed, or the next attempt would fail too.
    """
    path = Path(best.best_model_path)
    # Both processes write the same `best.ckpt`: the other may have replaced it since the best validation of this one.
    found = _step_of(path)
    if found != step:
        shutil.rmtree(str(best.dirpath), ignore_errors=True)
        raise RuntimeError(
            f"{path} holds {'nothing' if found is None else f'step {found}'}, expected step {step:g}: another process "
            "was at this run, it was killed between two checkpoints, or the file is damaged. Tried again, it begins "
            "anew."
        )


def _step_of(path: Path) -> int | None:
    """Return the step that a checkpoint is of; None if there is none, or it is damaged."""
    try:
        check_whole(path)
        return int(torch.load(path, weights_only=True, mmap=True)["global_step"])
    except Exception:  # torch raises many kinds for a damaged file
        return None
