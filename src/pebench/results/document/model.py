"""The parts of a document. None of them knows how it is written."""

from dataclasses import dataclass

from pebench.results.across import Summary
from pebench.results.cells import Grid
from pebench.results.citations import Sources
from pebench.results.missing import Absence
from pebench.results.prose import Prose


@dataclass(frozen=True)
class Comparison:
    """Tables side by side.

    Args:
        title: The settings that they have in common.
        heading: The heading above them.
        values: Means of the headline metrics.
        differences: Differences to the reference; empty where there are none.
        absences: Runs of the tables without a value.
        gap: The rows that nothing is tested of, in a sentence; empty if there are none.
        sources: Works that the results are based on.
    """

    title: str
    heading: str
    values: Grid
    differences: Grid
    absences: tuple[Absence, ...]
    gap: str
    sources: Sources


@dataclass(frozen=True)
class SeriesPart:
    """A task along a setting.

    Args:
        comparison: The tables side by side.
        changes: How differences change from the first value to the last; empty where none is known at both.
        warnings: Facts to know before comparing the two ends.
        gap: The values that nothing is tested with, in a sentence; empty if there are none.
        stem: Beginning of the names of its pictures.
    """

    comparison: Comparison
    changes: Grid
    warnings: tuple[str, ...]
    gap: str
    stem: str


@dataclass(frozen=True)
class Detail:
    """A further grid of a table.

    Args:
        name: Its kind in a word or two: ``contrasts``.
        title: Its heading.
        text: The meaning of its cells.
        grid: Its cells.
    """

    name: str
    title: str
    text: Prose
    grid: Grid


@dataclass(frozen=True)
class Section:
    """One table with all that belongs to it.

    Args:
        title: Its task with what its runs have in common.
        heading: Its task, with what tells it from the other tables of the page.
        stem: Beginning of the names of its pictures.
        summary: The task in a line.
        results: Means, differences and verdicts.
        costs: Parameters, operations, throughput and memory, in the rows of `results`.
        timings: A sentence that throughput and memory do not compare; empty where they do.
        details: Further grids that its records allow.
        warnings: Facts to know before comparing the rows.
        cautions: Those of them that bear on what may be claimed; the others are among the facts.
        tally: Its verdicts, counted.
        compared: True if its differences are shown above too, beside those of other tables.
        absences: Runs without a value.
        sources: Works that the results are based on.
        command: The command line that makes its records again.
        facts: Settings and provenance, by name.
    """

    title: str
    heading: str
    stem: str
    summary: str
    results: Grid
    costs: Grid
    timings: str
    details: tuple[Detail, ...]
    warnings: tuple[str, ...]
    cautions: tuple[str, ...]
    tally: str
    compared: bool
    absences: tuple[Absence, ...]
    sources: Sources
    command: str
    facts: dict[str, Prose]

    def detail(self, name: str) -> Grid:
        """Return the grid of a detail; empty where there is none of this name."""
        return next((detail.grid for detail in self.details if detail.name == name), {})


@dataclass(frozen=True)
class Across:
    """Figures across the tasks of tables that compare.

    Args:
        title: The settings that the tables have in common.
        heading: The heading above them.
        standings: The figures; empty where there are none.
        facts: Facts to know of them, a sentence each.
        summary: The figures as data; ``None`` where there are none.
        sources: Works that the results are based on.
        stem: Name of its picture; empty where there is none.
    """

    title: str
    heading: str
    standings: Grid
    facts: tuple[str, ...]
    summary: Summary | None
    sources: Sources
    stem: str


@dataclass(frozen=True)
class Quality:
    """How good the models of a task are.

    Args:
        task: Name of the task.
        grid: The best and the median row beside published models; empty where none are known.
        facts: How much the runs saw, and how much validation still changed, a paragraph for each table.
        sources: The sources of published results; empty without any.
    """

    task: str
    grid: Grid
    facts: tuple[Prose, ...]
    sources: Prose


@dataclass(frozen=True)
class Document:
    """All that a page shows.

    Args:
        name: Name of the suite; ``None`` without one.
        reference: Label of the encoding that the others are compared to.
        command: The command that writes the page.
        question: The question; ``None`` without a suite.
        finding: The answer in a few statements, the most important one first: its words, and the items of its list.
        departure: A paragraph that the differences are not those that were declared; ``None`` where they are.
        differences_text: The meaning of a grid of differences.
        series: Tasks along a setting.
        overviews: Tables side by side.
        rows: A sentence for each encoding.
        declared: The expectation and the decision rule, a paragraph each.
        remarks: Remarks since the declaration.
        sections: The tables.
        across: Figures across tasks.
        quality: How good the models are, a part for each task.
        quality_text: How to read these parts; empty where they explain themselves.
        gates: A sentence for each condition that applies to a table.
        suite_command: The command that makes all records again; ``None`` without a suite.
        gap: The tasks or settings that nothing is tested on, in a sentence; empty if there are none.
        complete: A sentence that nothing failed or is missing; empty where something is.
        limits: Limits of the tables, a sentence each.
        notes: How to read the page, a sentence or more each.
    """

    name: str | None
    reference: str
    command: str
    question: Prose | None
    finding: tuple[tuple[Prose, tuple[Prose, ...]], ...]
    departure: Prose | None
    differences_text: Prose
    series: tuple[SeriesPart, ...]
    overviews: tuple[Comparison, ...]
    rows: tuple[Prose, ...]
    declared: tuple[Prose, ...]
    remarks: tuple[Prose, ...]
    sections: tuple[Section, ...]
    across: tuple[Across, ...]
    quality: tuple[Quality, ...]
    quality_text: str
    gates: tuple[Prose, ...]
    suite_command: str | None
    gap: str
    complete: str
    limits: tuple[Prose, ...]
    notes: tuple[Prose, ...]
