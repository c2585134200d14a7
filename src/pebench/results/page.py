"""What a page is made of, whatever it is written as: a suite, tables, what is absent, and what was found."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pebench.config import REFERENCE_ENCODING, RunConfig, assignments, sort_key
from pebench.errors import UserError, unknown_name
from pebench.formatting import counted, natural
from pebench.results.across import Summary, comparable, summarise
from pebench.results.missing import Absence, absence_counts, absence_lines, where
from pebench.results.stats import (
    ALPHA,
    BETTER_OR_WORSE,
    Difference,
    Estimate,
    equivalence,
    estimate,
    holm,
    paired_difference,
    verdict,
)
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record
from pebench.runs.suite import Suite

NAMED = 8
"""As many encodings are named in a row; the others are counted."""


@dataclass(frozen=True)
class Equivalence:
    """Whether a difference is small enough not to matter.

    Args:
        margin: The largest that does not, in the unit of the metric.
        p_adjusted: p-value of the test, after Holm's correction over the table; ``None`` with too few pairs.
    """

    margin: float
    p_adjusted: float | None

    @property
    def holds(self) -> bool:
        """Whether it may be said."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


@dataclass(frozen=True)
class Contrast:
    """Two rows that a suite declared to be compared.

    Args:
        first: Label of one.
        second: Label of what is subtracted.
        difference: At equal seeds.
        p_adjusted: Of the paired t-test, after Holm's correction over the table's contrasts.
        verdict: Of the first beside the second, in words.
        equivalent: Whether the difference is too small to matter; ``None`` without a margin.
    """

    first: str
    second: str
    difference: Difference
    p_adjusted: float | None
    verdict: str
    equivalent: Equivalence | None


@dataclass(frozen=True)
class Change:
    """How the difference of two rows changes along a setting, from its first value to its last.

    Args:
        first: Label of one.
        second: Label of what is subtracted.
        ends: Their difference at the first value and at the last, at the seeds that all four rows have.
        difference: The latter minus the former.
        p_adjusted: Of the paired t-test of the change, after Holm's correction over the comparisons of the series.
    """

    first: str
    second: str
    ends: tuple[Estimate, ...]
    difference: Difference
    p_adjusted: float | None

    @property
    def verdict(self) -> str:
        """What may be said: ``narrower``, ``wider``, ``turned`` (its sign is another), or as in `stats.verdict`."""
        before, after = self.ends
        told = verdict(self.difference, self.p_adjusted, higher_is_better=True)
        if told not in BETTER_OR_WORSE:
            return told
        if before.mean * after.mean < 0:
            return "turned"
        return "narrower" if abs(after.mean) < abs(before.mean) else "wider"


@dataclass(frozen=True)
class Series:
    """Tables of one task that differ in one setting.

    Args:
        setting: Its dotted name.
        tables: By its value, in order.
        untested: The other values that the suite asked for.
    """

    setting: str
    tables: dict[Any, Table]
    untested: tuple[Any, ...] = ()

    @property
    def first(self) -> Table:
        """Its task, protocol and reference are those of all."""
        return next(iter(self.tables.values()))

    @property
    def ordered(self) -> list[Table]:
        """The tables alone."""
        return [*self.tables.values()]

    @property
    def labels(self) -> list[str]:
        """Every encoding of the tables."""
        return sorted({row.label for table in self.tables.values() for row in table.rows}, key=natural)

    def apart(self, first: str, second: str) -> list[dict[int, float]]:
        """By seed that all have, how far apart two rows are at the first value and at the last.

        Less than two where a row is missing.
        """
        ends = self.ordered[0], self.ordered[-1]
        rows = [(table.row(first), table.row(second)) for table in ends]
        values = [(one.values, other.values) for one, other in rows if one and other]
        seeds = sorted(set.intersection(*(set(mine) & set(theirs) for mine, theirs in values))) if values else []
        return [{seed: mine[seed] - theirs[seed] for seed in seeds} for mine, theirs in values]


