"""The cells of tables that fill in while runs are made: one for each row and seed, task by task."""

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING

from pebench.config import RunConfig
from pebench.engine.observer import Stage
from pebench.formatting import format_encoding
from pebench.runs.records import Record
from pebench.tasks import find_task

if TYPE_CHECKING:
    from rich.table import Table


class Cells:
    """The tested runs of a stage, and the records that they have so far.

    Args:
        stage: The stage. One that selects settings tests nothing, and has no tasks here.
    """

    def __init__(self, stage: Stage) -> None:
        self.varied = stage.varied
        again = {config.key for config in stage.todo}  # those that failed before have no outcome yet
        self.records: dict[str, Record] = {key: record for key, record in stage.known.items() if key not in again}
        self.tasks: dict[str, list[RunConfig]] = {}
        for config in stage.runs:
            if config.stage == "test":
                self.tasks.setdefault(config.task, []).append(config)

    def fill(self, record: Record) -> None:
        """Add the record of a run that has ended."""
        self.records[record.config.key] = record

    @property
    def complete(self) -> list[str]:
        """The tasks all of whose runs have ended, in the order of the plan."""
        return [task for task, runs in self.tasks.items() if all(config.key in self.records for config in runs)]

    @property
    def current(self) -> str | None:
        """The first task that lacks a run; None if there is none."""
        return next((task for task in self.tasks if task not in self.complete), None)

    def table(self, task: str) -> "Table":
        """Return the cells of a task as a table for a console: a row for each encoding, a column for each seed."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        rows: dict[str, dict[int, RunConfig]] = {}
        for config in self.tasks[task]:
            rows.setdefault(self._label(config), {})[config.seed] = config
        seeds = list(dict.fromkeys(seed for row in rows.values() for seed in row))
        card = find_task(task)
        title = Text(f"{task}: test {card.metric.replace('_', ' ')}{' %' * card.percent}", style="bold")
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for number, header in enumerate(["Encoding", *(f"seed {seed}" for seed in seeds), "Mean"]):
            table.add_column(header, justify="right" if number else "left", no_wrap=True)
        for label, row in rows.items():
            table.add_row(*map(Text, [label, *(self._text(row, seed) for seed in seeds), self._mean(row)]))
        return table

    def _label(self, config: RunConfig) -> str:
        return format_encoding(config.encoding, dict(config.encoding_args) | config.values_of(self.varied))

    def _text(self, row: Mapping[int, RunConfig], seed: int) -> str:
        """Return a cell: a run's metric, ``failed``, or dots while it has not ended; empty where there is no run."""
        if seed not in row:
            return ""
        record = self.records.get(row[seed].key)
        if record is None:
            return "..."
        return self._number(row, [record]) if record.ok else "failed"

    def _mean(self, row: Mapping[int, RunConfig]) -> str:
        """Return the mean over the runs of a row that have finished."""
        found = [self.records[config.key] for config in row.values() if config.key in self.records]
        return self._number(row, [record for record in found if record.ok])

    def _number(self, row: Mapping[int, RunConfig], records: list[Record]) -> str:
        """Return the mean of the headline metric of some records; empty without any."""
        task = find_task(next(iter(row.values())).task)
        values = [record.metrics[name] for record in records if (name := f"test/{task.metric}") in record.metrics]
        return f"{task.scale * fmean(values):.{task.digits}f}" if values else ""
