"""A page made into a document."""

import functools
import shlex
from collections.abc import Sequence

from pebench.results import figures, grids
from pebench.results.answer import answer
from pebench.results.citations import sources
from pebench.results.document import texts
from pebench.results.document.declaration import declaration, departure, margins
from pebench.results.document.details import details
from pebench.results.document.facts import across_facts, table_facts
from pebench.results.document.limits import complete, gate_lines, limits
from pebench.results.document.model import Across, Comparison, Document, Section, SeriesPart
from pebench.results.document.quality import quality, quality_text
from pebench.results.finding import tally
from pebench.results.legend import legend
from pebench.results.page import Page
from pebench.results.prose import Prose, prose
from pebench.results.provenance import cautions, command, series_warnings, warnings
from pebench.results.stats import MIN_PAIRS
from pebench.results.tables import Table
from pebench.results.titles import group_title, heading, series_gap, series_heading, series_title, title


@functools.lru_cache(maxsize=1)  # a page is written in several formats, one after the other
def document(page: Page) -> Document:
    """Return all that a page shows, as data.

    Args:
        page: The page to write.
    """
    suite = page.suite
    option = f" --suite {shlex.quote(suite.file or suite.name)}" if suite else ""
    stems, parts = figures.stems(page.tables), quality(page)
    return Document(
        name=suite.name if suite else None,
        reference=page.reference,
        command=f"pebench report{option}",
        question=prose(f"**Question.** {suite.question}") if suite else None,
        finding=tuple((prose(found.text), tuple(map(prose, found.items))) for found in answer(page)),
        departure=departure(page),
        differences_text=differences_text(page),
        series=_series(page),
        overviews=tuple(_overview(group, page, len(page.overviews) > 1) for group in page.overviews),
        rows=tuple(legend(page)),
        declared=tuple(declaration(page)),
        remarks=tuple(map(prose, page.remarks)),
        sections=tuple(_section(page, table, stem) for table, stem in zip(page.tables, stems, strict=True)),
        across=_across(page),
        quality=parts,
        quality_text=quality_text(page, parts),
        gates=tuple(gate_lines(page)),
        suite_command=suite.command if suite else None,
        gap=page.coverage.gap,
        complete=complete(page),
        limits=tuple(limits(page)),
        notes=_notes(page),
    )


def compared_groups(page: Page) -> list[list[Table]]:
    """Return groups of tables that compare with each other; a table that compares with no other is one alone."""
    groups = [group for group, _ in page.summaries]
    shown = {table for group in groups for table in group}
    groups += [[table] for table in page.tables if table not in shown]
    return groups


def differences_text(page: Page) -> Prose:
    """Return the meaning of a grid of differences."""
    declared = " or ".join(margins(page))
    equivalent = texts.EQUIVALENT.format(margins=declared) if declared else ""
    return prose(texts.DIFFERENCES.format(reference=page.reference, equivalent=equivalent))


def _overview(group: Sequence[Table], page: Page, several: bool) -> Comparison:
    """Return tables side by side, named by what they have in common where a page has several such groups."""
    name = group_title(group)
    return _comparison(name, _grouped("Overview", name, several), group, page)


def _grouped(word: str, name: str, several: bool) -> str:
    return f"{word} ({name})" if several else word


def _comparison(name: str, heading: str, group: Sequence[Table], page: Page, along: str = "") -> Comparison:
    return Comparison(
        title=name,
        heading=heading,
        values=grids.side_by_side(group, page, along),
        differences=grids.differences(group, page, along),
        absences=tuple(absence for table in group for absence in page.coverage.absences(table)),
        gap=page.coverage.row_gap(group),
        sources=sources(group),
    )


def _series(page: Page) -> tuple[SeriesPart, ...]:
    return tuple(
        SeriesPart(
            comparison=_comparison(
                series_title(series), series_heading(series, page.series), series.ordered, page, series.setting
            ),
            changes=grids.changes(series, page),
            warnings=tuple(series_warnings(series.ordered[0], series.ordered[-1])),
            gap=series_gap(series),
            stem=figures.series_stem(series),
        )
        for series in page.series
    )


def _section(page: Page, table: Table, stem: str) -> Section:
    shown = [*page.overviews, *(series.ordered for series in page.series)]
    return Section(
        title=title(table),
        heading=heading(table, page.tables),
        stem=stem,
        summary=_summary(table),
        results=grids.results(table, page),
        costs=grids.costs(table),
        timings="" if table.timings_compare else texts.TIMINGS,
        details=tuple(details(table, page)),
        warnings=tuple(warnings(table)),
        cautions=tuple(cautions(table)),
        tally=tally(table, page),
        compared=any(table in group for group in shown),
        absences=tuple(page.coverage.absences(table)),
        sources=sources([table]),
        command=command(table),
        facts=table_facts(table),
    )


def _summary(table: Table) -> str:
    """Return a table's task and what its runs have in common, in a sentence each; without a full stop."""
    common = group_title([table])
    return f"{table.task.summary}. {common[:1].upper()}{common[1:]}"


def _across(page: Page) -> tuple[Across, ...]:
    return tuple(
        Across(
            title=group_title(group),
            heading=_grouped("Across tasks", group_title(group), len(page.summaries) > 1),
            standings=grids.standings(summary) if summary else {},
            facts=tuple(across_facts(summary)),
            summary=summary,
            sources=sources(group),
            stem=stem,
        )
        for (group, summary), stem in zip(page.summaries, figures.ranks_stems(page), strict=True)
    )


def _notes(page: Page) -> tuple[Prose, ...]:
    notes = _items(texts.NOTES) + (_items(texts.NOTES_ACROSS) if page.summaries else [])
    return tuple(prose(note.format(reference=page.reference, pairs=MIN_PAIRS)) for note in notes)


def _items(text: str) -> list[str]:
    """Return the items of a list of `texts`."""
    return text.strip().removeprefix("- ").split("\n- ")
