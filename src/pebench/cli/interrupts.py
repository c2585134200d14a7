"""Ctrl-C before anything runs."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pebench.engine.signals import handling
from pebench.exits import end_process

EXIT_INTERRUPTED = 130
INTERRUPTED = "pebench: interrupted. Finished runs are kept; the same command goes on from there."


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """End the process at once on Ctrl-C within the context, where there is nothing to lose.

    An exception would not do while packages are imported: some swallow it and are broken from then on, and one that
    passes through `exec` has Python end by the signal, whoever handles it.
    """

    def leave(*_: Any) -> None:
        sys.stdout.flush()  # `end_process` does not
        print(INTERRUPTED, file=sys.stderr, flush=True)
        end_process(EXIT_INTERRUPTED)

    with handling({signal.SIGINT: leave}):
        yield
