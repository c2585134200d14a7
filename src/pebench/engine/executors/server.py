"""The server process that runs are forked from, and the preparation of data in it. Nothing here imports torch."""

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from pebench.config import Options, RunConfig
from pebench.engine.progress import Display
from pebench.errors import UserError


def server() -> Any:
    """The context whose processes start at once: forked from a server that has imported everything."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["pebench.engine.executors.preload"])  # type: ignore[attr-defined]
    return context


def warm_up() -> None:
    """Have the server start importing, while this process does something else."""
    if server().get_start_method() == "forkserver":
        from multiprocessing import forkserver

        with uninterrupted():
            forkserver.ensure_running()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off while a process starts, for that process for good: it ends with this one.

    Half started, it would answer with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # now: its start would put Ctrl-C on again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def prepare(plan: Sequence[RunConfig], options: Options, display: Display, here: bool = False) -> None:
    """Prepare all data once, so that runs only read.

    Args:
        plan: The runs.
        options: Where their data is.
        display: Told of what takes long.
        here: In this process instead of one of its own.

    Raises:
        UserError: If data cannot be had, or is too little for a batch.
    """
    kinds = list({(c.task, c.data, c.train.batch_size): c for c in plan}.values())
    problems = _prepare(kinds, options, display.note) if here else _prepare_apart(kinds, options, display)
    if problems:
        raise UserError("\n".join(problems))


def _prepare_apart(kinds: Sequence[RunConfig], options: Options, display: Display) -> Sequence[str]:
    """`_prepare`, in a process of its own."""
    receiver, sender = (context := server()).Pipe(duplex=False)
    process = context.Process(target=_body, args=(kinds, options, sender), daemon=True)
    with uninterrupted():
        process.start()
    sender.close()
    problems = None
    with contextlib.suppress(EOFError):
        while problems is None:
            message = receiver.recv()
            if isinstance(message, str):
                display.note(message)
            else:
                problems = message
    process.join()
    if problems is None:
        raise UserError(f"preparing the data ended with exit code {process.exitcode}; was memory short?")
    return problems


def _body(kinds: Sequence[RunConfig], options: Options, connection: Connection) -> None:
    follow_parent()
    try:
        problems = _prepare(kinds, options, connection.send)
    except Exception:
        problems = [f"pebench failed while preparing; please report this:\n{traceback.format_exc()}"]
    connection.send(problems)


def _prepare(kinds: Sequence[RunConfig], options: Options, tell: Callable[[str], None]) -> list[str]:
    """Prepare the data of each kind of run; what went wrong."""
    from pebench.data import datamodule_of
    from pebench.encodings import registry

    registry.adopt(options.folders, options.modules)
    problems = []
    for config in kinds:
        data = datamodule_of(config, options.data_dir)
        if not data.file.is_file():
            tell(f"preparing the data of {config.task} (once)")
        try:
            data.prepare_data()
            data.setup()
            data.train_dataloader()
        except (UserError, ValueError, OSError) as error:
            problems.append(f"{config.task}: {error}")
    return problems


def follow_parent(connection: Connection | None = None, stop: threading.Event | None = None) -> None:
    """End this process when the one that started it is gone; set `stop` when it says something."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch(sentinel: int) -> None:
        if connection and stop and sentinel not in wait([sentinel, connection]):
            stop.set()
        wait([sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()
