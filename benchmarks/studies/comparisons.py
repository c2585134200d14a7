"""Compare rows of published pages at equal seeds, for `undeclared` and `add_or_concat`; not a command of its own."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebench.config.run import dotted_settings
from pebench.formatting import seeds_text
from pebench.results.stats import Difference, paired_difference
from pebench.results.tables import build_tables
from pebench.results.tables.row import Row as TableRow
from pebench.runs.records import Record, read_records
from pebench.tasks import find_task

RESULTS = Path(__file__).parents[2] / "results"


@dataclass(frozen=True)
class Row:
    """Tested runs of one encoding.

    Args:
        label: Its label in tables.
        pages: Pages whose records have it; where several have one seed they have the same run.
        settings: Settings that the row has, by dotted names, where a page has several rows of the label.
        seeds: Seeds of the runs that count; all, if it is empty.
    """

    label: str
    pages: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = ()
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        links = ", ".join(f"[{page}](../{page}/page.md)" for page in self.pages)
        which = "".join(f", `{name}={value}`" for name, value in self.settings)
        chosen = f", {seeds_text(self.seeds)}" if self.seeds else ""
        return f"`{self.label}` of {links}{which}{chosen}"


@dataclass(frozen=True)
class Comparison:
    """One row minus another, by one metric of the test.

    Args:
        task: Task of the rows.
        row: Row that is compared.
        minus: Row that is subtracted.
        at: Length or resolution of the test, as metrics end (``"2x"``); that of training, if it is empty.
        change: Compare how much each row's metric changes from the length of training to that one.
        baseline: Two more rows, whose difference is subtracted from the difference of the first two.
    """

    task: str
    row: Row
    minus: Row
    at: str = ""
    change: bool = False
    baseline: tuple[Row, Row] | None = None

    def measure(self) -> Difference:
        """Return the difference, in bits per byte or in points.

        Raises:
            ValueError: If no seed has both rows.
        """
        first, second = self._values(self.row), self._values(self.minus)
        if self.baseline:
            one, other = map(self._values, self.baseline)
            first = {seed: value - second[seed] for seed, value in first.items() if seed in second}
            second = {seed: value - other[seed] for seed, value in one.items() if seed in other}
        found = paired_difference(first, second)
        if found is None:
            raise ValueError(f"no seed has both {self.row} and {self.minus} on {self.task}")
        return found

    def _values(self, row: Row) -> dict[int, float]:
        """Return what is measured of a row, by seed."""
        task = find_task(self.task)
        usual = f"test/{task.metric}"
        where = f"{usual}@{self.at}" if self.at else usual
        return {
            seed: task.scale * (record.metrics[where] - self.change * record.metrics[usual])
            for seed, record in runs(self.task, row).items()
            if not row.seeds or seed in row.seeds
        }


@functools.cache
def published(page: str) -> Sequence[TableRow]:
    """Return the rows of a page, each with its tested runs."""
    return [one for table in build_tables(read_records(RESULTS / page)) for one in table.rows]


def runs(task: str, row: Row) -> dict[int, Record]:
    """Return a row's runs by seed.

    Raises:
        ValueError: If a page lacks it, or two pages have different runs of one seed.
    """
    found: dict[int, Record] = {}
    for page in row.pages:
        kinds = [one.records for one in published(page) if one.label == row.label and is_of(one, task, row.settings)]
        if len(kinds) != 1:
            raise ValueError(f"{page} has {len(kinds)} rows {row.label} on {task}, not one")
        for record in kinds[0]:
            if found.setdefault(record.config.seed, record).metrics != record.metrics:
                raise ValueError(f"{row}: two runs of seed {record.config.seed}")
    return found


def is_of(row: TableRow, task: str, settings: Sequence[tuple[str, Any]]) -> bool:
    """Return whether the runs of a row are of a task and have settings."""
    config = row.records[0].config
    has = dotted_settings(config)
    return config.task == task and all(has.get(name) == value for name, value in settings)


def row(label: str, *pages: str, seeds: Sequence[int] = (), settings: Mapping[str, Any] | None = None) -> Row:
    """Return a row of one page or more, of `core` if none is named."""
    return Row(label, pages or ("core",), tuple((settings or {}).items()), tuple(seeds))
