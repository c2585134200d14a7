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
from pathlib import Path
from typing import Any

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources, no_settings
from pebench.engine.executors.server import follow_parent, server, uninterrupted
from pebench.engine.executors.watching import Backlog
from pebench.engine.executors.worker import failed_record, logged, overdue, work
from pebench.engine.progress import Display
from pebench.runs.records import Record, find_record

GRACE_S = 4.0
"""How long runs that must end have to save a checkpoint, in seconds."""

TAKEN = 75
"""Exit code of a run's process that found another one at it."""


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, display: Display) -> None:
    """Do every run of a plan; see `pebench.engine.executors.Executor`."""
    no_settings("local", resources)
    context = server()
    backlog, running = Backlog(plan, options, display), list[_Running]()
    gpus = deque(resources.gpus[slot % len(resources.gpus)] for slot in range(resources.jobs) if resources.gpus)
    try:
        while backlog or running:
            for config in backlog.take(resources.jobs - len(running)):
                running.append(_Running.start(context, config, options, gpus.popleft() if gpus else None))
            if not running:
                time.sleep(1.0)  # the rest is being done elsewhere
            for one in _ended(running, options, display):
                running.remove(one)
                if one.gpu is not None:
                    gpus.append(one.gpu)
                record = one.conclude(options)
                if record:
                    display.finished(record)
                else:
                    backlog.waiting.append(one.config)  # another process is at it
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


@dataclass
class _Running:
    """A run in its process."""

    config: RunConfig
    process: Any
    connection: Any
    started: float
    gpu: str | None
    overdue: bool = False

    @staticmethod
    def start(context: Any, config: RunConfig, options: Options, gpu: str | None) -> "_Running":
        ours, theirs = context.Pipe()
        process = context.Process(target=_body, args=(config, options, gpu, theirs))
        with uninterrupted():
            process.start()
        theirs.close()  # or the end of the process would not be heard
        return _Running(config, process, ours, time.monotonic(), gpu)

    def listen(self, display: Display) -> bool:
        """Pass on what the run tells; False once it has ended."""
        try:
            step, metrics = self.connection.recv()
        except (EOFError, OSError):
            return False
        display.progress(self.config, step, metrics)
        return True

    def conclude(self, options: Options) -> Record | None:
        """The run's record; a failed one is written for a process that died without. None if it is another's."""
        self.process.join()
        record = find_record(self.config, options.out)
        code = self.process.exitcode
        if record or code == TAKEN:
            return record
        if self.overdue:
            return overdue(self.config, options, self.seconds)
        reason = f"killed by signal {-code}" if code and code < 0 else f"ended with exit code {code}"
        return failed_record(self.config, options.out, "killed", reason, self.seconds)

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


def _ended(running: Sequence[_Running], options: Options, display: Display) -> list[_Running]:
    """Pass on what the runs tell, for up to a second; those that have ended, or had to be."""
    ready = wait([one.connection for one in running], timeout=1.0) if running else []
    ended = [one for one in running if one.connection in ready and not one.listen(display)]
    for one in running:
        if one not in ended and one.seconds > (options.time_limit_s or math.inf) + GRACE_S:  # it did not end itself
            one.overdue = True
            one.kill()
            ended.append(one)
    return ended


def _body(config: RunConfig, options: Options, gpu: str | None, connection: Any) -> None:
    """What a run's process does."""
    if hasattr(os, "setsid"):
        os.setsid()  # its own group: Ctrl-C is the parent's business, and a kill reaches its children
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    stop = threading.Event()
    follow_parent(connection, stop)

    def tell(step: int, metrics: Mapping[str, float]) -> None:
        with contextlib.suppress(OSError):
            connection.send((step, dict(metrics)))

    with logged(Path(options.out / config.directory)):
        taken = not work(config, options, tell, stop.is_set)
    if taken:
        os._exit(TAKEN)
