"""LightningDataModules: data held as tensors, batched and augmented a whole batch at a time."""

from pathlib import Path
from typing import Any

from pebench.compat import import_torchvision

import_torchvision()  # before lightning, which imports it through torchmetrics

from pebench.config import Augmentation, RunConfig, size_factors  # noqa: E402
from pebench.data.base import TensorDataModule  # noqa: E402
from pebench.data.images import Images  # noqa: E402
from pebench.errors import UserError, unknown_name  # noqa: E402
from pebench.tasks import configure, find_task  # noqa: E402
from pebench.tasks.sources import data_folder  # noqa: E402


def datamodule(task: str, data_dir: str | Path | None = None, **options: Any) -> TensorDataModule:
    """Return the data of a task, for any `lightning.Trainer`.

    Args:
        task: Name of a task.
        data_dir: Local folder that stands in for the download; ``None`` takes ``PEBENCH_DATA_DIR`` if set.
        options: Changes to the task's defaults: ``batch_size``, ``seed``, ``max_len``,
            ``vocab_size``, ``patch_size``; for images an ``augmentation``, a `pebench.config.Augmentation`.

    Raises:
        UserError: For an unknown task or option.
    """
    config = configure(task, "none")
    try:
        return datamodule_of(config, data_dir, **options)
    except TypeError as error:  # anyone's class, whose options only its constructor knows
        for name in options:
            if f"unexpected keyword argument {name!r}" in str(error):
                known = [option for option, value in vars(config.data).items() if value is not None]
                raise unknown_name(f"option of the data of {task!r}:", name, ["batch_size", "seed", *known]) from error
        raise


def datamodule_of(config: RunConfig, data_dir: str | Path | None = None, **options: Any) -> TensorDataModule:
    """Return the data of a run; see `datamodule`.

    Raises:
        UserError: For an augmentation that the data of a task of yours cannot have.
    """
    task = find_task(config.task)
    data = {k: v for k, v in vars(config.data).items() if v is not None}
    # The later wins: what a task fixes stands above the run's settings, and the caller above all.
    values = {"batch_size": config.train.batch_size, "seed": config.seed, **data, **task.data_args, **options}
    kind, augmentation = task.data_class(), Augmentation.of(config.train)
    if augmentation == Augmentation():
        pass  # not handed on: a class of yours need not take it
    elif issubclass(kind, Images):
        values = {"augmentation": augmentation, **values}
    else:
        raise UserError(f"{config.task}: its data augment no images, as those of pebench.data.images.Images do.")
    made: TensorDataModule = kind(data_dir=data_folder(data_dir), **values)
    made.factors = size_factors(config.train.beyond) or task.beyond
    return made
