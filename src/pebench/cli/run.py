"""``pebench run``: parse the options, call the engine, print a table of the results."""

import argparse
import sys
from contextlib import AbstractContextManager

from rich.console import Console

from pebench.atomic import write_text
from pebench.cli.interrupts import leaving_at_once
from pebench.cli.opening import open_page
from pebench.cli.preview import print_preview, print_states, summary
from pebench.cli.report import PAGE
from pebench.cli.suite import check_choice, requested_plan, run_options
from pebench.engine.checks import data_remarks
from pebench.engine.execution import environment, execution
from pebench.engine.observer import Stage
from pebench.engine.preview import preview_suite
from pebench.engine.progress import Display
from pebench.engine.run import run_suite
from pebench.errors import UserError
from pebench.results.frame import Results

EXIT_FAILED = 1


class CommandLine(Display):
    """Shows progress, and each stage's number of runs; ends the process at once on Ctrl-C before runs start."""

    def loading(self) -> AbstractContextManager[object]:
        """Return the context in which Ctrl-C ends the process."""
        return leaving_at_once()

    def planned(self, stage: Stage) -> None:
        """Print the number of runs."""
        super().planned(stage)
        if stage.runs:
            self.note((stage.title and f"{stage.title}: ") + summary(len(stage.runs), len(stage.todo), stage.failed))

    def started(self) -> None:
        """Import what the table needs, while the server of runs imports too."""
        if not self.console.stderr:  # where runs are only printed, there is no table
            with self.loading():
                import pebench.results.writers.terminal  # noqa: F401
        super().started()


def run_command(options: argparse.Namespace) -> int:
    """Make the runs that are asked for and print their table; with ``--dry-run``, only print what would run."""
    how = run_options(options)
    checked = execution(options.out, how)  # refuse what cannot be before anything is planned
    check_choice(options)
    console = Console(stderr=options.executor == "commands")  # whose output is the commands alone
    how["observer"] = display = CommandLine(console)
    with leaving_at_once(), environment(checked):  # data of one's own are looked at here
        plan = requested_plan(options)
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


def print_results(results: Results, options: argparse.Namespace, display: Display) -> None:
    """Print the table of the results and the commands that show more, and write their page, to which the end leads."""
    from pebench.results.writers.html import html
    from pebench.results.writers.terminal import terminal

    terminal(results.records, display.console, results.reference)
    out = options.out
    display.note(f"\nRecords: {out}/   Markdown: pebench report {out}   Curves: pebench tensorboard {out}")
    path = out / PAGE
    try:
        write_text(path, html(results.page))
    except (UserError, OSError) as error:  # as on a full disk, or for records of two kinds that no page can show
        display.note(f"No page: {error}")  # the runs are done all the same
        return
    note = open_page(path) if options.open else ""
    display.note(note or f"Page: {path}")
