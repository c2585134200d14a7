"""The end of a process: with the one that it serves, and without what plug-ins leave in it."""

import contextlib
import multiprocessing
import os
import sys
import threading
from multiprocessing.connection import wait

POLL_S = 0.1
"""Time between two looks at the parent, in seconds."""


def end_with_parent(until: threading.Event | None = None) -> threading.Thread:
    """End this process as soon as the process that started it is gone, however that came to its end.

    A parent that is killed can end nobody, so its children have to look. Under multiprocessing the parent is the
    process that asked for this one, not the server that it was forked from.

    Args:
        until: An event that ends the watch; without one it lasts as long as the process.

    Returns:
        The watching thread. It ends within `POLL_S` once `until` is set.
    """
    over = until or threading.Event()
    parent, number = multiprocessing.parent_process(), os.getppid()

    def watch() -> None:
        while not over.is_set():
            if parent is None:
                over.wait(POLL_S)
                gone = os.getppid() != number  # an orphan belongs to the system's first process
            else:
                # nothing to poll where the watch lasts for ever: the sentinel wakes this thread
                gone = bool(wait([parent.sentinel], None if until is None else POLL_S))
            if gone and not over.is_set():
                os._exit(1)  # an exception would end this thread alone

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    return watcher


def end_without_guests(code: int) -> None:
    """End this process at once if a plug-in has left processes or threads in it, for which Python would wait for ever.

    Args:
        code: Exit code of the process, which returns where nothing is left.
    """
    for child in multiprocessing.active_children():
        child.kill()
    main = threading.main_thread()
    if all(thread is main or thread.daemon for thread in threading.enumerate()):
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()  # `os._exit` does not
    os._exit(code)
