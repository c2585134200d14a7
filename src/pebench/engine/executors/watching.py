"""What executors share that start runs in other processes, here or on other machines: what is left to be started."""

import contextlib
import math
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pebench.config import Options, RunConfig
from pebench.engine.executors.worker import LOST_TRIES, failed_record, overdue
from pebench.engine.progress import Display
from pebench.runs.leases import Holder, holder_of
from pebench.runs.records import Record, find_record

WATCH_S = 2.0
"""How often it is looked how far runs are, in seconds."""

LATE_S = 30.0
"""How long a run that is over its time limit has to end by itself, in seconds."""


class Backlog:
    """The runs of a plan that are left to be started, and what becomes of those that have been.

    Args:
        plan: What to run, in this order.
        options: How.
        display: Told of everything.
    """

    def __init__(self, plan: Sequence[RunConfig], options: Options, display: Display) -> None:
        self.waiting, self.options, self.display = deque(plan), options, display
        self.tries = Counter[str]()
        self.begun: dict[str, tuple[Holder, float]] = {}
        self.late = set[str]()
        self.watched = -math.inf

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def take(self, most: int) -> list[RunConfig]:
        """The first runs that nobody is at, to be started; what others have finished is done.

        Args:
            most: How many.
        """
        taken: list[RunConfig] = []
        for _ in range(len(self.waiting)):
            if len(taken) >= most:
                break
            config = self.waiting.popleft()
            record = self.record(config)
            if record:
                self.display.finished(record)
            elif holder_of(self.options.out / config.directory):
                self.waiting.append(config)
            else:
                self.begun.pop(config.key, None)
                taken.append(config)
        return taken

    def put_back(self, configs: Sequence[RunConfig]) -> None:
        """Runs could not be started: they are the next again."""
        self.waiting.extendleft(reversed(configs))

    def record(self, config: RunConfig) -> Record | None:
        """The record of a run, if it has one."""
        with contextlib.suppress(OSError):
            os.listdir(self.options.out / config.directory)  # has a network file system look again
        return find_record(config, self.options.out)

    def watch(self, started: Iterable[RunConfig]) -> list[RunConfig]:
        """Tell the display how far runs are; now and then, however often this is called.

        Returns:
            Those that are over their time limit and should have ended by themselves.
        """
        now = time.monotonic()
        if now - self.watched < WATCH_S:
            return []
        self.watched = now
        limit = (self.options.time_limit_s or math.inf) + LATE_S
        late = []
        for config in started:
            if holder := holder_of(self.options.out / config.directory):
                if holder.step:
                    self.display.progress(config, holder.step, holder.metrics)
                known, begun = self.begun.setdefault(config.key, (holder, now))
                if known.since != holder.since:  # begun again, elsewhere
                    self.begun[config.key] = holder, now
                elif now - begun > limit:
                    self.late.add(config.key)
                    late.append(config)
        return late

    def ended(self, config: RunConfig, lost: str) -> None:
        """A run's worker has ended: tell of the record that it left, or have the run started again.

        Args:
            config: The run.
            lost: What happened if there is no record, in one line; nothing if the run was left to another process.
        """
        record = self.record(config)
        if record is None and lost:
            record = self._lost(config, lost)
        if record:
            self.display.finished(record)
        else:
            self.waiting.append(config)

    def _lost(self, config: RunConfig, reason: str) -> Record | None:
        """A failed record for a run that took too long or has been lost too often."""
        now = time.monotonic()
        seconds = now - self.begun[config.key][1] if config.key in self.begun else 0.0
        if config.key in self.late:
            return overdue(config, self.options, seconds)
        self.tries[config.key] += 1
        if self.tries[config.key] >= LOST_TRIES:
            return failed_record(config, self.options.out, "lost", f"{reason} ({LOST_TRIES} tries)", seconds)
        self.display.note(f"{config.directory} is started again: {reason}")
        return None


def with_threads(options: Options, cpus: float) -> Options:
    """Options that say how many threads a run has, where they leave it open: on a node, a run is not alone.

    Args:
        options: Of the run.
        cpus: That it may use.
    """
    return replace(options, threads=options.threads or max(1, int(cpus) // options.devices))
