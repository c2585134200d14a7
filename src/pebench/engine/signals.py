"""Signal handlers for a while, put back afterwards."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Handler = Callable[[int, Any], Any]


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends what Ctrl-C ends."""


def terminate(*_: Any) -> None:
    """Answer SIGTERM.

    Raises:
        Terminated: Always.
    """
    raise Terminated


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C or SIGTERM sets within the context; asked for a second time, they end it at once."""
    stop = threading.Event()

    def interrupt(*_: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    with handling({signal.SIGINT: interrupt, signal.SIGTERM: interrupt}):
        yield stop


@contextmanager
def handling(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Answer signals with other handlers within the context.

    Python runs handlers in the main thread alone. In another thread, such as a web server's, nothing changes.

    Args:
        handlers: Signal numbers and their handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
