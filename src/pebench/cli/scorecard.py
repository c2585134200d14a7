"""``pebench report --scorecard``: every encoding in one table."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from pebench.atomic import write_text
from pebench.cli.opening import open_if_asked
from pebench.errors import UserError, unknown_name
from pebench.results.publish import PAGE as PUBLISHED
from pebench.results.publish import in_format
from pebench.results.scorecard import Scorecard, scorecard
from pebench.results.scorecard.costs import read_costs
from pebench.results.writers.html.scorecard import scorecard_html
from pebench.results.writers.scorecard import scorecard_json, scorecard_markdown
from pebench.runs.records import COLLECTION, Record, merge, read_records

FORMATS = {"markdown": scorecard_markdown, "html": scorecard_html, "json": scorecard_json}
PAGE = "scorecard.html"
"""Name of the page in the current folder."""

PUBLISHED_HTML = "page.html"
"""Name of the page in a published folder, beside that in Markdown."""

OTHER_OPTIONS = ("suite", "tasks", "reference", "strict", "records", "allow_unmatched")
"""Options of a page of runs, which a scorecard does not have."""


def scorecard_command(options: argparse.Namespace) -> int:
    """Print the scorecard, or write it in every format."""
    if given := [name for name in OTHER_OPTIONS if getattr(options, name)]:
        option = "task" if given[0] == "tasks" else given[0].replace("_", "-")
        raise UserError(f"--scorecard DIR goes with --format, --output, --publish and --open, got --{option} too.")
    if sum(map(bool, (options.format, options.output, options.publish))) > 1:
        raise UserError("expected one of --format, --output and --publish, got more than one of them.")
    name = options.format or ("html" if options.open else "markdown")
    if name not in FORMATS:
        raise unknown_name("format of a scorecard", name, FORMATS)
    folders = [*([options.source] if options.source else []), *options.scorecard]
    card = scorecard(published(*folders), read_costs(*folders))
    if options.output:
        _write({in_format(options.output, name): write(card) for name, write in FORMATS.items()})
        open_if_asked(in_format(options.output, "html"), options.open)
    elif options.publish:
        _write(published_files(card, options.publish))
        open_if_asked(options.publish / PUBLISHED_HTML, options.open)
    elif name == "html" and (options.open or sys.stdout.isatty()):
        _write({Path(PAGE): scorecard_html(card)})
        open_if_asked(Path(PAGE), options.open)
    else:
        sys.stdout.write(FORMATS[name](card))
    return 0


def published(*folders: Path) -> list[Record]:
    """Return every record in folders of published results, or of runs; of a run that is there twice, the first.

    Published folders hold other files of records too, of checks and repetitions, which are no results.

    Raises:
        UserError: If there is no such folder, or nothing in it.
    """
    sources = list[Path]()
    for folder in folders:
        files = sorted(folder.rglob(COLLECTION)) if folder.is_dir() else []
        sources += files or [folder]
    return merge(map(read_records, sources))[0]


def published_files(card: Scorecard, folder: Path) -> dict[Path, str]:
    """Return the files of a published scorecard, by their paths."""
    return {
        folder / PUBLISHED: scorecard_markdown(card, PUBLISHED_HTML), folder / PUBLISHED_HTML: scorecard_html(card),
    }  # fmt: skip


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        sys.stdout.write(f"{path}\n")
