"""Pictures of tables: learning curves, differences, costs and ranks. They are drawn without torch."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pebench.results.across import Summary
    from pebench.results.contrasts import Series
    from pebench.results.page import Page
    from pebench.results.tables import Table

FEW_ROWS = 24
"""Most rows of a table with all kinds of pictures; with more, differences alone can still be read."""
MOST_ROWS = 60
"""Most rows of a table, or of ranks, that have a picture."""
MOST_TABLES = 24
MOST_LINES = 150
"""Most tables of a page, and most rows together, that have pictures: the first ones. More would take long."""
LEAD = "lead"
"""Stem of the picture that a page begins with."""


@dataclass(frozen=True)
class Picture:
    """A figure with its title and caption.

    Args:
        stem: Name of what it shows: `LEAD`, a table's of `stems`, a series' of `series_stem`, or ``ranks``, ``ranks-2``
            and so on.
        name: Name of its file, without suffix: ``vit-digits-quick-curves``.
        title: Title, in a few words.
        caption: How to read it.
        figure: The figure of matplotlib.
    """

    stem: str
    name: str
    title: str
    caption: str
    figure: "Figure"

    @functools.cached_property
    def svg(self) -> str:
        """As SVG; see `pebench.results.figures.style.to_svg`."""
        from pebench.results.figures.style import to_svg

        return to_svg(self.figure)


def file_stem(text: str) -> str:
    """Return a text as the beginning of a file's name: a task's options may have any characters.

    Example:
        >>> file_stem("mine:task(path='../x')-core")
        'mine_task_path_.._x_-core'
    """
    return re.sub(r"[^\w.-]+", "_", text)


def stems(tables: Sequence["Table"]) -> list[str]:
    """Return the beginning of the names of each table's files: ``<task>-<tier>``.

    Where several would be the same the settings follow in which these differ, and a number if that does not help.
    """
    seen, found = Counter[str](), []
    for table in tables:
        differ = table.config.values_of(table.differing)
        named = [f"{name.partition('.')[2]}-{value}" for name, value in differ.items()]
        stem = file_stem("-".join([table.task.name, table.config.tier, *named]))
        seen[stem] += 1
        found.append(stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")
    return found


def drawn(tables: Sequence["Table"]) -> list[bool]:
    """Return True for each table that has pictures."""
    found, lines = [], 0
    for place, table in enumerate(tables):
        wanted = place < MOST_TABLES and len(table.rows) <= MOST_ROWS and lines + len(table.rows) <= MOST_LINES
        lines += len(table.rows) if wanted else 0
        found.append(wanted)
    return found


def table_pictures(page: "Page", table: "Table", stem: str) -> Iterator[Picture]:
    """Yield the pictures of one table that its records allow.

    Args:
        page: The page of the table.
        table: The table to draw.
        stem: Beginning of their names.
    """
    from pebench.results.figures import (
        apart,
        by_position,
        cost,
        curves,
        differences,
        extrapolation,
        inside,
        position_share,
        style,
    )

    kinds: tuple[tuple[str, str, Any], ...] = (
        ("curves", "Learning curves", curves),
        ("differences", "Differences", differences),
        ("cost", "Quality against cost", cost),
        ("beyond", "Beyond the trained size", extrapolation),
        ("by-position", "Loss by position", by_position),
        ("shares", "Position in the residual stream", position_share),
        ("inside", "Content and position inside", inside),
        ("apart", "Content and position by channel and head", apart),
    )
    for name, title, module in kinds:
        if len(table.rows) > FEW_ROWS and module is not differences:
            continue
        draw = module.draw
        if module is differences:
            draw = functools.partial(draw, equivalent=page.equivalences(table))
        figure = style.laid_out(draw, table)
        if figure is not None:
            place = LEAD if module is differences and len(page.tables) == 1 else stem
            yield Picture(place, f"{stem}-{name}", f"{title}, {table.task.name}", module.CAPTION, figure)


def lead_picture(page: "Page") -> Picture | None:
    """Return the picture that a page of several tables begins with: the differences of them all."""
    from pebench.results.figures import overview, style

    figure = style.laid_out(overview.draw, page)
    return Picture(LEAD, "differences", "All differences", overview.caption(page), figure) if figure else None


def series_stem(series: "Series") -> str:
    """Return the name of the picture of a metric along a setting."""
    return file_stem(f"{series.first.task.name}-by-{series.setting.partition('.')[2]}-{series.first.protocol}")


def series_picture(series: "Series") -> Picture | None:
    """Return the picture of a metric along a setting; None if there are too many encodings."""
    from pebench.results.figures import along, style

    name, title = series_stem(series), f"By {series.setting}, {series.first.task.name}"
    figure = style.laid_out(along.draw, series) if len(series.labels) <= MOST_ROWS else None
    return Picture(name, name, title, along.caption(series), figure) if figure else None


def ranks_stems(page: "Page") -> list[str]:
    """Return the name of the picture of ranks of each group of a page's tables: ``ranks``, ``ranks-2``; or nothing."""
    names = itertools.chain(["ranks"], map("ranks-{}".format, itertools.count(2)))
    return [next(names) if summary else "" for _, summary in page.summaries]


def ranks_picture(summary: "Summary", name: str) -> Picture | None:
    """Return the picture of average ranks; None if they are not tested, or there are too many encodings."""
    from pebench.results.figures import ranks, style

    figure = style.laid_out(ranks.draw, summary) if len(summary.rows) <= MOST_ROWS else None
    return Picture(name, name, "Average ranks", ranks.CAPTION, figure) if figure else None


@functools.lru_cache(maxsize=1)  # a page is written with them inside, and beside it
def pictures(page: "Page") -> tuple[Picture, ...]:
    """Return all pictures of a page: along a setting, of its tables (if not too many or too long), and across tasks."""
    return tuple(_pictures(page))


def _pictures(page: "Page") -> Iterator[Picture]:
    if len(page.tables) > 1 and any(drawn(page.tables)) and (picture := lead_picture(page)):
        yield picture
    for series in page.series:
        if picture := series_picture(series):
            yield picture
    for table, stem, wanted in zip(page.tables, stems(page.tables), drawn(page.tables), strict=True):
        if wanted:
            yield from table_pictures(page, table, stem)
    for (_, summary), name in zip(page.summaries, ranks_stems(page), strict=True):
        if summary and (picture := ranks_picture(summary, name)):
            yield picture


def by_stem(page: "Page") -> dict[str, list[Picture]]:
    """Return the pictures of a page by what they are of."""
    found: dict[str, list[Picture]] = {}
    for picture in pictures(page):
        found.setdefault(picture.stem, []).append(picture)
    return found


def captions(page: "Page") -> dict[str, str]:
    """Return how to read each kind of picture of a page, by its title."""
    return {picture.title.partition(",")[0]: picture.caption for picture in pictures(page)}


def write(page: "Page", folder: Path, png: bool = True) -> list[Path]:
    """Write every picture of a page as SVG and PNG, and delete those that it no longer has.

    Args:
        page: The page to draw.
        folder: Folder for nothing but these; it is made if need be.
        png: Write PNG, too.

    Returns:
        The files that were written.
    """
    from pebench.results.figures.style import to_png

    files = []
    for picture in pictures(page):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{picture.name}.svg"
        path.write_text(picture.svg, encoding="utf-8")
        files.append(path)
        if png:
            path.with_suffix(".png").write_bytes(to_png(picture.figure))
            files.append(path.with_suffix(".png"))
    for old in {*folder.glob("*.svg"), *folder.glob("*.png")}.difference(files):
        old.unlink()
    return files
