"""Executors: they make runs on this machine's cores and GPUs, on a Ray or SLURM cluster, or by other means.

Every executor is a module with a function `execute`, and with one that checks its settings, `check`, if it has any. All
of them make a run by `worker.work`. Runs are independent and leave nothing but their records, so an executor may lose
one, or make one twice.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol, cast

from pebench.config import Options, RunConfig
from pebench.engine.observer import Observer
from pebench.errors import UserError, unknown_name

EXECUTORS = {
    "local": "a process per run, several at a time (default)",
    "sequential": "one after the other in this process",
    "together": "several at a time in this process, on one GPU",
    "ray": "a Ray cluster; needs the extra ray, as in pip install '.[ray]'",
    "slurm": "jobs of a SLURM cluster; needs the extra slurm, as in pip install '.[slurm]'",
    "commands": "print a command line per run, for any other scheduler",
}


@dataclass(frozen=True)
class Resources:
    """The processes and GPUs that runs may use.

    Args:
        jobs: Runs at a time; 0 leaves it to a cluster's executor.
        gpus: GPUs of each run at a time, as ``CUDA_VISIBLE_DEVICES`` takes them: ``"0,1"``; empty on processors.
        settings: The executor's own settings, from ``--executor-option``.
    """

    jobs: int = 1
    gpus: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


class Executor(Protocol):
    """Makes every run of a plan; each leaves a record, finished or failed."""

    def __call__(self, plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
        """Make the runs.

        Args:
            plan: Runs to make, in this order.
            options: How each of them is made.
            resources: Processes and GPUs that they may use.
            observer: Follows the runs; its `progress`, `finished` and `note` are called.

        Raises:
            KeyboardInterrupt: On Ctrl-C, once no run of ours goes on.
            UserError: If a cluster does not answer, or takes no job. Wrong settings are refused by `check_settings`.
        """


def check_name(name: str) -> None:
    """Refuse a name that no executor has; imports none.

    Raises:
        UserError: With the nearest.
    """
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)


def find_executor(name: str) -> Executor:
    """Return the executor called `name`.

    Raises:
        UserError: If there is none, or a package that it needs is not installed.
    """
    return cast(Executor, _module(name).execute)


def check_settings(name: str, settings: Mapping[str, str]) -> None:
    """Refuse settings that an executor does not have or cannot use.

    Raises:
        UserError: For these, and where `find_executor` raises it.
    """
    module = _module(name)
    if hasattr(module, "check"):
        module.check(settings)
    elif settings:
        raise UserError(f"--executor {name} has no options, got {', '.join(settings)}.")


def _module(name: str) -> ModuleType:
    check_name(name)
    try:
        return importlib.import_module(f"pebench.engine.executors.{name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("pebench"):  # a mistake of ours, not an extra that is missing
            raise
        how = f"in a clone of pebench: pip install '.[{name}]'"
        raise UserError(f"--executor {name} needs the extra {name}; {how} ({error}).") from error
