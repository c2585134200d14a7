"""Runs in processes of their own, several at a time. Nothing here imports torch.

Each run is a process forked from a server that has imported everything once. A run that crashes, is
killed or fails leaves a failed record and the others go on.
"""

import contextlib
import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources
from pebench.engine.executors.server import current_environment, follow_parent, server, uninterrupted
from pebench.engine.executors.watching import Backlog
from pebench.engine.executors.worker import failed_record, logged, outcome, overdue, work
from pebench.engine.observer import Observer
from pebench.engine.signals import Terminated
from pebench.runs.parent import end_without_guests
from pebench.runs.records import Record

GRACE_S = 4.0
"""How long runs that must end have to save a checkpoint, in seconds."""

TERMINATION_S = 12.0
"""The same after SIGTERM, in seconds.

Checkpoints of large models on a slow disk may need it. At a keyboard somebody waits, but SIGTERM is of a script or a
scheduler, and these wait longer before they kill: the queue of large suites 15 s, SLURM 30 s.
"""


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
    """Make every run of a plan; see `pebench.engine.executors.Executor`."""
    context, grace = server(), GRACE_S
    backlog, running = Backlog(plan, options, observer), list[_Running]()
    # With more jobs than groups of GPUs several runs share one: small models leave a GPU idle.
    gpus = deque(resources.gpus[slot % len(resources.gpus)] for slot in range(resources.jobs) if resources.gpus)
    try:
        while backlog or running:
            for config in backlog.take(resources.jobs - len(running)):
                with uninterrupted():  # else Ctrl-C could come between a process and its place in the list
                    running.append(_Running.start(context, config, options, gpus.popleft() if gpus else None))
            if not running:
                time.sleep(1.0)  # other processes make the rest
            for one in _ended(running, options, observer):
                running.remove(one)
                if one.gpu is not None:
                    gpus.append(one.gpu)
                record = one.conclude(options)
                if record:
                    observer.finished(record)
                else:
                    backlog.waiting.append(one.config)  # another process is making it
    except Terminated:
        grace = TERMINATION_S
        raise
    finally:
        _stop(running, grace)


def _stop(running: Sequence["_Running"], grace: float) -> None:
    """Let runs save where they are for some seconds, and end those that are left."""
    try:
        for one in running:
            with contextlib.suppress(OSError):
                one.connection.send("stop")  # whatever is sent means this
        deadline = time.monotonic() + grace
        for one in running:
            one.process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for one in running:
            one.kill()


@dataclass
class _Running:
    """A run in its process.

    Args:
        config: The run's configuration.
        process: The process.
        connection: Receives steps and metrics from the process, and sends it the wish to stop.
        started: Time of the start, in seconds.
        gpu: GPUs of the run, ``"0,1"``; None on processors.
        overdue: True once it was ended for its time limit.
        ours: False once the process has said that another one is making the run.
        over: Time at which the process had nothing left to do but to end; None before.
    """

    config: RunConfig
    process: Any
    connection: Any
    started: float
    gpu: str | None
    overdue: bool = False
    ours: bool = True
    over: float | None = None

    @staticmethod
    def start(context: Any, config: RunConfig, options: Options, gpu: str | None) -> "_Running":
        ours, theirs = context.Pipe()
        # The environment goes along, as the server that forks the process has that of its own start.
        process = context.Process(target=_run, args=(config, options, gpu, theirs, current_environment()))
        process.start()
        theirs.close()  # else the end of the process would not close the pipe
        return _Running(config, process, ours, time.monotonic(), gpu)

    @property
    def signs(self) -> list[Any]:
        """The signs of life to wait for: a message, and the end of the process.

        The end of the connection would not do: a process that the run leaves behind may hold it open.
        """
        return [self.process.sentinel, *([self.connection] if self.over is None else [])]

    def receive(self, observer: Observer) -> None:
        """Pass the run's latest step and metrics on; its last message says whether the run was its own."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.over = time.monotonic()
            return
        if isinstance(message, bool):
            self.ours, self.over = message, time.monotonic()
        else:
            observer.progress(self.config, *message)

    def conclude(self, options: Options) -> Record | None:
        """Return the run's record, written here for a process that died without; None if it is another's run."""
        self.kill()
        record = outcome(self.config, options)
        # A record counts whatever the exit code is: a process may crash at its end, with the run written.
        if record or not self.ours:
            return record
        if self.overdue:
            return overdue(self.config, options, self.seconds)
        code = self.process.exitcode
        reason = f"ended with exit code {code}" if code else "ended without a record"
        if code and code < 0:
            reason = f"killed by signal {-code}"
        return failed_record(self.config, options.out, "killed", reason, self.seconds)

    @property
    def seconds(self) -> float:
        """Time since the start, in seconds."""
        return time.monotonic() - self.started

    def kill(self) -> None:
        """End the run and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
            # The group has the run's data loaders and the processes of its other devices. Windows has no groups
            # (AttributeError).
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


def _ended(running: Sequence[_Running], options: Options, observer: Observer) -> list[_Running]:
    """Pass the progress of runs on, for up to a second; return those that have ended or had to be ended."""
    ready = wait([sign for one in running for sign in one.signs], timeout=1.0) if running else []
    ended = []
    for one in running:
        if one.connection in ready:
            one.receive(observer)
        if gone := one.process.sentinel in ready:
            while one.over is None and one.connection.poll():
                one.receive(observer)
        # It did not end itself: for its time limit, or with its run over, as a thread or a process of it goes on.
        one.overdue = one.overdue or (one.over is None and one.seconds > (options.time_limit_s or math.inf) + GRACE_S)
        stuck = one.over is not None and time.monotonic() - one.over > GRACE_S
        if gone or one.overdue or stuck:
            ended.append(one)
    return ended


def _run(config: RunConfig, options: Options, gpu: str | None, connection: Any, environment: Mapping[str, str]) -> None:
    """Make a run, in its process."""
    if hasattr(os, "setsid"):
        os.setsid()  # its own group: Ctrl-C is the parent's business, and a kill reaches its children
    os.environ |= environment
    # Without one none is visible: else the optimizer would look for the driver at every step, 5 % of a small model's.
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu or ""
    stop = threading.Event()
    follow_parent()
    threading.Thread(target=_stop_on_message, args=(connection, stop), daemon=True).start()

    def send(step: int, metrics: Mapping[str, float]) -> None:
        with contextlib.suppress(OSError):
            connection.send((step, dict(metrics)))  # fails if the parent is gone; then the watcher ends this process

    with logged(options.out / config.directory):
        is_ours = work(config, options, send, stop.is_set)
    with contextlib.suppress(OSError):
        connection.send(is_ours)
    end_without_guests(0)


def _stop_on_message(connection: Any, stop: threading.Event) -> None:
    """Set `stop` when the parent sends something."""
    with contextlib.suppress(EOFError, OSError):
        connection.recv()
        stop.set()
