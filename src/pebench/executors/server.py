"""The server process that runs are forked from, and the preparation of data in it. Nothing here imports torch."""

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from pebench.config import Options, RunConfig
from pebench.display import Display
from pebench.errors import UserError


def server() -> Any:
    """The context whose processes start at once: forked from a server that has imported everything."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["pebench._preload"])  # type: ignore[attr-defined]
    return context


def prepare(plan: Sequence[RunConfig], options: Options, display: Display) -> None:
    """Prepare all data once, in a process of its own, so that runs only read.

    Raises:
        UserError: If data cannot be had, or is too little for a batch.
    """
    receiver, sender = (context := server()).Pipe(duplex=False)
    kinds = {(c.task, c.data, c.train.batch_size): c for c in plan}
    process = context.Process(target=_prepare, args=(list(kinds.values()), options, sender), daemon=True)
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
    if problems:
        raise UserError("\n".join(problems))


def _prepare(plan: Sequence[RunConfig], options: Options, connection: Connection) -> None:
    follow_parent()
    problems: list[str] = []
    try:
        from pebench.data import datamodule_of

        for config in plan:
            data = datamodule_of(config, options.data_dir)
            if not data.file.is_file():
                connection.send(f"preparing the data of {config.task} (once)")
            try:
                data.prepare_data()
                data.setup()
                data.train_dataloader()
            except (UserError, ValueError) as error:
                problems.append(f"{config.task}: {error}")
    except Exception:
        problems.append(f"pebench failed while preparing; please report this:\n{traceback.format_exc()}")
    connection.send(problems)


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
