"""The published results: the files of their records, their tables, and an encoding's rows in them."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pebench import Results, load_results, load_suite
from pebench.results.cells import mean_cell
from pebench.results.page import Page
from pebench.results.tables import Row, Table
from pebench.results.titles import group_title
from pebench.runs.suite import suite_files
from pebench.tasks import Task

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def published() -> dict[str, Path]:
    """Return the files of published records by suite: ``<suite>/runs.jsonl``, or ``<suite>.jsonl``."""
    flat = {path.stem: path for path in RESULTS.glob("*.jsonl")}
    folders = {path.parent.name: path for path in RESULTS.glob("*/runs.jsonl")}
    return {name: path for name, path in sorted((flat | folders).items()) if name in suite_files()}


@functools.cache
def results_of(suite: str) -> Results:
    """Return the published results of a suite."""
    return load_results(published()[suite], load_suite(suite))


def page_of(suite: str) -> Page:
    """Return the page of a suite's published results."""
    return results_of(suite).page


@dataclass(frozen=True)
class Standing:
    """One row of a published table.

    Args:
        suite: The suite's name.
        table: The table.
        row: The row.
        verdict: Outcome of the tests of its difference to the table's reference.
    """

    suite: str
    table: Table
    row: Row
    verdict: str

    @property
    def task(self) -> Task:
        """The table's task."""
        return self.table.task

    @property
    def score(self) -> str:
        """Mean of the headline metric over seeds, and half its interval; a dash without a finished run."""
        return mean_cell(self.row.estimate, self.task).text

    @property
    def difference(self) -> str:
        """The paired difference to the reference, likewise."""
        return mean_cell(self.row.difference, self.task, "+").text


def standings(suite: str) -> Iterator[Standing]:
    """Yield every row of a suite's published tables."""
    page = page_of(suite)
    for table in page.tables:
        equivalences = page.equivalences(table)
        for row in table.rows:
            equal = equivalences.get(row.label)
            yield Standing(suite, table, row, _verdict(row, table, equal is not None and equal.holds))


def _verdict(row: Row, table: Table, equivalent: bool) -> str:
    if row.label == table.reference:
        return "reference"
    if row.verdict is None:
        return "–"
    if not equivalent:
        return row.verdict.outcome.value
    return f"{row.verdict.outcome.value}, equivalent" if row.verdict.significant else "equivalent"


@functools.cache
def standings_by_encoding() -> dict[str, list[Standing]]:
    """Return every row of every published table, by its encoding's name."""
    found: dict[str, list[Standing]] = {}
    for suite in published():
        for standing in standings(suite):
            found.setdefault(standing.row.config.encoding, []).append(standing)
    return found


def setting(standing: Standing) -> str:
    """Return what the runs of a table have in common, without the tier."""
    return group_title([standing.table]).partition(", ")[2].replace("train.learning_rate", "learning rate")


def suites_on(task: str) -> list[str]:
    """Return the suites with published results on a task."""
    return [suite for suite in published() if any(table.task.name == task for table in page_of(suite).tables)]
