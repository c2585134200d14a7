"""The backlog of runs that are left to be started, for executors that start them in other processes."""

import contextlib
import math
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pebench.config import Options, RunConfig
from pebench.engine.executors.worker import LOST_TRIES, failed_record, outcome, overdue
from pebench.engine.observer import Observer
from pebench.runs.leases import Holder, holder_of
from pebench.runs.records import Record

WATCH_S = 2.0
"""Time between two looks at how far runs are, in seconds."""

LATE_S = 30.0
"""Time that a run over its time limit has to end by itself, in seconds."""


class Backlog:
    """The runs of a plan that are left to be started, and the fate of those that have been.

    Args:
        plan: Runs to make, in this order.
        options: How each of them is made.
        observer: Follows the runs.
    """

    def __init__(self, plan: Sequence[RunConfig], options: Options, observer: Observer) -> None:
        self.waiting, self.options, self.observer = deque(plan), options, observer
        self.tries = Counter[str]()
        self.begun: dict[str, tuple[Holder, float]] = {}
        self.late = set[str]()
        self.watched = -math.inf

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def take(self, most: int) -> list[RunConfig]:
        """Return the first runs that nobody is making, to be started; report those that others have finished.

        Args:
            most: Largest number of runs to return.
        """
        taken: list[RunConfig] = []
        for _ in range(len(self.waiting)):
            if len(taken) >= most:
                break
            config = self.waiting.popleft()
            record = self.record(config)
            if record:
                self.observer.finished(record)
            elif holder_of(self.options.out / config.directory):
                self.waiting.append(config)  # that process may end without a record, and then the run is ours
            else:
                self.begun.pop(config.key, None)  # the time of an earlier start does not count against this one
                taken.append(config)
        return taken

    def put_back(self, configs: Sequence[RunConfig]) -> None:
        """Put runs that could not be started back, as the next ones."""
        self.waiting.extendleft(reversed(configs))

    def record(self, config: RunConfig) -> Record | None:
        """Return the record of a run, or None."""
        with contextlib.suppress(OSError):
            os.listdir(self.options.out / config.directory)  # has a network file system look again
        return outcome(config, self.options)

    def watch(self, started: Iterable[RunConfig]) -> list[RunConfig]:
        """Report how far runs are; now and then, however often this is called.

        Returns:
            The runs that are over their time limit and should have ended by themselves.
        """
        now = time.monotonic()
        if now - self.watched < WATCH_S:
            return []
        self.watched = now
        # By this machine's clock, from the first look at the lease on: those of other machines may differ.
        limit = (self.options.time_limit_s or math.inf) + LATE_S
        late = []
        for config in started:
            if holder := holder_of(self.options.out / config.directory):
                if holder.step:
                    self.observer.progress(config, holder.step, holder.metrics)
                known, begun = self.begun.setdefault(config.key, (holder, now))
                if known.since != holder.since:  # begun again, elsewhere
                    self.begun[config.key] = holder, now
                elif now - begun > limit:
                    self.late.add(config.key)
                    late.append(config)
        return late

    def ended(self, config: RunConfig, lost: str) -> None:
        """Report the record that an ended worker has left, or put its run back to be started again.

        Args:
            config: The run's configuration.
            lost: The reason in one line if there is no record; empty if the run was left to another process.
        """
        record = self.record(config)
        if record is None and lost:
            record = self._lost(config, lost)
        if record:
            self.observer.finished(record)
        else:
            self.waiting.append(config)

    def _lost(self, config: RunConfig, reason: str) -> Record | None:
        """Return a failed record for a run that took too long or has been lost too often, else None."""
        now = time.monotonic()
        seconds = now - self.begun[config.key][1] if config.key in self.begun else 0.0
        if config.key in self.late:
            return overdue(config, self.options, seconds)
        # A node may have failed, so that the run is worth another start; one that ends its worker each time is not.
        self.tries[config.key] += 1
        if self.tries[config.key] >= LOST_TRIES:
            return failed_record(config, self.options.out, "lost", f"{reason} ({LOST_TRIES} tries)", seconds)
        self.observer.note(f"{config.directory} is started again: {reason}")
        return None


def with_threads(options: Options, cpus: float) -> Options:
    """Return options with a number of threads, where they leave it open: on a node, a run is not alone.

    Args:
        options: How the run is made.
        cpus: Processors that it may use.
    """
    return replace(options, threads=options.threads or max(1, int(cpus) // options.devices))