@dataclass(frozen=True, eq=False)
class Page:
    """Tables, and the suite that asked for them.

    Args:
        tables: In the order of the page.
        suite: ``None`` for runs that answer no declared question.
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
        """The page of some records.

        Args:
            records: In any order.
            suite: What they were made for.
            allow_unmatched: Keep tables whose rows break their regime.
            reference: Label of the encoding that the others are compared to, if it is not the suite's.

        Raises:
            UserError: For an unknown task, two different records of one run, rows that break their regime, a
                suite that none of the records is of, or a reference that is not among them.
        """
        compared_to = reference or (suite.reference if suite else REFERENCE_ENCODING)
        records = list(records)
        tables = build_tables(records, allow_unmatched, compared_to)
        shared, shown = suite is not None and suite.shared_machine, {id(r) for t in tables for r in t.selecting}
        left = tuple(r for r in records if r.config.stage == "select" and id(r) not in shown)
        page = Page(tuple(replace(table, shared_machine=shared) for table in tables), suite, left)
        page = replace(page, tables=tuple(map(page._counted, page.tables)))
        labels = sorted({row.label for table in page.tables for row in table.rows})
        if reference and reference not in labels:
            raise unknown_name("reference", reference, labels)
        if suite and not any(page.of_suite(table) for table in page.tables):
            tasks = ", ".join(sorted({f"{table.task.name} ({table.config.tier})" for table in page.tables}))
            raise UserError(
                f"expected records of the suite {suite.name!r}, but none has its tasks, tier and settings; these are "
                f"of {tasks}. Leave out --suite, or name another."
            )
        return page

    def _counted(self, table: Table) -> Table:
        return table.counting(len(self.labels(table))) if self.of_suite(table) else table

    @property
    def reference(self) -> str:
        """Label of the encoding that the others are compared to."""
        return self.tables[0].reference if self.tables else REFERENCE_ENCODING

    @cached_property
    def planned(self) -> tuple[RunConfig, ...]:
        """One run of each task with each encoding of the suite, before anything is selected or matched."""
        return tuple(replace(self.suite, regime="width", select={}).kinds()) if self.suite else ()

    @property
    def remarks(self) -> Sequence[str]:
        """What has come up since the suite was declared."""
        return self.suite.remarks if self.suite else ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that the suite tests."""
        return self.suite.tested_seeds if self.suite else ()

    def of_suite(self, table: Table) -> bool:
        """Whether the suite asked for a table."""
        return bool(self._asked(table))

    def absences(self, table: Table) -> Iterator[Absence]:
        """The runs without a value: those that failed, then those that other rows have or the suite plans."""
        kinds = self._asked(table)
        asked = {kind.label for kind in kinds}
        for row in table.rows:
            yield from (self._absence(table.config, row.label, seed, reason) for seed, reason in row.failed.items())
        yield from self._failed(table.selecting)
        seeds = {record.config.seed for record in table.records}
        for row in table.rows:
            expected = seeds.union(self.seeds if row.label in asked else ())
            lost = expected - row.values.keys() - row.failed.keys()
            yield from (self._absence(table.config, row.label, seed) for seed in sorted(lost))
            if chosen := table.outdated.get(row.label):
                label = f"{row.label} with {', '.join(assignments(chosen))}"
                yield from (self._absence(table.config, label, seed) for seed in sorted(expected))
        for kind in _without_row(kinds, table):
            yield from (self._absence(kind, kind.label, seed) for seed in self.seeds)
        yield from self._untried(kinds, table.selecting)

    def _absence(self, config: RunConfig, label: str, seed: int, reason: str | None = None, tried: str = "") -> Absence:
        return Absence(config.task, label, seed, reason, tried, self._varied(config))

    def _failed(self, selecting: Iterable[Record]) -> Iterator[Absence]:
        """The runs that select and failed; a value at which training diverges has been tried."""
        for record in selecting:
            if not record.ok and not record.diverged:
                config = record.config
                yield self._absence(config, config.label, config.seed, record.reason, _words(config, config.selected))

    def _untried(self, kinds: Iterable[RunConfig], records: Iterable[Record]) -> Iterator[Absence]:
        """The runs that would select for some kinds of run, and that are not among some records."""
        if not (suite := self.suite):
            return
        known = {self._absence(c, c.label, c.seed, tried=_words(c, suite.select)) for c in (r.config for r in records)}
        for kind in kinds:
            for candidate in suite.candidates(kind):
                for seed in suite.selecting_seeds(kind.task):
                    run = self._absence(kind, kind.label, seed, tried=_words(candidate, suite.select))
                    if run not in known:
                        yield run

    def lacking(self, table: Table) -> list[RunConfig]:
        """The kinds of run that the suite asked for and that a table has no row of."""
        return _without_row(self._asked(table), table)

    def labels(self, table: Table) -> set[str]:
        """The rows of a table, and those that it lacks."""
        return {row.label for row in table.rows}.union(kind.label for kind in self.lacking(table))

    def _asked(self, table: Table) -> list[RunConfig]:
        """The kinds of run of a table that the suite asked for."""
        suite, config = self.suite, table.config
        if not suite or (suite.regime, tuple(sorted(suite.select))) != (config.regime, config.selected):
            return []
        return [kind for kind in self.planned if table.has_settings_of(kind)]

    @property
    def unplanned(self) -> list[str]:
        """What is here though the suite did not ask for it: tables by their task, else rows."""
        if not self.suite:
            return []
        asked = [(table, {kind.label for kind in self._asked(table)}) for table in self.tables]
        tables = [f"{table.task.name} (other settings)" for table, labels in asked if not labels]
        rows = [(table, labels, row.label) for table, labels in asked if labels for row in table.rows]
        return tables + [f"{table.task.name} {name}" for table, labels, name in rows if name not in labels]

    @cached_property
    def without_table(self) -> list[Absence]:
        """Runs of the suite on tasks, at settings, that nothing is tested on."""
        lost = self.untested
        tested = [self._absence(kind, kind.label, seed) for kind in lost for seed in self.seeds]
        return [*tested, *self._failed(self.selecting), *self._untried(lost, self.selecting)]

    @property
    def gap(self) -> str:
        """Of what nothing is tested, in words; empty if there is no such task or setting."""
        lost = ", ".join(dict.fromkeys(absence.where for absence in self.without_table))
        return f"Nothing tested: {lost}." if lost else ""

    @cached_property
    def untested(self) -> list[RunConfig]:
        """The kinds of run that the suite asked for, on tasks and at settings that nothing is tested on."""
        asked = {kind.kind_key for table in self.tables for kind in self._asked(table)}
        return [kind for kind in self.planned if kind.kind_key not in asked]

    def _where(self, table: Table) -> str:
        return where(table.config.task, self._varied(table.config))

    def _varied(self, config: RunConfig) -> str:
        """The settings that make a run's table another than others of its task."""
        return _words(config, self.suite.vary) if self.suite else ""

    @cached_property
    def absent(self) -> list[Absence]:
        """Every run without a value."""
        return [*(absence for table in self.tables for absence in self.absences(table)), *self.without_table]

    def check_complete(self) -> None:
        """Refuse what has failed or missing runs.

        Raises:
            UserError: With every one of them.
        """
        if not self.absent:
            return
        groups = [(self._where(table), [*self.absences(table)]) for table in self.tables]
        groups += [(task, [*lost]) for task, lost in itertools.groupby(self.without_table, lambda run: run.where)]
        lines = (f"{task}: {line}" for task, absences in groups for line in absence_lines(absences))
        raise UserError(
            f"expected every run to have finished, but {len(self.absent)} have failed or are missing:\n  "
            + "\n  ".join(lines)
            + "\nRun them (--retry-failed does failed ones again), or leave out --strict, which shows them."
        )

    def equivalences(self, table: Table) -> dict[str, Equivalence]:
        """Label to whether a row is equivalent to the reference, where there is a difference and a margin."""
        margin = self.suite.margin_of(table.task.name) if self.suite else None
        if margin is None:
            return {}
        rows = [(row.label, row.difference) for row in table.rows if row.difference]
        found = _equivalences([difference for _, difference in rows], margin, table.declared - 1)
        return {name: one for (name, _), one in zip(rows, found, strict=True)}

    def contrasts(self, table: Table) -> list[Contrast]:
        """What the suite declared to be compared beside the reference, as far as a table has both rows at a seed."""
        if not (self.suite and self.suite.contrasts and self.of_suite(table)):
            return []
        margin, pairs = self.suite.margin_of(table.task.name), []
        for first, second in self.suite.contrasts:
            one, other = table.row(first), table.row(second)
            if one and other and (difference := paired_difference(one.values, other.values)):
                pairs.append((first, second, difference))
        differences = [difference for _, _, difference in pairs]
        declared = len(self._possible(self.suite.contrasts, table))
        adjusted = holm([difference.p_value for difference in differences], declared)
        small = [None] * len(pairs) if margin is None else _equivalences(differences, margin, declared)
        return [
            Contrast(first, second, d, p, verdict(d, p, table.task.higher_is_better), equivalent)
            for (first, second, d), p, equivalent in zip(pairs, adjusted, small, strict=True)
        ]

    @cached_property
    def series(self) -> list["Series"]:
        """Tables along the values of the setting that the suite varies, a task at a time; none if it varies several."""
        if not self.suite or len(self.suite.vary) != 1:
            return []
        (setting,) = self.suite.vary
        found: dict[tuple[str, str], dict[Any, Table]] = {}
        for table in filter(self.of_suite, self.tables):
            found.setdefault((table.task.name, table.protocol), {})[table.config.values_of([setting])[setting]] = table
        return [
            Series(
                setting,
                {value: tables[value] for value in sorted(tables, key=sort_key)},
                tuple(value for value in self._values(task, setting) if value not in tables),
            )
            for (task, _), tables in found.items()
            if len(tables) > 1
        ]

    def _values(self, task: str, setting: str) -> dict[Any, None]:
        """What the suite varies a setting over on a task, each once, in order."""
        return dict.fromkeys(kind.values_of([setting])[setting] for kind in self.planned if kind.task == task)

    def changes(self, series: Series) -> list[Change]:
        """How the differences to the reference, and the contrasts that the suite declared, change along a setting."""
        labels = set[str]().union(*(self.labels(table) for table in series.ordered))
        pairs = [(label, self.reference) for label in sorted(labels, key=natural) if label != self.reference]
        pairs += self.suite.contrasts if self.suite else ()
        pairs = self._possible(dict.fromkeys(pairs), series.ordered[0], series.ordered[-1])
        found = []
        for first, second in pairs:
            apart = series.apart(first, second)
            if len(apart) == 2 and (change := paired_difference(apart[1], apart[0])):
                found.append((first, second, tuple(estimate(end.values()) for end in apart), change))
        adjusted = holm([change.p_value for *_, change in found], len(pairs))
        return [Change(*parts, p) for parts, p in zip(found, adjusted, strict=True)]

    def _possible(self, pairs: Iterable[tuple[str, str]], *tables: Table) -> list[tuple[str, str]]:
        """Of pairs of labels those whose rows every table has, or is to have."""
        labels = set.intersection(*(self.labels(table) for table in tables))
        return [pair for pair in pairs if labels.issuperset(pair)]

    @cached_property
    def summaries(self) -> list[tuple[list[Table], Summary | None]]:
        """Groups of tables that compare, each with what may be said across them."""
        return [(group, summarise(group)) for group in comparable(self.tables)]

    @property
    def overviews(self) -> list[list[Table]]:
        """Groups of tables that compare, without those that are shown along a setting."""
        shown = {id(table) for series in self.series for table in series.ordered}
        return [group for group, _ in self.summaries if not shown.issuperset(map(id, group))]

    @property
    def finding(self) -> str:
        """What the tables say, in one sentence."""
        words: dict[str, dict[str, list[str]]] = {}
        for table in self.tables:
            equivalent = self.equivalences(table)
            for row in table.rows:
                if row.verdict is None:
                    continue
                kind = row.verdict.partition(" at ")[0].partition(" with ")[0]
                words.setdefault(kind, {}).setdefault(self._where(table), []).append(row.label)
                if row.label in equivalent and equivalent[row.label].holds:
                    words.setdefault("equivalent", {}).setdefault(self._where(table), []).append(row.label)
        kinds = (*BETTER_OR_WORSE, "not separable", "no test")
        total = sum(len(names) for kind in kinds for names in words.get(kind, {}).values())
        if not total:
            return f"Nothing is compared: no other encoding shares a finished seed with {self.reference}."
        parts = [
            _counted("not tested" if kind == "no test" else kind, words[kind], kind in BETTER_OR_WORSE)
            for kind in kinds
            if kind in words
        ]
        if "equivalent" in words:
            parts.append(_counted("of all equivalent within the margin", words["equivalent"], True))
        parts += absence_counts(self.absent)
        return f"Of {counted(total, 'comparison')} with {self.reference}: {'; '.join(parts)}."


def _words(config: RunConfig, settings: Iterable[str]) -> str:
    """Some settings of a run with their values, in words."""
    return ", ".join(assignments(config.values_of(sorted(settings))))


def _without_row(kinds: Iterable[RunConfig], table: Table) -> list[RunConfig]:
    return [kind for kind in kinds if table.row(kind.label) is None]


def _equivalences(differences: Sequence[Difference], margin: float, declared: int) -> list[Equivalence]:
    adjusted = holm([equivalence(difference, margin) for difference in differences], declared)
    return [Equivalence(margin, p) for p in adjusted]


def _counted(kind: str, names: dict[str, list[str]], named: bool) -> str:
    """``2 better (lm-wikitext2: concat, rope)``."""
    count = sum(map(len, names.values()))
    text = "; ".join(f"{task}: {shortened(found)}" for task, found in names.items())
    return f"{count} {kind} ({text})" if named else f"{count} {kind}"


def shortened(names: Sequence[str]) -> str:
    """Names in a row, and how many there are beyond the first.

    Example:
        >>> shortened(["a", "b"]), shortened([*"abcdefghij"])
        ('a, b', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
