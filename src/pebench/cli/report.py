"""The verbs that write pages and references: report and cite."""

import argparse
import gc
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pebench.atomic import write_text
from pebench.cli.opening import open_if_asked
from pebench.errors import UserError, unknown_name
from pebench.formatting import counted
from pebench.runs.collector import paused_garbage_collection

if TYPE_CHECKING:
    from pebench.results.page import Page
    from pebench.runs.records import Record

PAGE = "report.html"
"""Name of the HTML page in an output folder."""


@paused_garbage_collection()
def report_command(options: argparse.Namespace) -> int:
    """Print a page of results, write it in every format, or publish it."""
    if options.scorecard:
        from pebench.cli.scorecard import scorecard_command

        return scorecard_command(options)
    if options.source is None:
        raise UserError("expected a folder of runs, or a .jsonl file of records: pebench report runs")
    from pebench.results.page import Page
    from pebench.results.publish import FORMATS
    from pebench.results.writers.markdown import overview
    from pebench.runs.records import read_records, write_jsonl
    from pebench.runs.suite import load_suite

    formats = FORMATS | {"overview": overview}
    name = _format(options, formats)
    suite = load_suite(options.suite) if options.suite else None
    import_tasks(options.tasks)
    records = read_records(options.source)
    if options.records:
        write_jsonl(records, options.records)
    if all(record.config.stage == "select" for record in records):
        raise UserError(
            f"{counted(len(records), 'run')} of {str(options.source)!r} selected settings, and none is tested yet."
        )
    page = Page.of(records, suite, options.allow_unmatched, options.reference)
    if options.strict:
        page.check_complete()
    _write(page, records, name, formats[name], options)
    if "torch" not in sys.modules:  # with it this is not a command of its own, and a library would report leaks
        gc.freeze()  # at the end of the command: a search of all that it made would take a second
    return 0


def import_tasks(names: Iterable[str]) -> None:
    """Import the tasks that are named on the command line: records import none.

    Raises:
        UserError: If one does not exist or cannot be imported.
    """
    from pebench.tasks import find_task

    for name in names:
        find_task(name)


def _format(options: argparse.Namespace, formats: Collection[str]) -> str:
    """Return the name of the format to print.

    Raises:
        UserError: If there is no such format, or what is asked for contradicts itself.
    """
    if sum(map(bool, (options.format, options.output, options.publish))) > 1:
        raise UserError(
            "expected either --format, to print one, or --output, to write all formats, or --publish, to write a page "
            "with its records; got more than one of them."
        )
    if options.open and (options.publish or options.format not in (None, "html")):
        other = "--publish" if options.publish else f"--format {options.format}"
        raise UserError(f"--open shows the HTML page, got {other}. Leave one of them out.")
    if (name := options.format or ("html" if options.open else "markdown")) not in formats:
        raise unknown_name("format", name, formats)
    return name


def _write(
    page: "Page", records: "list[Record]", name: str, write: "Callable[[Page], str]", options: argparse.Namespace
) -> None:
    """Print a page in one format, or write the files that are asked for."""
    from pebench.results.publish import publish, publish_folder

    if options.output:
        files = publish(page, records, options.output, options.source)
        sys.stdout.writelines(f"{path}\n" for path in files)
        open_if_asked(next(path for path in files if path.suffix == ".html"), options.open)
    elif options.publish:
        sys.stdout.writelines(f"{path}\n" for path in publish_folder(page, records, options.publish, options.source))
    elif name == "html" and (options.open or sys.stdout.isatty()):  # half a megabyte is nothing to read in a terminal
        path = _page_file(options.source, page.suite.name if page.suite else "")
        write_text(path, write(page))
        sys.stdout.write(f"{path}\n")
        open_if_asked(path, options.open)
    else:
        sys.stdout.write(write(page))


def _page_file(source: Path, name: str) -> Path:
    """Return where an HTML page without ``--output`` goes: in the output folder, else here."""
    return source / PAGE if source.is_dir() else Path(f"{name or source.stem}.html")


def cite_command(options: argparse.Namespace) -> int:
    """Print the BibTeX entries of what results stand on."""
    from pebench.results.citations import OWN, bibtex

    sys.stdout.write(bibtex(options.names or [OWN]))
    return 0
