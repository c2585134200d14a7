"""How runs are made: the executor, and the devices, processes and folders that it may use."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from pebench.config import Options, RunConfig
from pebench.encodings import registry
from pebench.engine.executors import Resources, check_name
from pebench.engine.observer import Observer
from pebench.engine.options import check_data_dir, check_numbers
from pebench.errors import UserError, given_path, unknown_name
from pebench.formatting import counted, quoted
from pebench.runs.records import lacks_weights
from pebench.tasks import registry as tasks
from pebench.tasks.sources import data_folder

HERE = ("sequential", "together")
"""Executors whose runs are made in this process."""

LOCAL = ("local", *HERE)
"""Executors whose runs are made on this machine."""

DEVICES = ("auto", "cpu", "cuda")

OFFLINE = {"PEBENCH_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
"""Environment variables that forbid the network."""


class RunOptions(TypedDict, total=False):
    """Keyword arguments of `pebench.run_suite` that say how runs are made; see there."""

    executor: str
    executor_options: Mapping[str, str] | None
    jobs: int | None
    threads: int | None
    device: str
    devices: int
    data_dir: Path | str | None
    time_limit: float | None
    offline: bool
    retry_failed: bool
    keep_weights: bool
    analyze: bool
    loggers: str | Sequence[str]
    published: Path | str | bool
    observer: Observer | None


@dataclass(frozen=True)
class Execution:
    """How runs are made, checked: `pebench.run_suite` documents each field.

    Raises:
        UserError: For values that cannot be.
    """

    out: Path
    executor: str = "local"
    executor_options: Mapping[str, str] = field(default_factory=dict)
    jobs: int | None = None
    threads: int | None = None
    device: str = "auto"
    devices: int = 1
    data_dir: Path | None = None
    time_limit: float | None = None
    offline: bool = False
    retry_failed: bool = False
    keep_weights: bool = False
    analyze: bool = False
    loggers: tuple[str, ...] = ()
    published: Path | bool = True

    def __post_init__(self) -> None:
        check_data_dir(self.data_dir)
        if isinstance(self.published, Path) and not self.published.is_dir():
            raise UserError(f"--published expects a folder such as results, but {str(self.published)!r} is none.")
        if self.out.exists() and not self.out.is_dir():
            raise UserError(f"--out expects a folder, but {str(self.out)!r} is a file.")
        check_name(self.executor)
        if self.device not in DEVICES:
            raise unknown_name("device", self.device, DEVICES)
        check_numbers(vars(self))

    @property
    def local(self) -> bool:
        """True if runs are made on this machine."""
        return self.executor in LOCAL

    @property
    def here(self) -> bool:
        """True if runs are made in this process."""
        return self.executor in HERE

    @property
    def elsewhere(self) -> bool:
        """True if runs are left to another scheduler."""
        return self.executor == "commands"

    def worker_options(self, jobs: int | None) -> Options:
        """Return the options that every run gets.

        Args:
            jobs: Number of runs at a time, which share this machine's processors; None where it is not known.
        """
        # PyTorch takes all cores unless a number is set: several runs at a time would then wait for each other.
        share = max(1, cores() // (jobs * self.devices)) if self.local and jobs else None
        folders, modules = tasks.needs()  # of encodings, too
        return Options(
            out=self.out.resolve(),  # workers of a cluster start in another folder
            data_dir=self.data_dir and self.data_dir.resolve(),
            device=self.device,
            threads=self.threads or share,
            time_limit_s=self.time_limit,
            devices=self.devices,
            keep_weights=self.keep_weights,
            analyze=self.analyze,
            loggers=self.loggers,
            folders=folders,
            modules=modules,
        )

    def resources(self, jobs: int | None) -> Resources:
        """Return what the executor may use for `jobs` runs at a time."""
        # Runs of one process go on in turn, and `jobs` is one of them; how many there may be is for their executor.
        at_a_time = self.jobs if self.here else jobs
        return Resources(at_a_time or 0, gpu_groups(self) if self.local else [], self.executor_options)


def execution(out: Path | str, options: RunOptions) -> Execution:
    """Return checked options of a run; data is looked for in ``PEBENCH_DATA_DIR`` where no folder is named.

    Args:
        out: Output folder.
        options: The keyword arguments of `pebench.run_suite`; an observer among them is left out.

    Raises:
        UserError: For values that cannot be.
    """
    if wrong := sorted(options.keys() - RunOptions.__annotations__):
        raise unknown_name("option of a run:", wrong[0], RunOptions.__annotations__)
    if not isinstance(options.get("observer"), Observer | None):
        raise UserError(f"observer expects an instance of pebench.Observer, got {quoted(options['observer'])}.")
    folder = given_path("out", out)
    values: dict[str, object] = {name: value for name, value in options.items() if name != "observer"}
    values["data_dir"] = data_folder(options.get("data_dir"))
    published = options.get("published", True)
    values["published"] = Path(published) if isinstance(published, str) else published
    loggers = options.get("loggers", ())
    values["loggers"] = loggers = (loggers,) if isinstance(loggers, str) else tuple(loggers)
    for logger in loggers:
        if not isinstance(logger, str):
            expected = "loggers expects each logger as text, as each run makes its own, such as "
            raise UserError(f"{expected}'lightning.pytorch.loggers.CSVLogger', got {quoted(logger)}.")
    values["executor_options"] = options.get("executor_options") or {}
    return Execution(folder, **values)  # type: ignore[arg-type]


@contextmanager
def environment(how: Execution) -> Iterator[None]:
    """Forbid the network within the context, if `how` does.

    Raises:
        UserError: In a process that multiprocessing starts, where a script is read a second time.
    """
    # Set by multiprocessing while a new process imports the main script: a call there would start processes without
    # end.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UserError(
            "pebench was called while a run's process read this script again. Put the call below "
            "if __name__ == '__main__': or use executor='sequential'."
        )
    # Variables instead of an argument: the libraries that download read them, and the processes of runs are given them.
    before = {name: os.environ.get(name) for name in OFFLINE}
    if how.offline:
        os.environ |= OFFLINE
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def cores() -> int:
    """Return the number of processors that this process may use, by its affinity and a container's quota."""
    import joblib

    return int(joblib.cpu_count())


