"""Progress: a live view on a terminal, plain lines elsewhere."""

import time
from collections.abc import Collection, Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from pebench.config import RunConfig
from pebench.formatting import duration_text, format_encoding
from pebench.runs.records import Record
from pebench.tasks import metric_text

PLAIN_EVERY_S = 30.0
"""How often a run in progress gets a line where there is no live view, in seconds."""


class Display:
    """Tells which run of how many, its metric, and the time left.

    Args:
        plan: The runs to come.
        console: Where to.
        varied: Settings in which runs of one encoding and seed differ; they are told with their values.
    """

    def __init__(self, plan: Sequence[RunConfig], console: Console, varied: Collection[str] = ()) -> None:
        self.varied = varied
        self.console, self.total, self.done = console, len(plan), 0
        self.work = sum(config.train.max_steps for config in plan)
        self.finished_work = 0.0
        self.earlier: dict[str, int] = {}  # steps of an earlier attempt, that a run resumes from
        self.steps: dict[str, int] = {}
        self.spoken: dict[str, float] = {}
        self.started: float | None = None
        self.live = Progress(
            SpinnerColumn(), TextColumn("{task.description}"),
            BarColumn(bar_width=20), TextColumn("{task.fields[info]}"),
            console=console, transient=True, refresh_per_second=4,
        )  # fmt: skip
        self.lines: dict[str, TaskID] = {}
        self.overall: TaskID | None = None

    def __enter__(self) -> "Display":
        if self.console.is_terminal:
            self.live.start()
            self.overall = self.live.add_task(f"0 of {self.total} runs", total=max(1, self.work), info="starting")
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def note(self, message: str) -> None:
        """Say something that is not about one run."""
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        """A run has come to a step."""
        now = time.monotonic()
        self.started = self.started or now
        self.steps[config.key] = step
        self.earlier.setdefault(config.key, step)
        info = metric_text(config.task, metrics, "val")
        if self.console.is_terminal:
            if config.key not in self.lines:
                self.lines[config.key] = self.live.add_task(self._name(config), total=config.train.max_steps, info="")
            self.live.update(self.lines[config.key], completed=step, info=info)
            self._update_overall()
        elif now - self.spoken.setdefault(config.key, now) >= PLAIN_EVERY_S:
            self.spoken[config.key] = now
            where = f"step {step} of {config.train.max_steps}{info and ', ' + info}"
            self.note(f"        {self._name(config)}: {where}{self._left()}")

    def finished(self, record: Record) -> None:
        """A run has ended."""
        config = record.config
        self.started = self.started or time.monotonic()
        self.done += 1
        self.finished_work += config.train.max_steps
        self.steps.pop(config.key, None)
        if config.key in self.lines:
            self.live.remove_task(self.lines.pop(config.key))
        outcome = metric_text(config.task, record.metrics, "test" if config.stage == "test" else "val")
        if not record.ok:
            outcome = f"FAILED: {record.reason}"
        took = duration_text(record.duration_s or 0)
        self.note(f"[{self.done}/{self.total}] {self._name(config)}: {outcome} in {took}{self._left()}")
        self._update_overall()

    def _update_overall(self) -> None:
        if self.overall is not None:
            work = self.finished_work + sum(self.steps.values())
            text = f"{self.done} of {self.total} runs"
            self.live.update(self.overall, completed=work, description=text, info=self._left().lstrip(", "))

    def _left(self) -> str:
        work = self.finished_work + sum(self.steps.values())
        here = work - sum(self.earlier.values())
        if self.started is None or here <= 0 or self.done == self.total:
            return ""
        elapsed = time.monotonic() - self.started
        return f", about {duration_text(elapsed * (self.work - work) / here)} left" if elapsed > 2 else ""

    def _name(self, config: RunConfig) -> str:
        values = dict(config.encoding_args) | config.values_of(self.varied)
        if config.stage == "select":
            values |= config.selected_values
        return f"{config.task} {format_encoding(config.encoding, values)} seed {config.seed}"
