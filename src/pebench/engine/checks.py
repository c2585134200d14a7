"""The checks before runs: ``pebench run`` and its ``--dry-run`` make the same ones."""

import contextlib
import math
import os
from collections.abc import Iterable, Sequence

from pebench.config import RunConfig
from pebench.engine.execution import Execution, check_devices, check_reach, gpu_groups
from pebench.errors import UserError
from pebench.runs.costs import Cost, check_costs
from pebench.tasks import find_task
from pebench.tasks.own import OwnTask, take_remarks

BYTES = 4
"""Bytes of a weight, which a model has at least while it is built."""

TRAINED = 4 * BYTES
"""Bytes of a weight in training, at least: itself, its gradient, and both of Adam's moments."""

ANYWHERE = 2**43
"""Memory that no machine of a cluster is taken to have, in bytes."""


def check_data(runs: Iterable[RunConfig], how: Execution) -> None:
    """Refuse runs whose data cannot be had; needs no torch, and so comes before anything heavy is imported.

    Raises:
        UserError: If the data is not here and cannot be downloaded.
    """
    for config in {(config.task, config.data): config for config in runs}.values():
        find_task(config.task).check_available(config.data, how.data_dir)


def data_remarks(runs: Iterable[RunConfig]) -> list[str]:
    """Return what a user is told about data of their own before anything trains; once in a process."""
    tasks = {config.task: find_task(config.task) for config in runs}.values()
    keys = dict.fromkeys(task.data_args["own"] for task in tasks if isinstance(task, OwnTask))
    return [f"{key}: {remark}" for key in keys for remark in take_remarks(key)]


def check_kinds(kinds: Sequence[RunConfig], how: Execution) -> dict[str, Cost]:
    """Refuse what cannot work, before anything trains, and return the cost of each kind of run; loads torch.

    Args:
        kinds: A run of each kind.
        how: How runs are made.

    Raises:
        UserError: With what was expected.
    """
    _check_sizes(kinds, how)  # before any encoding is built, which may fill the memory
    from pebench.training.guests import contained

    if how.loggers:
        from pebench.training.loggers import check_loggers

        with contained("making the loggers of these runs"):
            check_loggers(how.loggers)
    with contained("building the encodings of these runs"):
        costs = check_costs(kinds)  # builds each encoding once
    check_reach(kinds, how.executor)
    check_devices(kinds, how)
    if how.local:
        gpu_groups(how)
    return costs


def _check_sizes(kinds: Iterable[RunConfig], how: Execution) -> None:
    """Refuse models that do not fit into memory, by their blocks and tables alone.

    Raises:
        UserError: With the memory that a model needs and the memory that is here.
    """
    here = memory() if how.local else None
    for config in kinds:
        model, vocabulary = config.model, config.data.vocab_size or 0
        hidden = model.d_ff or 4 * model.d_model
        weights = model.num_layers * (4 * model.d_model**2 + 2 * model.d_model * hidden) + vocabulary * model.d_model
        # The encoding's table, or what else has a number for each position and channel.
        weights += math.prod(find_task(config.task).extent(config.data)) * model.d_model
        least, most = weights * (TRAINED if how.device == "cpu" else BYTES), here or ANYWHERE
        if least > most:
            raise UserError(
                f"{config.task}: a model of this size (model.d_model={model.d_model}, "
                f"model.num_layers={model.num_layers}) needs at least {least / 2**30:,.0f} GiB of memory, but "
                f"{'this machine has' if here else 'no machine has more than'} {most / 2**30:,.0f} GiB."
            )


def memory() -> int | None:
    """Return the memory of this machine in bytes; None where the system does not tell."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None
