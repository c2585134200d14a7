"""The parts of the HTML page for its template: the document's sentences as markup, and its pictures."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from pebench.results import figures
from pebench.results.cells import Column, Grid
from pebench.results.document import Comparison, Document, Quality, Section, document, texts
from pebench.results.grids import by_family, verdict_first
from pebench.results.missing import absence_lines
from pebench.results.page import Page
from pebench.results.prose import Code, Inline, Link, Prose, Strong, plain, prose
from pebench.results.writers.html.svg import BAR_WIDTH, bar_of, inline

PAGE = 1200
"""Width of a page on a desktop, in pixels, to which tables are fitted."""

Pictures = Mapping[str, Sequence[figures.Picture]]


def markup(sentence: Prose) -> Markup:
    """Return a sentence in HTML; line breaks and further spaces are one space.

    Example:
        >>> print(markup(prose("**Finding.** `add` < rope")))
        <b>Finding.</b> <code>add</code> &lt; rope
    """
    return Markup("").join(map(_element, sentence)).strip()


def _element(part: Inline) -> Markup:
    if isinstance(part, Strong):
        return Markup("<b>{}</b>").format(Markup("").join(map(_element, part.parts)))
    if isinstance(part, Code):
        return Markup("<code>{}</code>").format(_one_line(part.text))
    if isinstance(part, Link):
        if part.address:
            return Markup('<a href="{}" title="{}">{}</a>').format(part.address, part.title, part.text)
        return Markup('<span title="{}">{}</span>').format(part.title, part.text)
    return escape(_one_line(part))


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def content(page: Page) -> dict[str, Any]:
    """Return what the template shows of a page."""
    found, pictures = document(page), figures.by_stem(page)
    series, overviews = _series(found, pictures), [_comparison(group) for group in found.overviews]
    return {
        "name": found.name,
        "question": found.question and markup(found.question),
        "finding": [(markup(text), list(map(markup, items))) for text, items in found.finding],
        "departure": found.departure and markup(found.departure),
        "lead": _figures(pictures, figures.LEAD),
        "reference": found.reference,
        "rows_text": markup(prose(texts.LEGEND)),
        "rows": list(map(markup, found.rows)),
        "declared": list(map(markup, found.declared)),
        "since": texts.SINCE,
        "remarks": list(map(markup, found.remarks)),
        "overviews": overviews,
        "compared": any(group["differences"] for group in (*series, *overviews)),
        "differences_text": markup(found.differences_text),
        "values_text": texts.VALUES,
        "changes_text": texts.CHANGES,
        "series": series,
        "sections": [_section(section, pictures) for section in found.sections],
        "across": _across(found, pictures),
        "quality_title": texts.QUALITY_TITLE,
        "quality_text": found.quality_text,
        "quality": [_quality(part) for part in found.quality],
        "gates_title": texts.GATES_TITLE,
        "gates_text": texts.GATES,
        "gates": list(map(markup, found.gates)),
        "command": found.command,
        "suite_command": found.suite_command,
        "gap": found.gap,
        "complete": found.complete,
        "limits": list(map(markup, found.limits)),
        "notes": list(map(markup, found.notes)),
        "undrawn": figures.drawn(page.tables).count(False),
    }


def _comparison(group: Comparison) -> dict[str, Any]:
    return {
        "title": group.title,
        "heading": group.heading,
        "means": _shown(group.values),
        "differences": group.differences and _shown(group.differences),
        "gap": group.gap,
        "cite": _cite(group),
    }


def _shown(grid: Grid) -> dict[str, Any]:
    """Return a grid with what the template needs to draw it: rows by family, bars, and the colours of encodings."""
    labels = grid["Encoding"].texts if "Encoding" in grid else []
    colours = {label: mark.colour for label, mark in _marks(labels).items()}
    bars = {name: [bar_of(cell.bar, column.span) for cell in column.cells] for name, column in grid.items()}
    return {
        "grid": grid,
        "families": by_family(grid),
        "bars": bars,
        "colours": [colours[label] for label in labels],
        "fits": sum(_width(name, column, any(bars[name])) for name, column in grid.items()) < PAGE,
    }


def _width(name: str, column: Column, bars: bool) -> float:
    """Return about how wide a column is, in pixels."""
    longest = max(map(len, [*name.split("\n"), *column.texts]))
    return 7.5 * longest + 36 + (BAR_WIDTH + 10) * bars


def _marks(labels: list[str]) -> dict[str, Any]:
    from pebench.results.figures.style import marks

    return marks(labels)


def _cite(part: Any) -> Markup:
    """Return the sentence that cites the sources of a part."""
    return markup(("Cite: ", *part.sources.links, "; as BibTeX: ", Code(part.sources.command), "."))


def _series(found: Document, pictures: Pictures) -> list[dict[str, Any]]:
    return [
        {
            **_comparison(series.comparison),
            "changes": series.changes and _shown(verdict_first(series.changes)),
            "warnings": series.warnings,
            "gap": series.gap,
            "pictures": _figures(pictures, series.stem),
        }
        for series in found.series
    ]


def _section(section: Section, pictures: Pictures) -> dict[str, Any]:
    costs: Grid = {"Encoding": section.results["Encoding"]} | section.costs
    details = [(d.name, d.title, markup(d.text), _shown(verdict_first(d.grid))) for d in section.details]
    return {
        "id": section.stem,
        "heading": section.heading,
        "compared": section.compared,
        "summary": section.summary,
        "tally": section.tally,
        "results": _shown(verdict_first(section.results)),
        "costs": _shown(costs),
        "timings": section.timings,
        "cite": _cite(section),
        "pictures": _figures(pictures, section.stem),
        "details": details,
        "cautions": section.cautions,
        "absences": list(map(plain, absence_lines(section.absences))),
        "command": section.command,
        "facts": {name: markup(text) for name, text in section.facts.items()},
    }


def _across(found: Document, pictures: Pictures) -> list[dict[str, Any]]:
    return [
        {
            "title": across.title,
            "heading": across.heading,
            "standings": across.standings and _shown(across.standings),
            "facts": across.facts,
            "cite": _cite(across),
            "pictures": _figures(pictures, across.stem),
        }
        for across in found.across
    ]


def _quality(part: Quality) -> dict[str, Any]:
    """Return how good the models of a task are."""
    return {
        "task": part.task,
        "grid": part.grid and _shown(part.grid),
        "facts": list(map(markup, part.facts)),
        "sources": markup(part.sources),
    }


def _figures(pictures: Pictures, stem: str) -> list[dict[str, Any]]:
    """Return the pictures of one table, of a series, or across tasks."""
    return [
        {"title": picture.title, "caption": markup(prose(picture.caption)), "svg": inline(picture)}
        for picture in pictures.get(stem, ())
    ]
