"""A page: the tables of some records, the suite that asked for them, and the comparisons between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pebench.config import REFERENCE_ENCODING, sort_key
from pebench.errors import UserError, unknown_name
from pebench.results.across import Summary, comparable, summarise
from pebench.results.contrasts import (
    Change,
    Contrast,
    Equivalence,
    Series,
    compare_changes,
    compare_contrasts,
    equivalences,
)
from pebench.results.coverage import Coverage
from pebench.results.missing import Absence
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record
from pebench.runs.suite import Suite


@dataclass(frozen=True, eq=False)
class Page:
    """Tables, and the suite that asked for them.

    Args:
        tables: The tables in the order of the page.
        suite: The suite; ``None`` for runs that answer no declared question.
        selecting: Records of runs that select, and of whose tasks nothing is tested yet.
    """

    tables: tuple[Table, ...]
    suite: Suite | None = None
    selecting: tuple[Record, ...] = ()

    @staticmethod
    def of(
        records: Iterable[Record],
        suite: Suite | None = None,
        allow_unmatched: bool = False,
        reference: str | None = None,
    ) -> "Page":
        """Return the page of some records.

        Args:
            records: Records in any order.
            suite: The suite that they were made for.
            allow_unmatched: Keep tables whose rows break their regime.
            reference: Label of the encoding that the others are compared to, if it is not the suite's.

        Raises:
            UserError: For an unknown task, two different records of one run, rows that break their regime, a
                suite that none of the records is of, or a reference that is not among them.
        """
        compared_to = reference or (suite.reference if suite else REFERENCE_ENCODING)
        records = list(records)
        tables = build_tables(records, allow_unmatched, compared_to)
        shared = suite is not None and suite.shared_machine
        tables = [replace(table, shared_machine=shared) for table in tables]
        page = Page(tuple(tables), suite, _without_table(records, tables))
        # Afterwards, as which rows a table lacks is known by the page alone.
        page = replace(page, tables=tuple(map(page._corrected_for_declared, page.tables)))
        labels = sorted({row.label for table in page.tables for row in table.rows})
        # Only one that was asked for here: a suite's own reference may still have to run.
        if reference and reference not in labels:
            raise unknown_name("reference", reference, labels)
        if suite and not any(page.of_suite(table) for table in page.tables):
            tasks = ", ".join(sorted({f"{table.task.name} ({table.config.tier})" for table in page.tables}))
            raise UserError(
                f"expected records of the suite {suite.name!r}, but none has its tasks, tier and settings; these are "
                f"of {tasks}. Leave out --suite, or name another."
            )
        return page

    def _corrected_for_declared(self, table: Table) -> Table:
        """Return a table whose corrections count the rows that the suite asks for and that have not run."""
        return table.counting(len(self.coverage.labels(table))) if self.of_suite(table) else table

    @property
    def reference(self) -> str:
        """Label of the encoding that the others are compared to."""
        return self.tables[0].reference if self.tables else REFERENCE_ENCODING

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks that were added since the suite was declared."""
        return self.suite.remarks if self.suite else ()

    @cached_property
    def coverage(self) -> Coverage:
        """The runs that the suite asks for beside those that are here."""
        return Coverage(self.tables, self.suite, self.selecting)

    def of_suite(self, table: Table) -> bool:
        """Return True if the suite asked for a table."""
        return bool(self.coverage.asked(table))

    @property
    def absent(self) -> list[Absence]:
        """Every run without a value."""
        return self.coverage.absent

    def check_complete(self) -> None:
        """Refuse a page with failed or missing runs.

        Raises:
            UserError: With every one of them.
        """
        self.coverage.check_complete()

    def margin_of(self, table: Table) -> float | None:
        """Return the largest difference that does not matter on a table's task; ``None`` without a suite."""
        return self.suite.margin_of(table.task.name) if self.suite else None

    def equivalences(self, table: Table) -> dict[str, Equivalence]:
        """Return the tests of equivalence to the reference by label, where there is a difference and a margin."""
        margin = self.margin_of(table)
        if margin is None:
            return {}
        rows = [(row.label, row.difference) for row in table.rows if row.difference]
        # Less one, as the reference is not compared with itself.
        found = equivalences([difference for _, difference in rows], margin, table.declared - 1)
        return {label: one for (label, _), one in zip(rows, found, strict=True)}

    def equivalent(self, table: Table) -> list[str]:
        """Return the labels of the rows that are equivalent to the reference."""
        return [label for label, test in self.equivalences(table).items() if test.holds]

    def contrasts(self, table: Table) -> list[Contrast]:
        """Return the comparisons that the suite declared beside those with the reference."""
        if not (self.suite and self.suite.contrasts and self.of_suite(table)):
            return []
        return compare_contrasts(self.suite.contrasts, table, self.margin_of(table), self.coverage.labels(table))

    def changes(self, series: Series) -> list[Change]:
        """Return how the differences to the reference, and the declared contrasts, change along a setting."""
        contrasts = self.suite.contrasts if self.suite else ()
        return compare_changes(series, self.reference, contrasts, self.coverage.labels)

    @cached_property
    def series(self) -> list[Series]:
        """Tables along the values of the setting that the suite varies, a task at a time; none if it varies several."""
        if not self.suite or len(self.suite.vary) != 1:
            return []
        (setting,) = self.suite.vary
        found: dict[tuple[str, str], dict[Any, Table]] = {}
        for table in filter(self.of_suite, self.tables):
            value = table.config.values_of([setting])[setting]
            found.setdefault((table.task.name, table.protocol), {})[value] = table  # protocols are not compared
        series = []
        for (task, _), tables in found.items():
            if len(tables) > 1:
                ordered = {value: tables[value] for value in sorted(tables, key=sort_key)}
                untested = tuple(value for value in self._declared_values(task, setting) if value not in tables)
                series.append(Series(setting, ordered, untested))
        return series

    def _declared_values(self, task: str, setting: str) -> dict[Any, None]:
        """Return the values that the suite varies a setting over on a task, each once, in order."""
        kinds = [kind for kind in self.coverage.planned if kind.task == task]
        return dict.fromkeys(kind.values_of([setting])[setting] for kind in kinds)

    @cached_property
    def summaries(self) -> list[tuple[list[Table], Summary | None]]:
        """Groups of tables that compare, each with its figures across tasks."""
        return [(group, summarise(group)) for group in comparable(self.tables)]

    @property
    def overviews(self) -> list[list[Table]]:
        """Groups of tables that compare, without those that are shown along a setting."""
        shown = {table for series in self.series for table in series.ordered}
        # Tables along a setting are a series of one task each; side by side they would be shown a second time.
        return [group for group, _ in self.summaries if not shown.issuperset(group)]


def _without_table(records: Iterable[Record], tables: Iterable[Table]) -> tuple[Record, ...]:
    """Return the records of runs that select for no table that is there."""
    shown = {record.identity for table in tables for record in table.selecting}
    return tuple(record for record in records if record.config.stage == "select" and record.identity not in shown)
