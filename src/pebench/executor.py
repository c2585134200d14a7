"""Runs in processes of their own, several at a time. Nothing here imports torch.

Each run is a process forked from a server that has imported everything once. A run that crashes, is
killed or fails leaves a failed record and the others go on.
"""

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from pebench.config import Options, RunConfig
from pebench.display import Display
from pebench.errors import UserError
from pebench.records import FILE_NAME, Record, find_record, write_record

LOG = "log.txt"
LOG_LINES = 20
GRACE_S = 4.0
"""How long interrupted runs have to save a checkpoint, in seconds."""


def execute(plan: Sequence[RunConfig], options: Options, jobs: int, display: Display) -> None:
    """Do every run of a plan; each leaves a record, finished or failed.

    Args:
        plan: What to run, in this order.
        options: Where and on what.
        jobs: How many at a time.
        display: Told of everything.

    Raises:
        UserError: If data cannot be had or a run cannot work, before any of them starts.
        KeyboardInterrupt: On Ctrl-C, once all processes are gone.
    """
    context = _context()
    waiting, running = list(plan), list[_Running]()
    try:
        _prepare(context, plan, options, display)
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_Running.start(context, waiting.pop(0), options))
            for one in _events(running):
                if one.listen(display):
                    continue
                running.remove(one)
                display.finished(one.conclude(options.out))
            for one in [one for one in running if one.seconds > (options.time_limit_s or math.inf)]:
                running.remove(one)
                one.kill()
                reason = f"longer than the time limit of {options.time_limit_s:g} s"
                display.finished(failed_record(one.config, options.out, "time limit", reason, one.seconds))
    finally:
        _stop(running)


def _stop(running: Sequence["_Running"]) -> None:
    """Let runs save where they are, for a few seconds, and end what is left."""
    try:
        for one in running:
            with contextlib.suppress(OSError):
                one.connection.send("stop")
        deadline = time.monotonic() + GRACE_S
        for one in running:
            one.process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for one in running:
            one.kill()


def _context() -> Any:
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["pebench._preload"])  # type: ignore[attr-defined]
    return context


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off while a process starts: half started, it would answer with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _prepare(context: Any, plan: Sequence[RunConfig], options: Options, display: Display) -> None:
    """Prepare all data once, and build every model once, in a process of its own."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_check, args=(_distinct(plan), options, sender), daemon=True)
    process.start()
    sender.close()
    problems = None
    with contextlib.suppress(EOFError):
        while problems is None:
            message = receiver.recv()
            if isinstance(message, str):
                display.note(message)
            else:
                problems = message
    process.join()
    if problems is None:
        raise UserError(f"preparing the data ended with exit code {process.exitcode}; was memory short?")
    if problems:
        raise UserError("\n".join(problems))


def _distinct(plan: Sequence[RunConfig]) -> list[RunConfig]:
    """One run of each kind that can go wrong in its own way: without the seeds."""
    kinds = {(c.task, c.encoding, repr(c.encoding_args), c.model, c.data): c for c in plan}
    return list(kinds.values())


def _check(plan: Sequence[RunConfig], options: Options, connection: Connection) -> None:
    _follow_parent()
    problems: list[str] = []
    try:
        from pebench.data import datamodule_of
        from pebench.runner import build

        for config in plan:
            data = datamodule_of(config, options.data_dir)
            if not data.file.is_file():
                connection.send(f"preparing the data of {config.task} (once)")
            try:
                build(config, data)
                data.train_dataloader()
            except ValueError as error:
                problems.append(f"{config.task} with {config.encoding}: {error}")
        connection.send(problems)
    except UserError as error:
        connection.send([*problems, str(error)])
    except Exception:
        connection.send([f"pebench failed while preparing; please report this:\n{traceback.format_exc()}"])


@dataclass
class _Running:
    """A run in its process."""

    config: RunConfig
    process: Any
    connection: Connection
    started: float

    @staticmethod
    def start(context: Any, config: RunConfig, options: Options) -> "_Running":
        (options.out / config.directory / FILE_NAME).unlink(missing_ok=True)  # of a failure that is tried again
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(config, options, theirs), daemon=True)
        with _uninterrupted():
            process.start()
        theirs.close()  # or the end of the process would not be heard
        return _Running(config, process, ours, time.monotonic())

    def listen(self, display: Display) -> bool:
        """Pass on what the run tells; False once it has ended."""
        try:
            step, metrics = self.connection.recv()
        except (EOFError, OSError):
            return False
        display.progress(self.config, step, metrics)
        return True

    def conclude(self, out: Path) -> Record:
        """The run's record; a failed one is written for a process that died without."""
        self.process.join()
        record = find_record(self.config, out)
        if record is None:
            code = self.process.exitcode
            reason = f"killed by signal {-code}" if code and code < 0 else f"ended with exit code {code}"
            record = failed_record(self.config, out, "killed", reason, self.seconds)
        return record

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.started

    def kill(self) -> None:
        """End the run and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()


def _events(running: Sequence[_Running]) -> Iterator[_Running]:
    ready = wait([one.connection for one in running], timeout=1.0)
    yield from [one for one in running if one.connection in ready]


def _work(config: RunConfig, options: Options, connection: Connection) -> None:
    """Body of a run's process."""
    if hasattr(os, "setsid"):
        os.setsid()  # its own group: Ctrl-C is the parent's business, and a kill reaches its children
    stop = threading.Event()
    _follow_parent(connection, stop)
    folder = options.out / config.directory
    folder.mkdir(parents=True, exist_ok=True)
    log = os.open(folder / LOG, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    started = time.monotonic()

    def tell(step: int, metrics: Mapping[str, float]) -> None:
        with contextlib.suppress(OSError):
            connection.send((step, dict(metrics)))

    try:
        from pebench.callbacks import InterruptedRunError
        from pebench.runner import run

        with contextlib.suppress(InterruptedRunError):  # no record: the run is not over
            run(config, options, tell, stop.is_set)
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        failed_record(config, options.out, failure_kind(error), reason, time.monotonic() - started)


def failure_kind(error: BaseException) -> str:
    """``diverged``, ``out of memory`` or ``exception``."""
    text = f"{type(error).__name__}: {error}".lower()
    if "outofmemory" in text or "out of memory" in text or "can't allocate memory" in text or "memoryerror" in text:
        return "out of memory"
    return "diverged" if "divergederror" in text or "`nan` values" in text else "exception"


def failed_record(config: RunConfig, out: Path, kind: str, reason: str, duration_s: float) -> Record:
    """Write the record of a run that did not finish.

    Args:
        config: Of the run.
        out: Output folder.
        kind: ``exception``, ``diverged``, ``out of memory``, ``time limit`` or ``killed``.
        reason: In one line.
        duration_s: How long it ran.
    """
    log = out / config.directory / LOG
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.is_file() else []
    error = {"kind": kind, "reason": reason, "log": "\n".join(tail)}
    record = Record(config=config, status="failed", error=error, duration_s=duration_s)
    write_record(record, out)
    return record


def _follow_parent(connection: Connection | None = None, stop: threading.Event | None = None) -> None:
    """End this process when the one that started it is gone; set `stop` when it says something."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch(sentinel: int) -> None:
        if connection and stop and sentinel not in wait([sentinel, connection]):
            stop.set()
        wait([sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
