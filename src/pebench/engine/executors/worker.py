"""One run, whatever happens: claimed, made, and recorded as finished or failed. Every executor calls `work`."""

import contextlib
import math
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pebench.atomic import full_disk
from pebench.config import Options, RunConfig
from pebench.errors import NAN_REFUSED, InterruptedRunError
from pebench.runs.leases import claim
from pebench.runs.records import Record, find_record, without_places, write_record
from pebench.runs.rubbish import CHECKPOINTS

LOG = "log.txt"
LOG_LINES = 20
OUT_OF_MEMORY = ("outofmemory", "out of memory", "can't allocate memory", "memoryerror", "status_alloc_failed")
"""Words of errors of memory, in lower case; the last ones are of cuBLAS and cuDNN."""
LOST_TRIES = 3
"""Number of starts after which a run whose worker or machine is lost counts as failed."""


def work(
    config: RunConfig,
    options: Options,
    on_progress: Callable[[int, Mapping[str, float]], None] = lambda step, metrics: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Make a run, unless it has a record or another process is making it.

    Afterwards there is a record of the run, finished or failed; none if it was stopped or is another's.

    Args:
        config: The run's configuration.
        options: How the run is made.
        on_progress: Called with the step and the latest metrics now and then.
        stop: Called at every step; the run saves where it is and stops once it returns True.

    Returns:
        False if another process is making the run.
    """
    folder, started = options.out / config.directory, time.monotonic()
    with _without_room(config, options.out, started), claim(folder) as lease:
        if lease is None:
            return False
        if outcome(config, options):  # another process has made it, or tried
            return True
        with contextlib.suppress(FileNotFoundError):
            os.truncate(folder / LOG, 0)  # an earlier attempt's, or another process's that had the run till now
        limit = options.time_limit_s or math.inf

        def progress(step: int, metrics: Mapping[str, float]) -> None:
            lease.report(step, metrics)
            on_progress(step, metrics)

        def stopped() -> bool:
            return stop() or time.monotonic() - started > limit

        try:
            from pebench.training.ddp import run_on_devices
            from pebench.training.runner import train

            if options.devices == 1:
                train(config, options, progress, stopped)
            else:
                run_on_devices(config, options, progress, stopped)
        except KeyboardInterrupt:
            raise
        except InterruptedRunError:
            if not stop():  # else no record: the run is not over
                overdue(config, options, time.monotonic() - started)
        except BaseException as error:
            _keep_failure(config, options, error, time.monotonic() - started)
    return True


def outcome(config: RunConfig, options: Options) -> Record | None:
    """Return the record of a run; None if it has none, or that of a failure that is to be tried again.

    Such a failure stays until the run leaves another record, which a further command takes for the outcome.
    """
    record = find_record(config, options.out)
    return None if record and options.retried and record.checksum in options.retried else record


@contextlib.contextmanager
def _without_room(config: RunConfig, out: Path, started: float) -> Iterator[None]:
    """Make a failure of a run whose folder takes no files, as on a full disk; the other runs go on."""
    try:
        yield
    except OSError as error:
        reason = failure_reason(full_disk(error, Path(error.filename or out / config.directory / LOG)))
        failed_record(config, out, "exception", reason, time.monotonic() - started)


def _keep_failure(config: RunConfig, options: Options, error: BaseException, duration_s: float) -> None:
    """Write the log and the record of a run that raised an exception, and show it in TensorBoard."""
    folder = options.out / config.directory
    with (folder / LOG).open("a", encoding="utf-8") as log:
        traceback.print_exception(error, file=log)
    kind = failure_kind(error)
    failed_record(config, options.out, kind, failure_reason(error), duration_s)
    if kind == "diverged":  # tried again, it would go on from weights that are about to
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    with contextlib.suppress(Exception):  # what TensorBoard shows is no reason to lose the other runs
        from pebench.training.tensorboard import log_failure

        log_failure(folder, config)


@contextlib.contextmanager
def logged(folder: Path) -> Iterator[None]:
    """Redirect what this process and its libraries print to the log of a run; nowhere if there is no room for one.

    Args:
        folder: The run's folder; made if need be.
    """
    kept = os.dup(1), os.dup(2)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = os.open(folder / LOG, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
    except OSError:  # the run itself says so, as its record has no room either
        log = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        for number, place in zip(kept, (1, 2), strict=True):
            os.dup2(number, place)
            os.close(number)
        os.close(log)


def failure_kind(error: BaseException) -> str:
    """Return the kind of a failure: ``diverged``, ``out of memory`` or ``exception``."""
    text = f"{type(error).__name__}: {error}".lower()
    if any(words in text for words in OUT_OF_MEMORY):
        return "out of memory"
    return "diverged" if "divergederror" in text or NAN_REFUSED in text else "exception"


def failure_reason(error: BaseException) -> str:
    """Return what happened in one line, with the encoding that caused it where that is known."""
    with contextlib.suppress(ImportError):
        from pebench.encodings.checks import blame

        return blame(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]


def failed_record(config: RunConfig, out: Path, kind: str, reason: str, duration_s: float) -> Record:
    """Write the record of a run that did not finish.

    Args:
        config: The run's configuration.
        out: Output folder.
        kind: ``exception``, ``diverged``, ``out of memory``, ``time limit``, ``killed`` or ``lost``.
        reason: The reason in one line.
        duration_s: Time that it ran, in seconds.
    """
    log = out / config.directory / LOG
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.is_file() else []
    # Records are published; the whole log stays where it is.
    error = {"kind": kind, "reason": without_places(reason), "log": without_places("\n".join(tail))}
    started = (datetime.now(UTC) - timedelta(seconds=duration_s)).isoformat(timespec="seconds")
    record = Record(config=config, status="failed", error=error, duration_s=duration_s, started=started)
    try:
        write_record(record, out)
    except (OSError, ValueError) as problem:  # a full disk, say: the other runs go on
        with contextlib.suppress(OSError):  # what is printed may go to a log on the same disk
            print(f"{config.directory}: {reason}; the record of it could not be written: {problem}", file=sys.stderr)
    return record


def overdue(config: RunConfig, options: Options, duration_s: float) -> Record:
    """Write the record of a run that took longer than it may."""
    reason = f"longer than the time limit of {options.time_limit_s:g} s"
    return failed_record(config, options.out, "time limit", reason, duration_s)
