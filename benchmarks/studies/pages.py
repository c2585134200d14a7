"""Pages of measurements: the lines at their top, and a way to write them while they grow."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebench.atomic import replacing

if TYPE_CHECKING:
    import torch

EXIT_INTERRUPTED = 130
INCOMPLETE = "\n*This page is not complete: it is being measured, or was interrupted.*\n"


@dataclass(frozen=True)
class Page:
    """A page with the figures behind it.

    Args:
        text: The page, as Markdown.
        figures: Its figures, as JSON holds them.
    """

    text: str
    figures: Mapping[str, Any]


def command(study: str, arguments: Sequence[str]) -> str:
    """Return the command that makes a page, as Markdown."""
    return f"`{shlex.join(['python', '-m', f'benchmarks.studies.{study}', *arguments])}`"


def circumstances(study: str, arguments: Sequence[str], device: "torch.device", threads: int | None = None) -> str:
    """Return two lines on when, on what and by which command something was measured.

    Args:
        study: Name of the module in this package.
        arguments: Arguments of its command line.
        device: Device that the measured models run on.
        threads: CPU threads of the measured processes; by default those of this process.
    """
    import torch  # here, since studies that only read records need no second to load it

    from pebench.training import environment

    versions = ", ".join(f"{name} {environment.versions()[name]}" for name in ("python", "torch", "lightning"))
    where = f"{environment.device_text(device)}, {threads or torch.get_num_threads()} threads"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {environment.commit() or 'unknown'}, {versions}; {where}, 32 bit.  \n"
        f"{command(study, arguments)}\n\n"
    )


def main_of_records(arguments: Sequence[str], description: str | None, page: Callable[[], str]) -> int:
    """Run a study that only reads published records: make its page, and print or write it.

    Args:
        arguments: Arguments of its command line.
        description: The study's docstring, for ``--help``.
        page: Makes the page.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, metavar="FILE", help="Markdown file for the page")
    options = parser.parse_args(arguments)
    return write_page([page()], options.output)


def report_progress(text: str) -> None:
    """Print a line on what has been measured to standard error, which leaves standard output to the page."""
    print(text, file=sys.stderr, flush=True)


def write_page(pages: Iterable[str | Page], output: Path | None) -> int:
    """Write a page each time that it has grown, and print it in the end.

    An interrupted study loses only what it was measuring: what it had is printed and stays in the file, with a line
    which says that more is missing.

    Args:
        pages: The page at every stage, each with all that is known by then.
        output: The page's file, or None to print it alone. Figures are written beside it, with the suffix ``.json``.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.
    """
    page, status, ending = Page("", {}), 0, ""
    try:
        for found in pages:
            page = Page(found, {}) if isinstance(found, str) else found
            _write(page, INCOMPLETE, output)
    except KeyboardInterrupt:
        status, ending = EXIT_INTERRUPTED, INCOMPLETE
        report_progress("interrupted")
    if page.text:
        _write(page, ending, output)
        sys.stdout.write(page.text + ending)
    return status


def _write(page: Page, ending: str, output: Path | None) -> None:
    if not output:
        return
    texts = {output: page.text + ending}
    if page.figures:
        figures = {"complete": not ending, **page.figures}
        texts[output.with_suffix(".json")] = json.dumps(figures, indent=2) + "\n"
    for path, text in texts.items():
        with replacing(path) as file:  # an interruption while it writes leaves the file of before
            file.write(text.encode())
