"""The server process that runs are forked from, and the preparation of data in it. Nothing here imports torch."""

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from multiprocessing.connection import Connection, wait
from typing import Any

from pebench.config import Options, RunConfig
from pebench.engine.observer import Observer
from pebench.errors import UserError, with_place
from pebench.formatting import first_line
from pebench.runs.parent import end_with_parent, end_without_guests
from pebench.tasks.registry import TASKS, find_task


def server() -> Any:
    """Return the multiprocessing context whose processes are forked from a server that has imported everything."""
    # Not fork: a copy of this process has its locks, but not the threads that would release them. Where there is no
    # such server (Windows), each process imports for itself.
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["pebench.engine.executors.preload"])  # type: ignore[attr-defined]
    return context


def warm_up() -> None:
    """Start the server, which imports while this process does something else."""
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


def prepare(plan: Sequence[RunConfig], options: Options, observer: Observer, here: bool = False) -> None:
    """Prepare all data once, so that runs only read.

    Args:
        plan: Runs whose data is prepared.
        options: How they are made, with the folder of their data.
        observer: Called with a note before what takes long.
        here: Prepare in this process instead of one of its own.

    Raises:
        UserError: If data cannot be had, or is too little for a batch.
    """
    # By batch size too: data may be too little for a batch of one run and enough for another's.
    kinds = list({(c.task, c.data, c.train.batch_size, c.train.beyond): c for c in plan}.values())
    problems = _prepare(kinds, options, observer.note) if here else _prepare_in_process(kinds, options, observer)
    if problems:
        raise UserError("\n".join(problems))


def _prepare_in_process(kinds: Sequence[RunConfig], options: Options, observer: Observer) -> Sequence[str]:
    """Call `_prepare` in a process of its own, which takes its memory with it."""
    receiver, sender = (context := server()).Pipe(duplex=False)
    arguments = kinds, options, sender, current_environment()
    process = context.Process(target=_prepare_and_send, args=arguments, daemon=True)
    with uninterrupted():
        process.start()
    sender.close()  # else `recv` would not end with the other process
    problems = None
    with contextlib.suppress(EOFError):
        # The end of the connection would not do: a process that a plug-in starts may hold it open.
        while problems is None and receiver in wait([receiver, process.sentinel]):
            message = receiver.recv()
            # A text is a note; the list of problems, which may be empty, is the last message.
            if isinstance(message, str):
                observer.note(message)
            else:
                problems = message
    process.join()
    if problems is None:
        raise UserError(f"preparing the data ended with exit code {process.exitcode}; was memory short?")
    return problems


def _prepare_and_send(
    kinds: Sequence[RunConfig], options: Options, connection: Connection, environment: Mapping[str, str]
) -> None:
    """Call `_prepare`, and send its notes as they come and its problems at the end."""
    os.environ |= environment
    follow_parent()
    try:
        problems = _prepare(kinds, options, connection.send)
    except UserError as error:  # a module that registers tasks may fail here alone, in a process of its own
        problems = [str(error)]
    except Exception:
        problems = [f"pebench failed while preparing; please report this:\n{traceback.format_exc()}"]
    connection.send(problems)
    end_without_guests(0)


def _prepare(kinds: Sequence[RunConfig], options: Options, note: Callable[[str], None]) -> list[str]:
    """Prepare the data of each kind of run, and return what went wrong."""
    from pebench.data import datamodule_of
    from pebench.data.checks import check_classes
    from pebench.encodings import registry
    from pebench.training.guests import contained

    registry.adopt(options.folders, ())
    with contained("importing what registers encodings and tasks") if options.modules else nullcontext():
        registry.adopt((), options.modules)
    problems = []
    for config in kinds:
        with nullcontext() if config.task in TASKS else contained(f"preparing the data of {config.task}"):
            try:
                data = datamodule_of(config, options.data_dir)
                if not data.file.is_file():
                    note(f"preparing the data of {config.task} (once)")
                data.prepare_data()
                # Beyond the files, what a run does first: data that is too little for a batch is found here, once for
                # all runs.
                data.setup()
                check_classes(find_task(config.task), data.describe())
                data.train_dataloader()
                if config.train.beyond:
                    for factor, why in data.untestable(data.factors).items():
                        note(f"{config.task}: nothing is measured at {factor:g}x, as {why}")
            except (UserError, OSError) as error:
                problems.append(f"{config.task}: {error}")
            except ValueError as error:  # a mistake in the settings, or in what someone's data do
                problems.append(with_place(f"{config.task}: {error}", error, own=True))
            except (Exception, SystemExit) as error:  # a task, and so its data, may be anyone's
                reason = f"{config.task}: its data raised {type(error).__name__}: {first_line(error)}"
                problems.append(with_place(reason, error))
    return problems


def follow_parent() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def data_environment() -> dict[str, str]:
    """Return the variables of this process that decide where data is found; no secrets."""
    ours = [name for name in os.environ if name.startswith(("PEBENCH_", "HF_")) and "TOKEN" not in name]
    return {name: os.environ[name] for name in ours}


def current_environment() -> dict[str, str]:
    """Return the variables that a process of the server needs, as the server has those of the moment of its start."""
    allowed = {"PEBENCH_OFFLINE": "", "HF_HUB_OFFLINE": ""}  # an earlier call here may have forbidden the network
    return allowed | data_environment()
