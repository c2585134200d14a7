"""Compare rows of published pages at equal seeds, for `undeclared` and `add_or_concat`; not a command of its own."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pebench.formatting import seeds_text
from pebench.results.stats import Difference, paired_difference
from pebench.results.tables import build_tables
from pebench.runs.records import Record, read_records
from pebench.tasks import find_task

RESULTS = Path(__file__).parents[2] / "results"


@dataclass(frozen=True)
class Row:
    """Tested runs of one encoding.

    Args:
        label: Its label in tables.
        pages: Pages whose records have it; where several have one seed they have the same run.
        layers: Depth of the models, where a page has several.
        seeds: Seeds of the runs that count; all, if it is empty.
    """

    label: str
    pages: tuple[str, ...]
    layers: int = 0
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        links = ", ".join(f"[{page}](../{page}/page.md)" for page in self.pages)
        depth = f", {self.layers} layers" if self.layers else ""
        chosen = f", {seeds_text(self.seeds)}" if self.seeds else ""
        return f"`{self.label}` of {links}{depth}{chosen}"


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
def published(page: str) -> Mapping[tuple[str, str, int], tuple[Record, ...]]:
    """Return the tested runs of a page, by task, label and number of layers."""
    found = {}
    for table in build_tables(read_records(RESULTS / page)):
        for one in table.rows:
            found[table.task.name, one.label, table.config.model.num_layers] = one.records
    return found


def runs(task: str, row: Row) -> dict[int, Record]:
    """Return a row's runs by seed.

    Raises:
        ValueError: If a page lacks it, or two pages have different runs of one seed.
    """
    found: dict[int, Record] = {}
    for page in row.pages:
        kinds = [
            records
            for (where, label, layers), records in published(page).items()
            if (where, label) == (task, row.label) and row.layers in (0, layers)
        ]
        if len(kinds) != 1:
            raise ValueError(f"{page} has {len(kinds)} rows {row.label} on {task}, not one")
        for record in kinds[0]:
            if found.setdefault(record.config.seed, record).metrics != record.metrics:
                raise ValueError(f"{row}: two runs of seed {record.config.seed}")
    return found


def row(label: str, *pages: str, layers: int = 0, seeds: Sequence[int] = ()) -> Row:
    """Return a row of one page or more, of `core` if none is named."""
    return Row(label, pages or ("core",), layers, tuple(seeds))
