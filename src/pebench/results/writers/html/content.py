"""What the HTML page shows, for its template: the same words and cells as in Markdown, with what they sort by."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from pebench.results import figures, grids
from pebench.results.citations import authors_and_year, sources, title_and_link
from pebench.results.legend import LEGEND, legend
from pebench.results.missing import absence_lines
from pebench.results.page import Page
from pebench.results.provenance import command, series_warnings, warnings
from pebench.results.tables import Table
from pebench.results.writers import markdown
from pebench.results.writers.html.inline import inline

SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
NUMBER = re.compile(r"([+-]?(?:[\d,]*\.)?[\d,]*\d(?:e[+-]?\d+)?)(?: ([kMGT]))?(?:$|[ *])")


@dataclass(frozen=True)
class Column:
    """One column of a table that can be sorted.

    Args:
        header: Its name.
        cells: As text.
        values: What each cell sorts by, ``None`` last; ``None`` if all sort by their text.
    """

    header: str
    cells: list[str]
    values: list[float | None] | None


def columns(grid: Mapping[str, list[str]]) -> list[Column]:
    """The columns of a grid: encodings sort by name, others by the number that their cells begin with.

    Example:
        >>> for column in columns({"Encoding": ["add", "rope"], "n": ["3 (1 failed)", "–"], "Verdict": ["", "better"]}):
        ...     print(column.values)
        None
        [3.0, None]
        None
    """
    numbers = {name: [number(cell) for cell in cells] for name, cells in grid.items()}
    words = {name for name, found in numbers.items() if name in grids.WORDS or not any(x is not None for x in found)}
    return [Column(name, cells, None if name in words else numbers[name]) for name, cells in grid.items()]


def number(text: str) -> float | None:
    """The number that a cell begins with, as our tables write it, but for a "<" before it; None if it does not.

    Example:
        >>> number("-0.0538 ± 0.0033"), number("1,148,802"), number("6.05 M"), number("**3e-05**"), number("better")
        (-0.0538, 1148802.0, 6050000.0, 3e-05, None)
    """
    found = NUMBER.match(text.removeprefix("**").removeprefix("<"))
    return float(found[1].replace(",", "")) * SI[found[2] or ""] if found else None


def prose(text: str) -> Markup:
    """A paragraph of our Markdown as HTML: code between backticks, bold between asterisks, all else as it is.

    Example:
        >>> print(prose("**Finding.** `add` < rope"))
        <b>Finding.</b> <code>add</code> &lt; rope
    """
    html = re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(" ".join(text.split()))))
    return Markup(re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html))


def _bullets(text: str) -> list[Markup]:
    """The items of the list in some Markdown of ours."""
    return [prose(item) for item in f"\n{text}".split("\n- ")[1:]]


def content(page: Page) -> dict[str, Any]:
    """What the template shows of a page."""
    return {
        "name": page.suite.name if page.suite else None,
        "head": [prose(text) for text in markdown.question(page)],
        "rows_text": prose(LEGEND),
        "rows": [prose(line) for line in legend(page)],
        "declared": [prose(text) for text in markdown.declaration(page)],
        "since": markdown.SINCE,
        "remarks": [prose(text) for text in page.remarks],
        "overviews": [
            {"title": grids.group_title(group), "cite": _cite(group), **_compared(group, page)}
            for group in page.overviews
        ],
        "differences_text": prose(markdown.differences_text(page)),
        "changes_text": markdown.CHANGES,
        "series": [
            {
                "title": grids.series_title(series),
                "pictures": _shown(page, figures.series_name(series)),
                "changes": columns(grids.changes(series, page)),
                "warnings": series_warnings(series.ordered[0], series.ordered[-1]),
                "gap": grids.series_gap(series),
                "cite": _cite(series.ordered),
                **_compared(series.ordered, page, series.setting),
            }
            for series in page.series
        ],
        "sections": [_section(page, *part) for part in zip(page.tables, figures.stems(page.tables), strict=True)],
        "across": list(_across(page)),
        "gates_text": markdown.GATES,
        "gates": [prose(line) for line in markdown.gate_lines(page)],
        "suite_command": page.suite.command if page.suite else None,
        "gap": page.gap,
        "complete": markdown.complete(page),
        "limits": [prose(line) for line in markdown.limits(page)],
        "notes": _bullets(markdown.notes(page)),
        "undrawn": figures.drawn(page.tables).count(False),
    }


def _section(page: Page, table: Table, stem: str) -> dict[str, Any]:
    return {
        "id": stem,
        "title": grids.title(table),
        "summary": table.task.summary,
        "columns": columns(grids.results(table, page) | grids.costs(table)),
        "cite": _cite([table]),
        "pictures": _shown(page, stem),
        "details": [(name, prose(text), columns(grid)) for name, text, grid in markdown.details(table, page)],
        "warnings": warnings(table),
        "absences": absence_lines(page.absences(table)),
        "command": command(table),
        "facts": {name: prose(text) for name, text in markdown.table_facts(table).items()},
    }


def _cite(tables: Sequence[Table]) -> dict[str, Any]:
    """The sources of tables: authors, title and link of each, and the command that prints them."""
    found = sources(tables)
    return {"works": [(authors_and_year(key), *title_and_link(key)) for key in found.keys], "command": found.command}


def _across(page: Page) -> Iterator[dict[str, Any]]:
    """The figures across tasks of each group of tables that compare."""
    for (group, summary), name in zip(page.summaries, figures.ranks_names(page), strict=True):
        yield {
            "title": grids.group_title(group),
            "columns": columns(grids.standings(summary)) if summary else [],
            "facts": markdown.across_facts(summary),
            "cite": _cite(group),
            "pictures": _shown(page, name),
        }


def _compared(group: Sequence[Table], page: Page, along: str = "") -> dict[str, list[Column]]:
    return {
        "columns": columns(grids.side_by_side(group, page, along)),
        "differences": columns(grids.differences(group, page, along)),
    }


def _shown(page: Page, stem: str) -> list[dict[str, Any]]:
    """The pictures of one table, or across tasks."""
    found = [picture for picture in figures.pictures(page) if picture.stem == stem]
    return [{"title": picture.title, "caption": prose(picture.caption), "svg": inline(picture)} for picture in found]
