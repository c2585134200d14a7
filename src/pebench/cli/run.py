"""``pebench run``: parse the options, call the engine, print a table of the results."""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from pebench.atomic import write_text
from pebench.cli.interrupts import leaving_at_once
from pebench.cli.opening import open_page
from pebench.cli.preview import print_preview, print_states, summary
from pebench.cli.report import PAGE
from pebench.cli.suite import check_choice, requested_plan, run_options
from pebench.engine.checks import data_remarks
from pebench.engine.execution import environment, execution
from pebench.engine.executors.worker import LOG
from pebench.engine.observer import Stage
from pebench.engine.preview import preview_suite
from pebench.engine.progress import Display
from pebench.engine.run import run_suite
from pebench.errors import UserError
from pebench.formatting import counted
from pebench.results.frame import Results
from pebench.runs.records import Record

EXIT_FAILED = 1

MOST_LOGS = 3
"""Number of failed runs whose logs are named."""


class CommandLine(Display):
    """Shows progress, each stage's number of runs, and the table of a task as soon as all its runs have ended.

    Ctrl-C before runs start ends the process at once.

    Args:
        console: The console to write to.
        reference: Label of the row that the others are compared to.
    """

    def __init__(self, console: Console, reference: str) -> None:
        self.reference = reference
        self.records: dict[str, Record] = {}  # those that select settings too, which tables name
        self.shown: set[str] = set()  # tasks whose tables have been printed
        super().__init__(console)

    def loading(self) -> AbstractContextManager[object]:
        """Return the context in which Ctrl-C ends the process."""
        return leaving_at_once()

    def planned(self, stage: Stage) -> None:
        """Print the number of runs."""
        super().planned(stage)
        self.records |= self.cells.records
        if stage.runs:
            self.note((stage.title and f"{stage.title}: ") + summary(len(stage.runs), len(stage.todo), stage.failed))

    def started(self) -> None:
        """Import what the table needs, while the server of runs imports too."""
        if not self.console.stderr:  # where runs are only printed, there is no table
            with self.loading():
                import pebench.results.writers.terminal  # noqa: F401
            self._show_complete()
        super().started()

    def finished(self, record: Record) -> None:
        """Show the run that has ended, and the table of its task if it was the last one."""
        super().finished(record)
        self.records[record.config.key] = record
        self._show_complete()

    def show_rest(self, records: Iterable[Record]) -> None:
        """Print the tables of some records that have not been printed yet, and what the signs in them mean."""
        from pebench.results.writers.terminal import print_legend, print_tables

        if rest := [record for record in records if record.config.task not in self.shown]:
            print_tables(rest, self.console, self.reference)
        print_legend(self.console)

    def _show_complete(self) -> None:
        """Print the tables of tasks all of whose runs have ended, each once."""
        from pebench.results.writers.terminal import print_tables

        for task in self.cells.complete:
            if task in self.shown:
                continue
            selecting = [r for r in self.records.values() if (r.config.task, r.config.stage) == (task, "select")]
            tested = [self.records[config.key] for config in self.cells.tasks[task]]
            with contextlib.suppress(UserError):  # said at the end, as the other runs go on
                print_tables([*selecting, *tested], self.console, self.reference)
                self.console.print()
                self.shown.add(task)


def run_command(options: argparse.Namespace) -> int:
    """Make the runs that are asked for and print their table; with ``--dry-run``, only print what would run."""
    how = run_options(options)
    checked = execution(options.out, how)  # refuse what cannot be before anything is planned
    check_choice(options)
    console = Console(stderr=options.executor == "commands")  # whose output is the commands alone
    with leaving_at_once(), environment(checked):  # data of one's own are looked at here
        plan = requested_plan(options)
    how["observer"] = display = CommandLine(console, plan.suite.reference)
    if options.dry_run:
        for remark in data_remarks(plan.kinds):
            display.note(remark)
        preview = preview_suite(plan, options.out, **how)
        if options.config:
            print_states(preview)
        else:
            print_preview(preview, console)
        return 0
    results = run_suite(plan, options.out, **how)
    if options.executor == "commands":
        return 0
    for config in results.missing:
        print(f"pebench: error: {options.out / config.directory} has no record; run it again", file=sys.stderr)
    print_results(results, options, display)
    return 0 if results.complete else EXIT_FAILED


def print_results(results: Results, options: argparse.Namespace, display: CommandLine) -> None:
    """Print the table of the results and the commands that show more, and write their page, to which the end leads."""
    from pebench.results.writers.html import html

    display.show_rest(results.records)
    out = options.out
    folder = shlex.quote(str(out))
    display.note(f"\nRecords: {out}/   Markdown: pebench report {folder}   Curves: pebench tensorboard {folder}")
    for line in _logs(results, out):
        display.note(line)
    path = out / PAGE
    try:
        write_text(path, html(results.page))
    except (UserError, OSError) as error:  # as on a full disk, or for records of two kinds that no page can show
        display.note(f"No page: {error}")  # the runs are done all the same
        return
    note = open_page(path) if options.open else ""
    display.note(note or f"Page: {path}")


def _logs(results: Results, out: Path) -> list[str]:
    """Return where the logs of failed runs are, or their folders, where they printed nothing; the first few."""
    failed = [out / record.config.directory for record in results.records if not record.ok]
    places = [folder / LOG if (folder / LOG).is_file() else folder for folder in failed]
    lines = [f"Log of a failed run: {place}" for place in places[:MOST_LOGS]]
    more, folder = len(places) - len(lines), shlex.quote(str(out))
    return [*lines, f"  and {counted(more, 'more failed run')}: pebench status {folder}"] if more else lines
