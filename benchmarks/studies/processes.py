"""Runs that are trained again in processes of their own, for a study to measure what their records lack."""

import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import TypeVar

from pebench.config import Options, RunConfig
from pebench.runs.records import Record
from pebench.training import runner

Item, Result = TypeVar("Item"), TypeVar("Result")


def train_again(config: RunConfig, measure: runner.Measure) -> Record:
    """Train one run anew, on one thread, and return its record with what `measure` finds in place of shares.

    Args:
        config: The run's configuration.
        measure: Called with the untrained and the trained model, and the data.
    """
    with tempfile.TemporaryDirectory() as out:
        return runner.train(config, Options(Path(out), device="cpu", threads=1), measure=measure)


def in_fresh_process(function: Callable[[Item], Result], item: Item, imports: str) -> Result:
    """Apply a function in a process that has done nothing but imports, so that its peak of memory is the function's.

    Args:
        function: Function of a module, which other processes can import.
        item: The argument.
        imports: Module that a server imports once, from which each process is forked.

    Raises:
        BrokenProcessPool: If the process dies.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([imports])
    [(_, result)] = as_finished(function, [item], 1, server)
    return result


def as_finished(
    function: Callable[[Item], Result], items: Sequence[Item], jobs: int, context: BaseContext | None = None
) -> Iterator[tuple[int, Result]]:
    """Apply a function in other processes, and yield each item's place and result as soon as it has one.

    Where the caller stops early, as it does on Ctrl-C, what has not finished is ended.

    Args:
        function: Function of a module, which other processes can import.
        items: Items to apply it to, such as configurations of runs.
        jobs: Number of processes.
        context: Way to start them; by default each is spawned.
    """
    context = context or multiprocessing.get_context("spawn")
    leave_interrupts_to_us = (signal.SIGINT, signal.SIG_IGN)
    pool = ProcessPoolExecutor(jobs, context, initializer=signal.signal, initargs=leave_interrupts_to_us)
    try:
        places = {pool.submit(function, item): place for place, item in enumerate(items)}
        for future in as_completed(places):
            yield places[future], future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()  # a run takes minutes, which nobody who has pressed Ctrl-C will wait for
