"""The table on the front page: every row of the main comparison, to sort and to filter."""

from collections.abc import Iterator

from generate.markdown import table
from generate.published import standings
from pebench.results.titles import arrow, difference_unit

SUITE = "core"
"""The suite of the main comparison."""


def results() -> str:
    """Return the rows of the main comparison as a table that sorts and filters."""
    return table(list(_rows()), sortable=True, filtered=True)


def _rows() -> Iterator[dict[str, str]]:
    for standing in standings(SUITE):
        task, row = standing.task, standing.row
        yield {
            "Encoding": f"[`{row.label}`](encodings/{row.config.encoding}.md)",
            "Task": f"[{task.name}](tasks/{task.name}.md)",
            "Verdict": standing.verdict,
            f"Difference to {standing.table.reference}": standing.difference,
            "Test score": standing.score,
            "Unit": f"{'% accuracy' if task.percent else difference_unit(task)} {arrow(task)}",
            "Seeds": str(len(row.values)),
        }
