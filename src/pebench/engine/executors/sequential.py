"""Runs one after the other in this process: the simplest executor, for debugging and for other schedulers."""

import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources, no_settings
from pebench.engine.executors.worker import work
from pebench.engine.progress import Display
from pebench.runs.records import find_record


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, display: Display) -> None:
    """Do every run of a plan; see `pebench.engine.executors.Executor`."""
    no_settings("sequential", resources)
    stop = threading.Event()

    def interrupt(*_: Any) -> None:
        if stop.is_set():  # asked twice: at once
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    waiting = deque(plan)
    try:
        while waiting:
            config = waiting.popleft()
            done = work(config, options, lambda step, metrics: display.progress(config, step, metrics), stop.is_set)  # noqa: B023
            if stop.is_set():
                raise KeyboardInterrupt
            if not done:  # it is being done elsewhere
                waiting.append(config)
                time.sleep(1.0)
            elif record := find_record(config, options.out):
                display.finished(record)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