def gpu_groups(how: Execution) -> list[str]:
    """Return the GPUs of each run at a time, as many as a run has devices: ``["0,1", "2,3"]``; none on processors.

    Raises:
        UserError: If there are fewer than one run needs.
    """
    import torch

    each = how.devices
    # As many as this torch can use: a card may be there that is too old for it.
    usable = torch.cuda.device_count() if how.device in ("auto", "cuda") and torch.cuda.is_available() else 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # Where the user has chosen cards, their names (numbers or UUIDs) are handed on: a run's process counts from what it
    # is given, so positions among the visible ones would mean other cards.
    cards = [str(number) for number in range(usable)] if visible is None else visible.split(",")[:usable]
    if 0 < len(cards) < each:
        raise UserError(f"--devices {each} expects as many GPUs, got {len(cards)}. Or run on processors: --device cpu")
    # Cards that are left over are too few for a run, and stay idle.
    return [",".join(cards[i : i + each]) for i in range(0, len(cards) - each + 1, each)]


def runs_at_a_time(runs: int, how: Execution) -> int:
    """Return how many of `runs` are made at a time: on this machine, or elsewhere as many as are asked for."""
    if not how.local:
        return how.jobs or 1
    if how.here:
        return 1
    return max(1, min(runs, how.jobs or len(gpu_groups(how)) or cores() // how.devices))


def missing_weights(finished: Iterable[RunConfig], how: Execution) -> str:
    """Return a sentence on finished runs without the weights that are to be kept; nothing where all have theirs."""
    number = sum(lacks_weights(config, how.out) for config in finished) if how.keep_weights else 0
    if not number:
        return ""
    return (
        f"--keep-weights: {counted(number, 'finished run')} without weights, not made again; "
        "another folder (--out) would make them"
    )


def check_reach(kinds: Iterable[RunConfig], executor: str) -> None:
    """Refuse encodings and tasks that the processes of runs cannot know.

    Args:
        kinds: A run of each kind.
        executor: Name of the executor.

    Raises:
        UserError: With what to do.
    """
    if executor in HERE:
        return
    # Multiprocessing imports the script again in each process. A cluster's worker imports modules alone, and a printed
    # command line neither.
    kinds, imports = list(kinds), (executor == "local", executor != "commands")
    # Options too: in stack(first='mine') the encoding that must be known stands in one.
    words = [word for config in kinds for word in (config.encoding, *map(str, config.encoding_args.values()))]
    for kind, name, option in (
        ("encoding", registry.stays_here(words, *imports), "--pe module:Class"),
        ("task", tasks.stays_here([config.task for config in kinds], *imports), "--task module:my_task"),
    ):
        if name:
            raise UserError(
                f"{kind} {name!r} was registered by a script, a notebook, a suite's file or a module that runs of "
                f"--executor {executor} do not import: have it in a module, and ask for it as {option}."
            )


def check_devices(kinds: Sequence[RunConfig], how: Execution) -> None:
    """Refuse devices that are not here, or do not serve the runs.

    Raises:
        UserError: With what was expected.
    """
    for config in kinds:
        # DDP takes the mean of the devices' gradients, which is the batch's only if their shares are equally large.
        if (size := config.train.batch_size) % how.devices:
            raise UserError(f"{config.task}: train.batch_size must be a multiple of --devices, got {size}.")
    if how.executor == "together" and how.devices > 1:
        raise UserError(
            f"--executor together puts several runs on one device; --devices {how.devices} takes another executor, "
            "such as local."
        )
    if not how.local:
        return  # other machines have other devices
    import torch

    there = torch.cuda.is_available()
    if how.device == "cuda" and not there:
        raise UserError("--device cuda: there is none here, or this torch cannot use it. See: --device auto")
    if how.device == "cpu" or not there:
        for config in kinds:
            if config.train.precision == "16-mixed":  # Lightning would compute in bfloat16 under this name
                raise UserError("train.precision=16-mixed needs a GPU; on processors: bf16-mixed.")
