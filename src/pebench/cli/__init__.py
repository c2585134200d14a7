"""The command line: it parses, calls and prints. Slow imports are made where they are used."""

import codecs
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

from pebench.cli.interrupts import EXIT_INTERRUPTED, INTERRUPTED
from pebench.cli.parser import parser
from pebench.errors import UserError
from pebench.formatting import folded, printable

EXIT_USAGE = 2

LONGEST = 500
"""Characters of a word in a message; a file system has paths that are longer, but nobody reads them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pebench.

    Args:
        arguments: Arguments after the program's name; None takes those of the process.

    Returns:
        The exit code: 0 all well, 1 some run failed, 2 a mistake in the arguments, 130 interrupted.
    """
    _accept_unicode(sys.stdout)
    _accept_unicode(sys.stderr)
    try:
        try:
            options = parser().parse_args(arguments)
            module, name = options.action
            command = getattr(importlib.import_module(f"pebench.cli.{module}"), name)
            # The verb's module is imported here, and no other: `pebench list` need not wait for what training needs.
            return int(command(options))
        finally:
            sys.stdout.flush()  # here, where a reader that has left is no error
    except UserError as error:
        print(folded(f"pebench: error: {_readable(error)}"), file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left
        # Python flushes the output once more when it ends, and would complain about the same pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        print(folded(f"pebench: error: {_readable(what)}"), file=sys.stderr)
        return EXIT_USAGE


def _readable(message: object) -> str:
    """Return a message whose very long words, which somebody gave, are cut, and that no terminal takes for commands."""
    return re.sub(rf"(\S{{{LONGEST - 100}}})\S{{100,}}", r"\1…", printable(str(message)))


def program() -> int:
    """Run pebench as a program, which ends whatever plug-ins have left in its process."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is kept: a second Ctrl-C would only show a traceback
    from pebench.runs.parent import end_without_guests

    end_without_guests(code)
    return code


def _accept_unicode(stream: TextIO) -> None:
    """Let a stream that is not Unicode take every character: a file as UTF-8, a terminal with marks for the rest."""
    if not isinstance(stream, io.TextIOWrapper) or codecs.lookup(stream.encoding).name == "utf-8":
        return
    if stream.isatty():
        stream.reconfigure(errors="replace")
    else:  # a file or a pipe, where Windows has another default
        stream.reconfigure(encoding="utf-8")
