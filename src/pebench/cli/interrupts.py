"""What Ctrl-C does before anything runs."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

EXIT_INTERRUPTED = 130
INTERRUPTED = "pebench: interrupted. Finished runs are kept; the same command goes on from there."


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Within it Ctrl-C ends the process there and then, which must have nothing to lose.

    An exception would not do while packages are imported: some swallow it and are broken from then on, and one that
    passes through `exec` has Python end by the signal, whoever handles it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: Any) -> None:
        sys.stdout.flush()
        print(INTERRUPTED, file=sys.stderr, flush=True)
        os._exit(EXIT_INTERRUPTED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
