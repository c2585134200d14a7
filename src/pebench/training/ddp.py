"""One run on several devices: one process for each, joined by Lightning's DDP."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

from pebench.config import Options, RunConfig
from pebench.errors import InterruptedRunError
from pebench.runs.parent import end_with_parent
from pebench.training.runner import Progress, train

LOST_S = 30.0
"""Seconds that a run has to fail by itself once one of its processes has failed."""


def run_on_devices(config: RunConfig, options: Options, on_progress: Progress, stop: Callable[[], bool]) -> None:
    """Train a run on several devices; see `pebench.training.runner.train`.

    On CPUs a device is a process, with ``options.threads`` threads each. The batch is dealt out to the
    devices and the gradients are averaged, so the run is the same but for rounding (and dropout).

    Args:
        config: Run to train.
        options: Output folder, device, number of devices and the like.
        on_progress: Called with the step and the latest metrics now and then.
        stop: Asked at every step whether to stop.
    """
    # Port 0 has the system choose a free one. Another process may take it before DDP does; the run then fails early.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        # Helpers inherit these. From LOCAL_RANK Lightning takes it that the processes are there, and starts none.
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "LOCAL_RANK": "0"}
    context = multiprocessing.get_context("spawn")  # nothing half-initialised is inherited
    helpers = [context.Process(target=_train_share, args=(config, options, rank)) for rank in range(1, options.devices)]
    over = threading.Event()
    # Daemons: a watcher that waits for a helper must not keep this process alive.
    watchers = [threading.Thread(target=_end_with, args=(helper, over), daemon=True) for helper in helpers]
    try:
        for helper, watcher in zip(helpers, watchers, strict=True):
            helper.start()
            watcher.start()
        train(config, options, on_progress, stop)
        over.set()
        for watcher in watchers:
            # Each ends with its helper, which may so end by itself: below, what is left is killed.
            watcher.join()
    finally:
        over.set()
        for helper in helpers:
            if helper.pid is not None:  # else it never started, and kill() would hide the error that kept it from it
                helper.kill()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()  # or this process's next run would wait for the helpers
        for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
            os.environ.pop(name)


def _end_with(helper: Any, over: threading.Event) -> None:
    """Wait for a process to end; if it failed while the run goes on, end this process too.

    This process may be waiting for that one, for half an hour, where no exception can reach it.
    """
    helper.join()
    # Given time, an error of DDP's own may end the run in the usual way.
    if helper.exitcode and not over.wait(LOST_S):
        sys.stderr.write(f"a process of this run ended with exit code {helper.exitcode}\n")
        os._exit(1)


def _train_share(config: RunConfig, options: Options, rank: int) -> None:
    """Train the same run in a further process, which neither reports nor writes."""
    # A terminal's Ctrl-C reaches every process; the first alone decides, and all stop at the same step.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["LOCAL_RANK"] = str(rank)
    end_with_parent()
    with contextlib.suppress(InterruptedRunError):  # all stop together
        train(config, options)
