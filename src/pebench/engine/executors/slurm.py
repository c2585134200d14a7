"""Runs as jobs of a SLURM cluster, through submitit. Nothing here imports torch.

The fate of a job is read from the run's folder and from ``squeue``: clusters without accounting answer nothing
else, and submitit's own results wait for an answer.
"""

import contextlib
import io
import json
import math
import pickle
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError
from submitit.helpers import DelayedSubmission

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources
from pebench.engine.executors.watching import WATCH_S, Backlog, with_threads
from pebench.engine.executors.worker import logged, outcome, work
from pebench.engine.observer import Observer
from pebench.engine.signals import handling
from pebench.errors import UserError

SHARED = (
    "cpus_per_task", "gpus_per_node", "mem_gb", "name", "nodes", "stderr_to_stdout", "tasks_per_node", "timeout_min",
)  # fmt: skip
"""Parameters of submitit that are not SLURM's alone, and so have no ``slurm_`` before their names."""

CHUNK = 1000
"""Largest array of jobs; SLURM's default allows one more."""

UNREACHABLE = "Unable to contact slurm controller"
"""Words of SLURM where the number of jobs is not what it refuses."""

TIMEOUT_MIN = 60
"""Time that a job may take, in minutes; a run that takes longer goes on in the next one."""

MARGIN_MIN = 5
"""Time that a job may take longer than its run, in minutes."""

QUEUE_S = 6.0
"""Time between two looks at the queue, and at the records of running jobs, in seconds."""

SETTLE_S = 5.0
"""Time that a record may take to be seen from here after its job has left the queue, in seconds."""

STOP_S = 40.0
"""Time that cancelled jobs have to end, in seconds; SLURM kills them after 30."""

PREEMPTED = signal.Signals[f"SIG{submitit.JobEnvironment.USR_SIG}"]
"""The signal that SLURM sends to a job that must give way, or whose time is nearly over."""


