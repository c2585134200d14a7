"""Coverage: the runs that a suite asks for, beside those that tables hold, and each run that has no value."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pebench.config import RunConfig, assignments
from pebench.errors import UserError
from pebench.formatting import natural
from pebench.results.missing import Absence, absence_lines, named_with_settings
from pebench.results.prose import plain
from pebench.results.tables import Table
from pebench.runs.records import Record
from pebench.runs.selection import trials_of
from pebench.runs.suite import Suite


@dataclass(frozen=True, eq=False)
class Coverage:
    """The runs that a suite asks for, and those that are here.

    Args:
        tables: The tables of a page.
        suite: The suite that asked for them; ``None`` for runs that answer no declared question.
        selecting: Records of runs that select, and of whose tasks nothing is tested yet.
    """

    tables: tuple[Table, ...]
    suite: Suite | None
    selecting: tuple[Record, ...]

    @cached_property
    def planned(self) -> tuple[RunConfig, ...]:
        """One run of each task with each encoding of the suite, before anything is selected or matched."""
        # Without its regime and its selection, as what a page compares them with leaves both out, and costs take long
        # to count.
        return tuple(replace(self.suite, regime="width", select={}, select_beyond=0).kinds()) if self.suite else ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that the suite tests."""
        return self.suite.tested_seeds if self.suite else ()

    def asked(self, table: Table) -> list[RunConfig]:
        """Return the kinds of run of a table that the suite asked for."""
        suite, config = self.suite, table.config
        # Runs of the same settings that were matched or tuned otherwise answer another question.
        if not suite or (suite.regime, tuple(sorted(suite.select))) != (config.regime, config.selected):
            return []
        return [kind for kind in self.planned if table.has_settings_of(kind)]

    def lacking(self, table: Table) -> list[RunConfig]:
        """Return the kinds of run that the suite asked for and that a table has no row of."""
        return [kind for kind in self.asked(table) if table.row(kind.label) is None]

    def labels(self, table: Table) -> set[str]:
        """Return the labels of a table's rows, and of those that it lacks."""
        return {row.label for row in table.rows}.union(kind.label for kind in self.lacking(table))

    @cached_property
    def untested(self) -> list[RunConfig]:
        """The kinds of run that the suite asked for, on tasks and at settings that nothing is tested on."""
        asked = {kind.kind_key for table in self.tables for kind in self.asked(table)}
        return [kind for kind in self.planned if kind.kind_key not in asked]

    @property
    def unplanned(self) -> list[str]:
        """Tables by their task, else rows, that are here though the suite did not ask for them."""
        if not self.suite:
            return []
        tables, rows = [], []
        for table in self.tables:
            labels = {kind.label for kind in self.asked(table)}
            if not labels:  # none of the suite's rows has this table's settings
                tables.append(f"{table.task.name} (other settings)")
                continue
            rows += [f"{table.task.name} {row.label}" for row in table.rows if row.label not in labels]
        return tables + rows

    def absences(self, table: Table) -> Iterator[Absence]:
        """Yield a table's runs without a value: those that failed, then those that others have or the suite plans."""
        kinds = self.asked(table)
        for row in table.rows:
            for seed, reason in row.failed.items():
                yield self._absence(table.config, row.label, seed, reason)
        yield from self._failed(table.selecting)
        yield from self._missing_seeds(table, {kind.label for kind in kinds})
        for kind in self.lacking(table):
            yield from (self._absence(kind, kind.label, seed) for seed in self.seeds)
        yield from self._untried(kinds, table.selecting)

    def _missing_seeds(self, table: Table, asked: set[str]) -> Iterator[Absence]:
        """Yield the seeds that other rows have or the suite plans, and those of values chosen since the tests."""
        seeds = {record.config.seed for record in table.records}
        for row in table.rows:
            # Seeds of other rows too: a row that lacks one of them is compared on fewer, whoever asked for it.
            expected = seeds.union(self.seeds if row.label in asked else ())
            missing = expected - row.values.keys() - row.failed.keys()
            yield from (self._absence(table.config, row.label, seed) for seed in sorted(missing))
            if chosen := table.outdated.get(row.label):
                label = f"{row.label} with {', '.join(assignments(chosen))}"
                yield from (self._absence(table.config, label, seed) for seed in sorted(expected))

    def _absence(self, config: RunConfig, label: str, seed: int, reason: str | None = None, tried: str = "") -> Absence:
        return Absence(config.task, label, seed, reason, tried, self._varied(config))

    def _failed(self, selecting: Iterable[Record]) -> Iterator[Absence]:
        """Yield the runs that select and failed; a value at which training diverges has been tried."""
        for record in selecting:
            if not record.ok and not record.diverged:  # a value that diverges is no choice, and so has its answer
                config = record.config
                tried = _settings_text(config, config.selected)
                yield self._absence(config, config.label, config.seed, record.reason, tried)

    def _untried(self, kinds: Iterable[RunConfig], records: Iterable[Record]) -> Iterator[Absence]:
        """Yield the runs that would select for some kinds of run, and that are not among some records."""
        if not (suite := self.suite):
            return
        # Failed runs are known, too: `_failed` lists them.
        known = {self._selecting_run(record.config, record.config.seed): record for record in records}

        def find(config: RunConfig) -> tuple[Record, ...]:
            return tuple(known[run] for run in self._selecting_runs(config) if run in known)

        for kind in kinds:
            for config, _ in trials_of(suite, kind, find):
                yield from (run for run in self._selecting_runs(config) if run not in known)

    def _selecting_runs(self, config: RunConfig) -> list[Absence]:
        """Return the runs that select by one value, as they are listed where they are absent."""
        seeds = self.suite.selecting_seeds(config.task) if self.suite else ()
        return [self._selecting_run(config, seed) for seed in seeds]

    def _selecting_run(self, config: RunConfig, seed: int) -> Absence:
        tried = _settings_text(config, config.selected)
        return self._absence(config, config.label, seed, tried=tried)

    @cached_property
    def without_table(self) -> list[Absence]:
        """Runs of the suite on tasks, at settings, that nothing is tested on."""
        # The selecting runs of these have no table to be listed under, either.
        tested = [self._absence(kind, kind.label, seed) for kind in self.untested for seed in self.seeds]
        return [*tested, *self._failed(self.selecting), *self._untried(self.untested, self.selecting)]

    @cached_property
    def absent(self) -> list[Absence]:
        """Every run without a value."""
        return [*(absence for table in self.tables for absence in self.absences(table)), *self.without_table]

    @property
    def gap(self) -> str:
        """The tasks or settings that nothing is tested on, in a sentence; empty if there are none."""
        names = ", ".join(dict.fromkeys(absence.table_name for absence in self.without_table))
        return f"Nothing tested: {names}." if names else ""

    def row_gap(self, tables: Sequence[Table]) -> str:
        """Return the rows that none of some tables has, in a sentence; empty if there are none."""
        lacking = {kind.label for table in tables for kind in self.lacking(table)}
        lacking.difference_update(row.label for table in tables for row in table.rows)
        return f"Nothing tested yet of {', '.join(sorted(lacking, key=natural))}." if lacking else ""

    def table_name(self, table: Table) -> str:
        """Return the task of a table with the settings that the suite varies."""
        return named_with_settings(table.config.task, self._varied(table.config))

    def _varied(self, config: RunConfig) -> str:
        """Return the settings that make a run's table another than others of its task."""
        return _settings_text(config, self.suite.vary) if self.suite else ""

    def check_complete(self) -> None:
        """Refuse pages with failed or missing runs.

        Raises:
            UserError: With every one of them.
        """
        if not self.absent:
            return
        groups = [(self.table_name(table), [*self.absences(table)]) for table in self.tables]
        groups += [(name, [*runs]) for name, runs in itertools.groupby(self.without_table, lambda run: run.table_name)]
        lines = [f"{name}: {plain(line)}" for name, absences in groups for line in absence_lines(absences)]
        raise UserError(
            f"expected every run to have finished, but {len(self.absent)} have failed or are missing:\n  "
            + "\n  ".join(lines)
            + "\nRun them (--retry-failed does failed ones again), or leave out --strict, which shows them."
        )


def _settings_text(config: RunConfig, settings: Iterable[str]) -> str:
    """Return some settings of a run with their values, in words."""
    return ", ".join(assignments(config.values_of(sorted(settings))))
