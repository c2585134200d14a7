"""Exits by code of others: a plug-in that ends the process would take every other run, and its own record, with it."""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import NoReturn

end_process = os._exit
"""Ends this process at once, whoever has replaced `os._exit`."""


@contextlib.contextmanager
def without_exits() -> Iterator[None]:
    """Have `os._exit` raise an error within the context, which can be recorded and reported.

    Processes that are forked within it, and threads, which cannot raise here, end as they ask to.

    Raises:
        RuntimeError: Within the context, with the exit code that was asked for.

    Example:
        >>> with without_exits():
        ...     os._exit(75)
        Traceback (most recent call last):
            ...
        RuntimeError: os._exit(75) was called, which would have ended this process and all its runs
    """
    before, here = os._exit, os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != here or threading.current_thread() is not threading.main_thread():
            end_process(status)
        raise RuntimeError(f"os._exit({status}) was called, which would have ended this process and all its runs")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = before
