"""The command line. It parses and delegates; what takes time to import is imported where it is used."""

import codecs
import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from pebench.cli.interrupts import EXIT_INTERRUPTED, INTERRUPTED
from pebench.cli.parser import parser
from pebench.errors import UserError

EXIT_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pebench.

    Args:
        arguments: What follows the program's name; ``None`` takes the process's own.

    Returns:
        0 all well, 1 some run failed, 2 a mistake in what was asked, 130 interrupted.
    """
    _let_write_anything(sys.stdout)
    _let_write_anything(sys.stderr)
    try:
        try:
            options = parser().parse_args(arguments)
            return int(options.action(options))
        finally:
            sys.stdout.flush()  # here, where a reader that has left is no error
    except UserError as error:
        print(f"pebench: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        print(f"pebench: error: {what}", file=sys.stderr)
        return EXIT_USAGE


def _let_write_anything(stream: TextIO) -> None:
    """Make an output that is not Unicode take all that is told: a file as UTF-8, a terminal with marks for the rest."""
    if not isinstance(stream, io.TextIOWrapper) or codecs.lookup(stream.encoding).name == "utf-8":
        return
    if stream.isatty():
        stream.reconfigure(errors="replace")
    else:  # a file or a pipe, of which Windows thinks otherwise
        stream.reconfigure(encoding="utf-8")
