"""The verbs that write pages and references: report and cite."""

import argparse
import gc
import sys

from pebench.errors import UserError, unknown_name
from pebench.formatting import counted
from pebench.runs.collector import paused_garbage_collection


@paused_garbage_collection()
def report_command(options: argparse.Namespace) -> int:
    """Print a page of results, write it in every format, or publish it."""
    from pebench.results.page import Page
    from pebench.results.publish import FORMATS, publish, publish_folder
    from pebench.results.writers.markdown import overview
    from pebench.runs.records import read_records, write_jsonl
    from pebench.runs.suite import load_suite

    formats = FORMATS | {"overview": overview}
    if sum(map(bool, (options.format, options.output, options.publish))) > 1:
        raise UserError(
            "expected either --format, to print one, or --output, to write all formats, or --publish, to write a page "
            "with its records; got more than one of them."
        )
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
    elif options.publish:
        sys.stdout.writelines(f"{path}\n" for path in publish_folder(page, records, options.publish, options.source))
    else:
        sys.stdout.write(formats[name](page))
    if "torch" not in sys.modules:  # with it this is not a command of its own, and a library would report leaks
        gc.freeze()  # at the end of the command: a search of all that it made would take a second
    return 0


def cite_command(options: argparse.Namespace) -> int:
    """Print the BibTeX entries of what results stand on."""
    from pebench.results.citations import OWN, bibtex

    sys.stdout.write(bibtex(options.names or [OWN]))
    return 0
