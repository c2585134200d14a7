"""Progress on a console: a live view on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable, Mapping

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from pebench.config import RunConfig
from pebench.engine.cells import Cells
from pebench.engine.observer import Observer, Stage
from pebench.formatting import duration_text, format_encoding
from pebench.runs.records import Record
from pebench.tasks import metric_text

PLAIN_EVERY_S = 30.0
"""Time between two lines on a run in progress where there is no live view, in seconds."""

FIRST_AFTER_S = 3.0
"""Time after which the first run of a stage has its first line, in seconds; by then it has a pace."""

SPARE_LINES = 10
"""Lines of a screen that are left for the head of a table and for bars."""


class Tally:
    """Counts the steps and runs of a stage that are done, and estimates the time left.

    Args:
        stage: The stage to count.
    """

    def __init__(self, stage: Stage) -> None:
        self.varied, self.total, self.done = stage.varied, len(stage.todo), 0
        self.steps_planned = sum(config.train.max_steps for config in stage.todo)
        self.steps_finished = 0.0
        self.running: dict[str, int] = {}  # by run: the step that it has come to
        self.resumed_at: dict[str, int] = {}  # by run: steps of an earlier attempt, which took no time now
        self.began: dict[str, float] = {}  # by run: the time of its first report, in seconds
        self.since: float | None = None

    @property
    def steps(self) -> float:
        """Steps that are done, of finished runs and of those in progress."""
        return self.steps_finished + sum(self.running.values())

    def progress(self, config: RunConfig, step: int, now: float) -> None:
        """Count a run's steps up to `step`, reached at the time `now` in seconds."""
        # The clock starts at the first step: how long imports and data took says nothing about the rest.
        self.since = self.since or now
        self.running[config.key] = step
        self.resumed_at.setdefault(config.key, step)
        self.began.setdefault(config.key, now)

    def where(self, config: RunConfig, now: float) -> str:
        """Return the step that a run has come to at the time `now`, and its pace once that is known, as text."""
        step, elapsed = self.running[config.key], now - self.began[config.key]
        text, made = f"step {step} of {config.train.max_steps}", step - self.resumed_at[config.key]
        return f"{text}, {made / elapsed:.2g} steps/s" if made and elapsed > 0 else text

    def finished(self, config: RunConfig) -> None:
        """Count a run as done."""
        self.since = self.since or time.monotonic()
        self.done += 1
        self.steps_finished += config.train.max_steps  # also of one that failed early: none of its steps is left
        self.running.pop(config.key, None)

    def time_left(self) -> str:
        """Return the time left as text that continues a line, ``, about 7 min left``; empty while it is unknown."""
        steps_here = self.steps - sum(self.resumed_at.values())
        if self.since is None or steps_here <= 0 or self.done == self.total:
            return ""
        elapsed = time.monotonic() - self.since
        seconds = elapsed * (self.steps_planned - self.steps) / steps_here
        # The pace of the first two seconds is mostly that of a warm-up.
        return f", about {duration_text(seconds)} left" if elapsed > 2 else ""

    def name(self, config: RunConfig) -> str:
        """Return a run's task, encoding, seed, and the settings in which runs of the stage differ."""
        values = dict(config.encoding_args) | config.values_of(self.varied)
        if config.stage == "select":
            values |= config.selected_values
        return f"{config.task} {format_encoding(config.encoding, values)} seed {config.seed}"

    def line(self, record: Record) -> str:
        """Return the line on a finished run: its number, name, outcome and duration, and the time left."""
        config, took = record.config, duration_text(record.duration_s or 0)
        if record.ok:
            metric = metric_text(config.task, record.metrics, "test" if config.stage == "test" else "val")
            outcome = f"{metric} in {took}"
        else:
            outcome = f"FAILED after {took}: {record.reason}"
        return f"[{self.done}/{self.total}] {self.name(config)}: {outcome}{self.time_left()}"


