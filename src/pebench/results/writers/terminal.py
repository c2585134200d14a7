"""Tables in a terminal, as wide as it is."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pebench.config import REFERENCE_ENCODING
from pebench.results import grids
from pebench.results.cells import NOTHING, Cell, Column, Grid
from pebench.results.grids.table import STYLES
from pebench.results.missing import absence_lines
from pebench.results.page import Page
from pebench.results.prose import plain
from pebench.results.provenance import warnings
from pebench.results.tables import Row, Table, build_tables
from pebench.results.titles import title
from pebench.runs.records import Record

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"better": "green", "worse": "red", "equivalent": "blue"}
"""Colour of a cell by its style."""

ALWAYS = 2
"""Columns that are shown however narrow the terminal is."""


def terminal(records: Iterable[Record], console: "Console", reference: str = REFERENCE_ENCODING) -> None:
    """Print the tables, and what their signs mean; see `print_tables`."""
    print_tables(records, console, reference)
    print_legend(console)


def print_legend(console: "Console") -> None:
    """Print what the signs in tables mean."""
    console.print(
        "± 95 % t-interval over seeds; Δ paired by seed; verdict Holm-adjusted over these rows at 5 %.", style="dim"
    )


def print_tables(records: Iterable[Record], console: "Console", reference: str = REFERENCE_ENCODING) -> None:
    """Print the tables, each with as many columns as the console's width allows.

    Args:
        records: Records of any runs.
        console: The console to print to.
        reference: Label of the encoding that the others are compared to.

    Raises:
        UserError: For an unknown task, or two different records of one run.
    """
    tables = build_tables(records, allow_unmatched=True, reference=reference)  # what breaks its regime is marked
    page = Page(tuple(tables))
    for table in page.tables:
        console.print(f"\n{title(table)}", style="bold", markup=False, highlight=False)
        tuned = "train.learning_rate" in table.config.selected
        rate = "" if tuned else f" Learning rate: {table.config.train.learning_rate:g} in every row, not tuned."
        console.print(f"{table.task.summary}. Matched by: {table.config.regime}.{rate}", markup=False, highlight=False)
        console.print(_fitted(_grid(table, page), console.width))
        for line in [*warnings(table), *map(plain, absence_lines(page.coverage.absences(table)))]:
            console.print(line, style="yellow", markup=False, highlight=False)


def _grid(table: Table, page: Page) -> Grid:
    """Return results and costs; the number of seeds has a column of its own, so that verdicts do without."""
    verdicts = Column(tuple(_verdict_cell(row, table) for row in table.rows), words=True)
    return grids.results(table, page) | {"Verdict": verdicts} | grids.costs(table)


def _verdict_cell(row: Row, table: Table) -> Cell:
    if row.verdict is None:
        return Cell("reference" if row.label == table.reference else NOTHING)
    return Cell(row.verdict.outcome.value, style=STYLES.get(row.verdict.outcome, ""))


def _fitted(grid: Grid, width: int) -> Any:
    """Return a rich table of the columns that fit, the first two always."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown: Grid = {}
    left = width + 2  # there is no gap after the last column
    for header, column in grid.items():
        left -= max(map(len, [header, *column.texts])) + 2
        if len(shown) >= ALWAYS and left < 0:
            break
        shown[header] = column
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for header, column in shown.items():
        table.add_column(header, justify="left" if column.words else "right", no_wrap=True)
    for cells in zip(*(column.cells for column in shown.values()), strict=True):
        table.add_row(*(Text(cell.text, style=COLOURS.get(cell.style, "")) for cell in cells))
    return table
