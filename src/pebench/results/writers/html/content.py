"""The parts of the HTML page for its template: the document's sentences as markup, and its pictures."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from pebench.results import figures
from pebench.results.cells import Grid
from pebench.results.document import Comparison, Document, Section, document, texts
from pebench.results.missing import absence_lines
from pebench.results.page import Page
from pebench.results.prose import Code, Inline, Link, Prose, Strong, plain, prose
from pebench.results.writers.html.svg import inline

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
    return {
        "name": found.name,
        "head": list(map(markup, found.question)),
        "rows_text": markup(prose(texts.LEGEND)),
        "rows": list(map(markup, found.rows)),
        "declared": list(map(markup, found.declared)),
        "since": texts.SINCE,
        "remarks": list(map(markup, found.remarks)),
        "overviews": [_comparison(group) for group in found.overviews],
        "differences_text": markup(found.differences_text),
        "changes_text": texts.CHANGES,
        "series": _series(found, pictures),
        "sections": [_section(section, pictures) for section in found.sections],
        "across": _across(found, pictures),
        "gates_text": texts.GATES,
        "gates": list(map(markup, found.gates)),
        "suite_command": found.suite_command,
        "gap": found.gap,
        "complete": found.complete,
        "limits": list(map(markup, found.limits)),
        "notes": list(map(markup, found.notes)),
        "undrawn": figures.drawn(page.tables).count(False),
    }


def _comparison(group: Comparison) -> dict[str, Any]:
    return {"title": group.title, "means": group.values, "differences": group.differences, "cite": _cite(group)}


def _cite(part: Any) -> Markup:
    """Return the sentence that cites the sources of a part."""
    return markup(("Cite: ", *part.sources.links, "; as BibTeX: ", Code(part.sources.command), "."))


def _series(found: Document, pictures: Pictures) -> list[dict[str, Any]]:
    return [
        {
            **_comparison(series.comparison),
            "changes": series.changes,
            "warnings": series.warnings,
            "gap": series.gap,
            "pictures": _figures(pictures, series.stem),
        }
        for series in found.series
    ]


def _section(section: Section, pictures: Pictures) -> dict[str, Any]:
    grid: Grid = section.results | section.costs
    return {
        "id": section.stem,
        "title": section.title,
        "summary": section.summary,
        "grid": grid,
        "cite": _cite(section),
        "pictures": _figures(pictures, section.stem),
        "details": [(detail.name, markup(detail.text), detail.grid) for detail in section.details],
        "warnings": section.warnings,
        "absences": list(map(plain, absence_lines(section.absences))),
        "command": section.command,
        "facts": {name: markup(text) for name, text in section.facts.items()},
    }


def _across(found: Document, pictures: Pictures) -> list[dict[str, Any]]:
    return [
        {
            "title": across.title,
            "grid": across.standings,
            "facts": across.facts,
            "cite": _cite(across),
            "pictures": _figures(pictures, across.stem),
        }
        for across in found.across
    ]


def _figures(pictures: Pictures, stem: str) -> list[dict[str, Any]]:
    """Return the pictures of one table, of a series, or across tasks."""
    return [
        {"title": picture.title, "caption": markup(prose(picture.caption)), "svg": inline(picture)}
        for picture in pictures.get(stem, ())
    ]
