"""Tables in a terminal, as wide as it is."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pebench.config import REFERENCE_ENCODING
from pebench.results.grids import WORDS, costs, results, title
from pebench.results.missing import absence_lines
from pebench.results.page import Page
from pebench.results.provenance import warnings
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record

if TYPE_CHECKING:
    from rich.console import Console


def terminal(records: Iterable[Record], console: "Console", reference: str = REFERENCE_ENCODING) -> None:
    """Print the tables, each with as many columns as the console's width allows.

    Args:
        records: Of any runs.
        console: Where to.
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
        console.print(_grid(table, page, console.width))
        for line in [*warnings(table), *absence_lines(page.absences(table))]:
            console.print(line, style="yellow", markup=False, highlight=False)
    console.print(
        "± 95 % t-interval over seeds; Δ paired by seed; verdict Holm-adjusted over these rows at 5 %.", style="dim"
    )


def _grid(table: Table, page: Page, width: int) -> Any:
    """A rich table of the columns that fit, the first two always."""
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    columns = results(table, page) | costs(table)
    columns["Verdict"] = [
        verdict.partition(" at ")[0].partition(" with ")[0] for verdict in columns["Verdict"]
    ]  # n has its own column
    shown: list[str] = []
    width += 2  # there is no gap after the last column
    for name, cells in columns.items():
        width -= max(map(len, [name, *cells])) + 2
        if len(shown) >= 2 and width < 0:
            break
        shown.append(name)
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in shown:
        grid.add_column(name, justify="left" if name in WORDS else "right", no_wrap=True)
    styles = {"better": "green", "worse": "red"}
    for line in zip(*(columns[name] for name in shown), strict=True):
        grid.add_row(*(Text(cell, style=styles.get(cell, "")) for cell in line))
    return grid
