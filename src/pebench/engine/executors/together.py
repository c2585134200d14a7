"""Runs that share this process, so that small models fill a GPU: a thread each, which take turns at launching work.

The time and the memory that a process takes on a card are spent once. Nothing here imports torch by itself.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources
from pebench.engine.executors.watching import Backlog
from pebench.engine.executors.worker import work
from pebench.engine.observer import Observer
from pebench.engine.pace import device_here
from pebench.engine.signals import stopping
from pebench.runs.costs import cost


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
    """Make every run of a plan; see `pebench.engine.executors.Executor`."""
    from pebench.training.guests import contained  # it loads torch

    with stopping() as stop, contained("a run"):
        _Runs(plan, options, resources.jobs, observer, stop).make()
    if stop.is_set():
        raise KeyboardInterrupt


class Width:
    """How many runs go on at a time: twice as many again, as long as all together get faster by it.

    Args:
        asked: The number, where it is given; 0 to find it.
        room: Returns whether the device has memory for as many runs again.
        clock: Returns the time in seconds.

    Attributes:
        now: The number.
        settled: Why it stays; empty while it is being found, or where it was given.
    """

    WINDOW_S = 10.0
    """Time over which the pace of all together is measured, in seconds."""

    GAIN = 1.1
    """Factor by which twice as many runs must be faster."""

    def __init__(self, asked: int, room: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self.now, self.settled = asked or 1, ""
        self._open, self._room, self._clock = not asked, room, clock
        self._fewer = 0.0  # pace of half as many
        self._begun: tuple[float, float] | None = None  # time and work at which the measurement began

    def measure(self, done: float, steady: bool) -> bool:
        """Measure the pace, and change the number once it is known.

        Args:
            done: Work done so far, in operations.
            steady: True if as many runs as there may be have made their first steps.

        Returns:
            True if the number has been found by this.
        """
        if not self._open or not (steady or self._begun):
            return False
        time_now = self._clock()
        self._begun = self._begun or (time_now, done)
        seconds, work_done = time_now - self._begun[0], done - self._begun[1]
        if seconds < self.WINDOW_S:
            return False
        pace, self._begun = work_done / seconds, None
        if pace < self.GAIN * self._fewer:
            self.settled, self.now = f"{self.now} were not faster", self.now // 2
        elif not self._room():
            self.settled = "memory has no room for twice as many"
        else:
            self.now, self._fewer = 2 * self.now, pace
        self._open = not self.settled
        return not self._open


class _Runs:
    """The runs of a plan, and what their threads tell."""

    def __init__(
        self, plan: Sequence[RunConfig], options: Options, jobs: int, observer: Observer, stop: threading.Event
    ) -> None:
        from pebench.training.turns import Turns

        device = device_here(options.device)
        self.options, self.observer, self.stop = options, observer, stop
        self.backlog, self.turns = Backlog(plan, options, observer), Turns(device)
        self.width = Width(jobs, _has_room if device == "cuda" else lambda: True)
        self.told = queue.SimpleQueue[tuple[RunConfig, int, Mapping[str, float]] | tuple[RunConfig, bool]]()
        self.running: dict[str, int | None] = {}  # by run: the step that it has come to, once it is known
        self.begun, self.done = set[str](), 0.0  # runs that have made steps here; operations of all
        # Of a step, by kind of run: all now, as counting them draws random numbers, of which threads have the same.
        self.operations = dict[str, float]()
        for config in plan:
            if config.kind_key not in self.operations:
                self.operations[config.kind_key] = float(config.train.batch_size * cost(config).layers())

    def make(self) -> None:
        """Make all runs, or those that go on until they are stopped."""
        while self.running or (self.backlog and not self.stop.is_set()):
            if not self.stop.is_set():
                for config in self.backlog.take(self.width.now - len(self.running)):
                    self._start(config)
            self._listen()

    def _start(self, config: RunConfig) -> None:
        self.running[config.key] = None
        # A daemon: asked to end at once, the process waits for no run.
        threading.Thread(target=self._run, args=(config,), name=config.directory, daemon=True).start()

    def _run(self, config: RunConfig) -> None:
        """Make a run, in its thread."""

        def progress(step: int, metrics: Mapping[str, float]) -> None:
            self.told.put((config, step, dict(metrics)))

        is_ours = True
        try:
            with self.turns.taken():
                is_ours = work(config, self.options, progress, self.stop.is_set)
        finally:
            self.told.put((config, is_ours))

    def _listen(self) -> None:
        """Hear what the threads tell, for a second or as long as they have something to tell."""
        try:
            told = self.told.get(timeout=1.0)
            while True:
                if len(told) == 2:
                    self._ended(*told)
                else:
                    self._went_on(*told)
                told = self.told.get_nowait()
        except queue.Empty:
            pass
        if self.width.measure(self.done, steady=self._steady()):
            self.observer.note(f"{self.width.now} at a time from here on: {self.width.settled}")

    def _steady(self) -> bool:
        return len(self.running) >= self.width.now and self.running.keys() <= self.begun

    def _went_on(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        before = self.running[config.key]
        if before is not None and step > before:
            self.done += (step - before) * self.operations[config.kind_key]
            self.begun.add(config.key)
        self.running[config.key] = step
        self.observer.progress(config, step, metrics)

    def _ended(self, config: RunConfig, is_ours: bool) -> None:
        del self.running[config.key]
        if not self.stop.is_set() or self.backlog.record(config):
            self.backlog.ended(config, "ended without a record" if is_ours else "")


def _has_room() -> bool:
    """Return True if the GPU has memory for as much again as this process has taken."""
    import torch

    free, _ = torch.cuda.mem_get_info()
    return bool(free > 1.1 * torch.cuda.memory_reserved())
