"""The verbs that look, and change nothing: list, status, show, compare, report, cite."""

import argparse
import gc
import sys
from pathlib import Path

from pebench.errors import UserError, unknown_name
from pebench.formatting import counted
from pebench.runs.collector import paused_garbage_collection

MOST_NAMED = 8
"""Of runs that a name may mean, so many are told."""


def list_command(options: argparse.Namespace) -> int:
    """``pebench list``."""
    rows: list[tuple[str, str]]
    if options.what == "encodings":
        return _list_encodings(options.format)
    if options.what == "tasks":
        from pebench.tasks import TASKS

        rows = [(task.name, f"{task.summary} [{', '.join(task.budgets)}]") for task in TASKS.values()]
    elif options.what == "suites":
        from pebench.runs.suite import load_suite, suite_files

        rows = [(name, f"{(suite := load_suite(name)).question} ({suite.cost})") for name in suite_files()]
    elif options.what == "executors":
        from pebench.engine.executors import EXECUTORS

        rows = list(EXECUTORS.items())
    else:
        raise unknown_name("list", options.what, ("tasks", "encodings", "suites", "executors"))
    if options.format != "text":
        raise UserError(f"--format is for encodings, which have cards; {options.what} are listed as text.")
    width = max(len(name) for name, _ in rows)
    sys.stdout.writelines(f"{name:{width}}  {text}\n" for name, text in rows)
    return 0


def _list_encodings(kind: str) -> int:
    from pebench.cli import catalogue

    formats = {"text": catalogue.listing, "markdown": catalogue.markdown, "overview": catalogue.overview}
    if kind not in formats:
        raise unknown_name("format", kind, formats)
    sys.stdout.write(formats[kind]())
    return 0


def status_command(options: argparse.Namespace) -> int:
    """``pebench status``."""
    from pebench.runs.status import status

    sys.stdout.write(status(options.out))
    return 0


def show_command(options: argparse.Namespace) -> int:
    """``pebench show``."""
    from pebench.results.compare import describe

    sys.stdout.write("\n".join(describe(_find_run(name, options.out)) for name in options.runs))
    return 0


def _find_run(name: str, out: Path) -> Path:
    """The folder of a run, given as such, by how its key begins, or by a part of its path.

    Raises:
        UserError: If there is none, or more than one.
    """
    if Path(name).exists():
        return Path(name)
    runs = sorted(out.glob("*/*/*"))
    found = [path for path in runs if path.name.rpartition("-")[2].startswith(name)]
    found = found or [path for path in runs if f"/{name}" in f"/{path.relative_to(out).as_posix()}"]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"expected a run's folder or key, but no run under {str(out)!r} matches {name!r}.")
    some = "".join(f"\n  {path}" for path in found[:MOST_NAMED])
    more = f"\n  and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise UserError(f"{len(found)} runs match {name!r}; name the folder of one, or several:{some}{more}")


def compare_command(options: argparse.Namespace) -> int:
    """``pebench compare``."""
    from pebench.results.compare import compare
    from pebench.runs.records import read_records

    names = str(options.a), str(options.b)
    sys.stdout.write(compare(read_records(options.a), read_records(options.b), names))
    return 0


@paused_garbage_collection()
def report_command(options: argparse.Namespace) -> int:
    """``pebench report``."""
    from pebench.results.page import Page
    from pebench.results.publish import FORMATS, publish
    from pebench.results.writers.markdown import overview
    from pebench.runs.records import read_records, write_jsonl
    from pebench.runs.suite import load_suite

    formats = FORMATS | {"overview": overview}
    if options.format and options.output:
        raise UserError("expected either --format, to print one, or --output, to write all formats; got both.")
    if (name := options.format or "markdown") not in formats:
        raise unknown_name("format", name, formats)
    suite = load_suite(options.suite) if options.suite else None
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
    if options.output:
        sys.stdout.writelines(f"{path}\n" for path in publish(page, records, options.output, options.source))
    else:
        sys.stdout.write(formats[name](page))
    if "torch" not in sys.modules:  # with it this is not a command of its own, and a library would report leaks
        gc.freeze()  # at the end of the command: a search of all that it made would take a second
    return 0


def cite_command(options: argparse.Namespace) -> int:
    """``pebench cite``."""
    from pebench.results.citations import OWN, bibtex

    sys.stdout.write(bibtex(options.names or [OWN]))
    return 0
