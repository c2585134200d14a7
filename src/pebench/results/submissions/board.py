"""The leaderboard: submitted rows beside the published ones of the shared suite, task by task, the best first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pebench.errors import UserError
from pebench.results.cells import Cell, Column, Grid
from pebench.results.grids import results, verdict_first
from pebench.results.page import Page
from pebench.results.submissions.card import CARD, Card, read_card
from pebench.results.submissions.checks import SHARED, Shared, check_submission
from pebench.results.tables import Table
from pebench.results.writers.markdown import pipe, words
from pebench.runs.records import COLLECTION, Record, read_records
from pebench.runs.suite import load_suite

FOLDER = "submissions"
"""Folder of submissions among published results."""

BOARD = "README.md"
"""Name of the leaderboard in it."""

HEAD = f"""# Submissions

Encodings of others, in the suite [{SHARED}](../{SHARED}/page.md): its tasks, budgets, learning rates, seeds and data.
Rows are compared at equal seeds, as [Method](../../docs/method.md) says; corrections count all rows of a table. Runs
were made by those who submit them and checked by `pebench submit`, which cannot see how a record came about. To add
yours: [Submit an encoding](../../docs/guides/submit.md).
"""


@dataclass(frozen=True, eq=False)
class Submission:
    """Rows of others.

    Args:
        name: Name of its folder.
        card: Its card, written by who submits it.
        records: Its records, checked.
    """

    name: str
    card: Card
    records: Sequence[Record]

    @property
    def rows(self) -> dict[tuple[str, str], None]:
        """Task and label of its rows."""
        return dict.fromkeys((record.config.task, record.config.label) for record in self.records)


def load_shared(results_folder: Path) -> Shared:
    """Return the shared suite with its published records.

    Raises:
        UserError: If they are not there.
    """
    source = results_folder / SHARED / COLLECTION
    if not source.is_file():
        raise UserError(
            f"submissions are laid beside the published results, but {str(source)!r} does not exist. Run this in a "
            "clone of pebench's repository, or name its folder: --results DIR"
        )
    return Shared(load_suite(SHARED), read_records(source))


def load_submissions(results_folder: Path, shared: Shared) -> list[Submission]:
    """Return the submissions in a folder of published results, each checked, in the order of their names.

    Raises:
        UserError: If one is refused, or two have a row in common.
    """
    found: list[Submission] = []
    for path in sorted((results_folder / FOLDER).glob(f"*/{COLLECTION}")):
        folder = path.parent
        try:
            submission = Submission(folder.name, read_card(folder), check_submission(read_records(path), shared))
        except UserError as error:
            raise UserError(f"submission {folder.name!r}: {error}") from error
        check_new(submission, found)
        found.append(submission)
    return found


def check_new(submission: Submission, others: Sequence[Submission]) -> None:
    """Refuse a submission that has a row of another one.

    Raises:
        UserError: With the row, and whose it is.
    """
    for other in others:
        if both := [row for row in submission.rows if row in other.rows]:
            task, label = both[0]
            raise UserError(f"{task} {label}: is a row of submission {other.name!r} already; name yours otherwise.")


def board(shared: Shared, submissions: Sequence[Submission]) -> str:
    """Return the leaderboard in Markdown; the same records give the same bytes."""
    records = [*shared.records, *(record for one in submissions for record in one.records)]
    page = Page.of(records, shared.suite)
    source = {row: one.name for one in submissions for row in one.rows}
    parts = [HEAD]
    for table in page.tables:
        parts.append(f"## {table.task.name}\n\n{pipe(_ranked(table, page, source))}\n")
    parts.append("## Who submitted what\n")
    lines = [f"- {_line(one)}" for one in submissions]
    parts.append("\n".join(lines or ["Nothing is submitted yet."]) + "\n")
    return "\n".join(parts)


def _ranked(table: Table, page: Page, source: Mapping[tuple[str, str], str]) -> Grid:
    """Return the results of a table, the best row first, with where each row is from."""
    grid = verdict_first(results(table, page))
    places = [place for place, row in enumerate(table.rows) if row.estimate]
    sign = -1 if table.task.higher_is_better else 1
    places.sort(key=lambda place: sign * table.rows[place].estimate.mean)  # type: ignore[union-attr]
    origins = [Cell(source.get((table.task.name, row.label), SHARED)) for row in table.rows]
    first, *rest = grid.items()
    columns = dict([first, ("From", Column(tuple(origins), words=True)), *rest])
    return {
        name: replace(column, cells=tuple(column.cells[place] for place in places)) for name, column in columns.items()
    }


def _line(one: Submission) -> str:
    card = one.card
    rows = ", ".join(dict.fromkeys(label for _, label in one.rows))
    about = f"{words(card.name)} (`{rows.replace('`', chr(39))}`), {words(card.paper)}, by {words(card.by)}"
    links = f"[code]({card.code}), {words(card.licence)}; [records]({one.name}/{COLLECTION}), [card]({one.name}/{CARD})"
    return f"**{one.name}:** {about}; {links}."