def check(settings: Mapping[str, str]) -> None:
    """Refuse settings that submitit does not have; see `_executor`."""
    _executor(Options(Path()), Resources(settings=settings))


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
    """Make every run of a plan; see `pebench.engine.executors.Executor`."""
    executor, cpus = _executor(options, resources)
    options = with_threads(options, cpus)
    backlog, jobs, chunk, asked = Backlog(plan, options, observer), list[_Job](), CHUNK, -math.inf
    try:
        while backlog or jobs:
            if looks := time.monotonic() - asked > QUEUE_S:
                asked = time.monotonic()
                most = min(chunk, _room(resources.jobs, len(jobs)), len(backlog.waiting))
                try:
                    jobs += _submit(executor, backlog, options, most)
                    chunk = min(2 * chunk, CHUNK)  # back up after a refusal, as jobs may be fewer now
                except FailedJobError as error:
                    if not jobs and (most == 1 or UNREACHABLE in str(error)):
                        raise UserError(f"SLURM takes no job: {' '.join(str(error).split())}") from error
                    chunk = max(1, most // 2)  # there may be a limit to the jobs of a user
                    if not jobs:
                        asked = -math.inf
                        continue
                if (queue := _queue()) is not None:
                    for job in jobs:
                        job.look(queue)
            for job in [job for job in jobs if job.over or (looks and not job.pending and backlog.record(job.config))]:
                jobs.remove(job)
                backlog.ended(job.config, job.loss())
            late = backlog.watch(job.config for job in jobs if not job.pending)
            _cancel(job.id for job in jobs if job.config in late)
            time.sleep(WATCH_S / 2)
    finally:
        _stop(jobs)


@dataclass(frozen=True)
class _Task:
    """The work of a job: a run."""

    options: Options

    def __call__(self, config: RunConfig) -> bool:
        """Make the run; return False if another process is making it.

        A signal only asks the run to stop: it saves where it is, and then the signal is submitit's.
        """
        asked = set[int]()

        def note(number: int, _: Any) -> None:
            asked.add(number)

        folder = self.options.out / config.directory
        with handling({PREEMPTED: note, signal.SIGTERM: note}), logged(folder):
            ours = work(config, self.options, stop=lambda: bool(asked))
        # Raised again only if the run is not finished: submitit then puts the job back into the queue.
        if PREEMPTED in asked and ours and not outcome(config, self.options):
            signal.raise_signal(PREEMPTED)
        return ours

    def checkpoint(self, config: RunConfig) -> Any:
        """Return the job that submitit puts into the queue again."""
        return DelayedSubmission(self, config)


@dataclass
class _Job:
    """A job and its run."""

    config: RunConfig
    id: str
    result: Path
    log: Path
    pending: bool = True
    gone: float | None = None

    def look(self, queue: dict[str, str]) -> None:
        """Note the state that SLURM's queue gives."""
        state = queue.get(self.id)
        self.pending = state in ("PD", "CF")  # waiting, or its node is being set up
        self.gone = None if state else self.gone or time.monotonic()

    @property
    def over(self) -> bool:
        """True once the job has left the queue for so long that its record would be seen."""
        return self.gone is not None and time.monotonic() - self.gone > SETTLE_S

    def loss(self) -> str:
        """Return why the job may have left no record; empty if another process is making its run."""
        what = "ended without a record"
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            kind, value = pickle.loads(self.result.read_bytes())
            if kind == "error":  # it did not get as far as its run
                what = f"failed: {value.strip().splitlines()[-1]}"
            elif not value:
                return ""
        return f"job {self.id} {what}, see {self.log}"


def _executor(options: Options, resources: Resources) -> tuple[submitit.AutoExecutor, int]:
    """Return the submitit executor, and the number of CPUs of each job.

    Raises:
        UserError: If there is no SLURM, or for settings that it does not have.
    """
    if not shutil.which("sbatch"):
        raise UserError("--executor slurm needs a machine that submits to SLURM, but there is no sbatch here.")
    parameters = _parameters(options, resources)
    # as often as it takes: every job of a run gets it further
    executor = submitit.AutoExecutor(options.out / "slurm" / "%j", "slurm", slurm_max_num_timeout=10**6)
    try:
        executor.update_parameters(**parameters)
    except (AssertionError, NameError, ValueError) as error:
        raise UserError(f"--executor-option: {str(error).splitlines()[0]}") from error
    return executor, parameters["cpus_per_task"]


def _parameters(options: Options, resources: Resources) -> dict[str, Any]:
    """Return the parameters of submitit, from the executor's settings."""
    limit = options.time_limit_s
    parameters: dict[str, Any] = {
        "name": "pebench",
        "cpus_per_task": (options.threads or 1) * options.devices,
        "gpus_per_node": options.devices if options.device == "cuda" else None,
        "timeout_min": math.ceil(limit / 60) + MARGIN_MIN if limit else TIMEOUT_MIN,
        "slurm_array_parallelism": resources.jobs or CHUNK,
        "slurm_additional_parameters": {"requeue": True},  # so that a job that must give way goes on later
    }
    for name, text in resources.settings.items():
        value: Any = text
        with contextlib.suppress(ValueError):
            value = json.loads(text)  # a number, a list of commands to set up with
        parameters[name if name in SHARED or name.startswith("slurm_") else f"slurm_{name}"] = value
    # since 22.05, srun does not take this over from sbatch
    parameters.setdefault("slurm_srun_args", [f"--cpus-per-task={parameters['cpus_per_task']}"])
    return parameters


def _room(most: int, there: int) -> int:
    """Return how many jobs may be submitted now: many at first, as SLURM lets `most` of them run at a time."""
    return most - there if most and there else CHUNK


def _submit(executor: submitit.AutoExecutor, backlog: Backlog, options: Options, most: int) -> list[_Job]:
    """Submit runs as an array of jobs.

    Raises:
        FailedJobError: If SLURM does not take them.
    """
    if not (configs := backlog.take(most)):
        return []
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # submitit prints what it raises, too
            jobs = executor.map_array(_Task(options), configs)
    except FailedJobError:
        backlog.put_back(configs)
        # submitit writes these before it asks SLURM, and leaves them where that refuses.
        for pattern in ("*.pkl", ".submission_file_*"):
            for left in (options.out / "slurm").glob(pattern):
                left.unlink(missing_ok=True)
        raise
    return [
        _Job(config, job.job_id, job.paths.result_pickle, job.paths.stderr)
        for config, job in zip(configs, jobs, strict=True)
    ]


def _queue() -> dict[str, str] | None:
    """Return the state of each waiting or running job of this user, by number; None if SLURM does not answer."""
    try:
        # -r gives every job of an array a line of its own.
        asked = subprocess.run(
            ["squeue", "--me", "-h", "-r", "-o", "%i %t"], capture_output=True, text=True, timeout=60, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return dict(line.split() for line in asked.stdout.splitlines())  # type: ignore[misc]


def _cancel(numbers: Iterable[str]) -> None:
    if numbers := sorted(numbers):
        subprocess.run(["scancel", *numbers], capture_output=True)


def _stop(jobs: Sequence[_Job]) -> None:
    """End jobs, waiting or running."""
    deadline = time.monotonic() + STOP_S
    _cancel({job.id.partition("_")[0] for job in jobs})  # whole arrays
    while jobs and time.monotonic() < deadline and {job.id for job in jobs} & set(_queue() or ()):
        time.sleep(1.0)