class View(Progress):
    """A live view: the table of the task that is being run, and below it a bar for each run.

    Args:
        cells: Cells of the table.
        console: The console to show them on.
    """

    def __init__(self, cells: Cells, console: Console) -> None:
        self.cells, self.screen = cells, console  # the superclass asks for what is shown before it has a console
        super().__init__(
            SpinnerColumn(), TextColumn("{task.description}"),
            BarColumn(bar_width=20), TextColumn("{task.fields[info]}"),
            console=console, transient=True, refresh_per_second=4,
        )  # fmt: skip

    def shows(self, task: str) -> bool:
        """Return True if the cells of a task fit on the screen, with its head and a few bars."""
        labels = {config.kind_key for config in self.cells.tasks.get(task, ())}
        return self.screen.is_terminal and 0 < len(labels) <= self.screen.height - SPARE_LINES

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the table and the bars; the superclass asks for them at every refresh."""
        if (task := self.cells.current) and self.shows(task):
            yield self.cells.table(task)
        yield self.make_tasks_table(self.tasks)


class Display(Observer):
    """Shows each run, its metric and the time left on a console.

    On a terminal the table of the task in progress fills in, a cell for each run; elsewhere each run is a line.

    Args:
        console: The console to write to.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.planned(Stage((), ()))

    def planned(self, stage: Stage) -> None:
        """Count from the beginning, for the runs of another stage."""
        self.tally, self.cells = Tally(stage), Cells(stage)
        self.last_line: dict[str, float] = {}  # by run, in seconds
        self.live = View(self.cells, self.console)
        self.bars: dict[str, TaskID] = {}
        self.overall: TaskID | None = None

    def started(self) -> None:
        """Start the live view, on a terminal."""
        if self.console.is_terminal:
            self.live.start()
            steps = max(1, self.tally.steps_planned)
            self.overall = self.live.add_task(f"0 of {self.tally.total} runs", total=steps, info="starting")

    def ended(self) -> None:
        """Remove the live view."""
        if self.console.is_terminal:
            self.live.stop()

    def note(self, message: str) -> None:
        """Print a line as it is."""
        # Plain: rich takes brackets in a name for markup, colours numbers, and breaks lines that a log would keep
        # whole; on a terminal it breaks them between words.
        whole = not self.console.is_terminal
        self.console.print(message, highlight=False, markup=False, soft_wrap=whole)

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        """Move a run's bar, or print a line now and then."""
        now = time.monotonic()
        self.tally.progress(config, step, now)
        if self.console.is_terminal:
            # A bar is added when a run reports for the first time, as few of the planned ones are running at once.
            if config.key not in self.bars:
                name = self.tally.name(config)
                self.bars[config.key] = self.live.add_task(name, total=config.train.max_steps, info="")
            self.live.update(self.bars[config.key], completed=step, info=self._where(config, metrics, now))
            self._update_overall()
            return
        # The first run tells early how fast it goes; a line of each at once would be many.
        first = now if self.last_line else now - PLAIN_EVERY_S + FIRST_AFTER_S
        if now - self.last_line.setdefault(config.key, first) >= PLAIN_EVERY_S:
            self.last_line[config.key] = now
            where = self._where(config, metrics, now)
            self.note(f"        {self.tally.name(config)}: {where}{self.tally.time_left()}")

    def _where(self, config: RunConfig, metrics: Mapping[str, float], now: float) -> str:
        """Return how far a run is, with its latest validation."""
        info = metric_text(config.task, metrics, "val")
        return f"{self.tally.where(config, now)}{info and ', ' + info}"

    def finished(self, record: Record) -> None:
        """Fill in the cell of a run that has ended, or print a line on it."""
        self.tally.finished(record.config)
        self.cells.fill(record)
        if record.config.key in self.bars:
            self.live.remove_task(self.bars.pop(record.config.key))
        if not record.ok or record.config.stage != "test" or not self.live.shows(record.config.task):
            self.note(self.tally.line(record))
        self._update_overall()

    def _update_overall(self) -> None:
        if self.overall is not None:
            text, left = f"{self.tally.done} of {self.tally.total} runs", self.tally.time_left().lstrip(", ")
            self.live.update(self.overall, completed=self.tally.steps, description=text, info=left)
