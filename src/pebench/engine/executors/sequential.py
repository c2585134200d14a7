"""Runs one after the other in this process: the simplest executor, for debugging and for other schedulers."""

import time
from collections import deque
from collections.abc import Mapping, Sequence

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources
from pebench.engine.executors.worker import outcome, work
from pebench.engine.observer import Observer
from pebench.engine.signals import stopping


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
    """Make every run of a plan; see `pebench.engine.executors.Executor`."""
    from pebench.training.guests import contained  # it loads torch

    waiting = deque(plan)
    with stopping() as stop:
        while waiting:
            config = waiting.popleft()

            # The default binds the run of this turn; the loop's own name would mean a later one.
            def progress(step: int, metrics: Mapping[str, float], config: RunConfig = config) -> None:
                observer.progress(config, step, metrics)

            # Ctrl-C only sets the event: the run saves a checkpoint at its next step, and then the loop is left.
            with contained(config.directory):
                is_ours = work(config, options, progress, stop.is_set)
            if stop.is_set():
                raise KeyboardInterrupt
            if not is_ours:  # another process is making it
                waiting.append(config)
                time.sleep(1.0)
            elif record := outcome(config, options):
                observer.finished(record)
