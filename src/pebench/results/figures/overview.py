"""The differences of every table in one picture: a panel for each table, a line for each row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pebench.results.cells import Style
from pebench.results.figures.style import INK, PAPER, VERDICTS, WIDE, folded
from pebench.results.grids.table import style_of
from pebench.results.tables import Row, Table
from pebench.results.titles import difference_unit, heading

if TYPE_CHECKING:
    from pebench.results.page import Page

CAPTION = (
    "The difference to the reference at equal seeds: mean and 95 % t-interval. ▲ better, ▼ worse (after Holm's "
    "correction), ◆ equivalent within the declared margin, ○ not separable. The intervals are not corrected."
)
FEWER = " Rows that differ or are equivalent somewhere are drawn ({drawn} of {rows}); the table has them all."

MOST_ROWS = 16
"""Most rows of which all are drawn; of more, those alone whose verdict is not "not separable"."""
MOST_PANELS = 12
COLUMNS = 4


def draw(page: "Page") -> Figure | None:
    """Draw a panel for each table, the best rows on top; return None if nothing is compared.

    Args:
        page: A page of two tables or more.
    """
    tables, labels = panels(page), rows(page)
    if not tables or not labels:
        return None
    columns = min(COLUMNS, len(tables))
    lines = -(-len(tables) // columns)
    names = [folded(label) for label in labels]
    high = sum(0.17 + 0.11 * name.count("\n") for name in names)
    figure = Figure(figsize=(WIDE, lines * (high + 0.75)), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, table in zip(grid, tables, strict=False):
        _panel(axes, table, labels, page)
        axes.set_title(folded(heading(table, page.tables)), pad=3)
    for axes in grid[len(tables) :]:
        axes.set_axis_off()
    grid[0].set_yticks(range(len(labels)), names)
    grid[0].set_ylim(len(labels) - 0.5, -0.5)
    return figure


def panels(page: "Page") -> list[Table]:
    """Return the tables that have a panel."""
    return [table for table in page.tables if any(row.difference for row in table.rows)][:MOST_PANELS]


def rows(page: "Page") -> list[str]:
    """Return the labels of the rows that are drawn, those that are ahead of the reference on most tables on top."""
    found: dict[str, list[float]] = {}
    clear = set()
    for table in panels(page):
        most = max(abs(row.difference.mean) for row in table.rows if row.difference) or 1.0
        sign = 1 if table.task.higher_is_better else -1
        for row in table.rows:
            if row.difference:
                found.setdefault(row.label, []).append(sign * row.difference.mean / most)
                if _style(row, table, page) != "open":
                    clear.add(row.label)
    labels = sorted(found, key=lambda label: (-sum(found[label]) / len(found[label]), label))
    return labels if len(labels) <= MOST_ROWS else [label for label in labels if label in clear]


def caption(page: "Page") -> str:
    """Return how to read the picture of a page."""
    every = {row.label for table in panels(page) for row in table.rows if row.difference}
    drawn = rows(page)
    return CAPTION + (FEWER.format(rows=len(every), drawn=len(drawn)) if len(drawn) < len(every) else "")


def _style(row: Row, table: Table, page: "Page") -> Style:
    return style_of(row.verdict, page.equivalences(table).get(row.label))


def _panel(axes: Axes, table: Table, labels: Sequence[str], page: "Page") -> None:
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, label in enumerate(labels):
        row = table.row(label)
        if row and row.difference:
            point(axes, row, table, place, _style(row, table, page))
    direction = "better →" if table.task.higher_is_better else "← better"
    axes.set_xlabel(f"{difference_unit(table.task)} ({direction})")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def point(axes: Axes, row: Row, table: Table, place: float, style: Style) -> None:
    """Draw a row's difference in the colour and with the marker of its verdict; open if it is not separable.

    Args:
        axes: Where to draw it.
        row: A row with a difference.
        table: Its table, which sets the unit.
        place: Its place along y.
        style: The style of its verdict.
    """
    colour, marker = VERDICTS[style or "open"]
    factor, difference = table.task.scale, row.difference
    if difference is not None:
        axes.errorbar(
            factor * difference.mean, place, xerr=factor * (difference.half_width or 0), color=colour, marker=marker,
            markerfacecolor=PAPER if style in ("", "open") else colour, capsize=2,
        )  # fmt: skip
