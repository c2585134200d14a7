"""``pebench submit``: check a user's rows of the shared suite, and lay them out for a pull request."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pebench.atomic import write_text
from pebench.errors import UserError
from pebench.formatting import counted

if TYPE_CHECKING:
    from pebench.runs.records import Record


def submit_command(options: argparse.Namespace) -> int:
    """Check the records, and write them, their card and the leaderboard, unless they are only to be checked."""
    from pebench.results.submissions.board import (
        BOARD,
        FOLDER,
        Submission,
        board,
        check_new,
        load_shared,
        load_submissions,
    )
    from pebench.results.submissions.card import CARD, Card, check_name, write_card
    from pebench.results.submissions.checks import check_submission
    from pebench.runs.published import shipped_results
    from pebench.runs.records import COLLECTION, read_records, write_jsonl

    results = options.results or shipped_results()
    if options.check:
        records = check_submission(read_records(options.runs), load_shared(results))
        sys.stdout.write(f"{_rows(records)} may be submitted.\n")
        return 0
    lacking = [f"--{name}" for name in ("name", "paper", "by", "code", "licence") if not getattr(options, name)]
    if lacking:
        raise UserError(f"expected {', '.join(lacking)}, too; or --check, to look at the records alone.")
    check_name(options.name)
    card = Card(options.title or options.name, options.paper, options.by, options.code, options.licence)
    shared = load_shared(results)
    folder = results / FOLDER / options.name
    others = [one for one in load_submissions(results, shared) if one.name != options.name]
    if folder.exists() and not options.replace:
        raise UserError(f"{folder} exists. If it is yours: --replace; else take another --name.")
    submission = Submission(options.name, card, check_submission(read_records(options.runs), shared))
    check_new(submission, others)
    text = board(shared, sorted([*others, submission], key=lambda one: one.name))
    _emptied(folder)
    write_jsonl(list(submission.records), folder / COLLECTION)
    write_card(card, folder)
    write_text(results / FOLDER / BOARD, text)
    written = [folder / COLLECTION, folder / CARD, results / FOLDER / BOARD]
    sys.stdout.write(f"{_rows(submission.records)} checked and laid out. Commit these, and open a pull request:\n")
    sys.stdout.writelines(f"{path}\n" for path in written)
    return 0


def _rows(records: "Sequence[Record]") -> str:
    """Return how many rows and runs there are, in words."""
    rows = {(record.config.task, record.config.label) for record in records}
    return f"{counted(len(rows), 'row')} of {counted(len(records), 'run')}"


def _emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
