"""The queue of large suites: goes on with the next one that is not complete, for the minutes that a GPU is at hand.

From a checkout, on the machine with the GPU:
    python -m benchmarks.gpu_queue --data-dir DIR
A turn ends by itself, with every run saved where it is, and the next one goes on from there. Nothing is trained by
    python -m benchmarks.gpu_queue --list        # what is done, what is left, and what it costs
    python -m benchmarks.gpu_queue --prepare     # make the tensors of all data now, so that no turn waits for them
and `--smoke` makes two steps of a small run of every suite, on processors and without data.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

from pebench.benchmarks.gpu_smoke import smoke
from pebench.config import RunConfig
from pebench.engine.execution import execution
from pebench.engine.plans import make_plan
from pebench.engine.published import take_published
from pebench.engine.signals import handling
from pebench.errors import UserError
from pebench.runs.plan import load_records
from pebench.runs.records import Record
from pebench.runs.suite import Suite, load_suite
from pebench.tasks import find_task

MARGIN = 1.15
"""Factor by which an estimate is longer than the measured rates make it."""

ENDING_S = 15.0
"""Time that is kept of a turn for runs to save where they are, in seconds."""

SHORTEST_S = 60.0
"""Least time for which another suite is begun: below that its runs would hardly start, in seconds."""

FULL = "results/full: 45 runs of 2,000 steps took 469 s of one H100, 15 at a time, tests and start-up included"
MIXED = "half of the rows as in results/full, half at half of it: no bias of attention has been timed on a GPU"
STEPS = "the steps a second of results/full, though a step has a quarter of its operations"
LARGEST = "the operations a second of results/full, 7.2e13, by the 7.4e11 of a step"
WINDOWS = "one run of `full` did 86 steps a second (docs/performance-log.md); these have 1.3 times the operations"
IN_32_BIT = "half of an H100's 6.7e13 operations a second in 32 bits, by the 1.2e12 of a step"


@dataclass(frozen=True)
class Item:
    """A suite in the queue.

    Args:
        suite: Its name.
        rate: Training steps a second of all its runs together, validation and tests included.
        jobs: Most runs at a time; see `jobs_of`.
        source: Where the rate is from.
    """

    suite: str
    rate: float
    jobs: int
    source: str


QUEUE = (
    Item("full-scorecard", 128, 12, MIXED),
    Item("full-rivals-tied", 192, 15, FULL),
    Item("full-rivals-pace", 192, 15, FULL),
    Item("full-rivals-small", 192, 15, FULL),
    Item("images-real", 192, 7, STEPS),
    Item("ladder", 192, 15, FULL),
    Item("ladder-29m", 97, 6, LARGEST),
    Item("long", 60, 2, WINDOWS),
    Item("nanogpt", 28, 6, IN_32_BIT),
)
"""The suites in order of worth."""


@dataclass(frozen=True)
class Progress:
    """How far a suite is.

    Args:
        total: Number of its runs.
        failed: Number of runs that failed, which are not made again.
        stuck: Number of runs that are tested only once a failed one, which is to select for them, is made again.
        left: Number of other runs without a record, here or published.
        steps: Training steps of those.
    """

    total: int
    failed: int
    stuck: int
    left: int
    steps: int


def progress(suite: Suite, out: Path) -> Progress:
    """Return how far a suite is, by the records in a folder and those that are published."""
    plan, how, records = make_plan(suite), execution(out, {}), dict[str, Record]()
    runs: list[RunConfig] = []
    for tested in (False, True):  # in this order, as selecting decides what is tested
        asked = plan.testing(records) if tested else plan.selecting()
        found = load_records(asked, out)
        records |= found | take_published(asked, found, suite, how)
        runs += asked
    left = [run for run in runs if run.key not in records]
    # Of rows whose rate is not chosen yet: in a suite that selects, all runs have the same number of steps.
    later, rows = plan.undecided(records, retrying=False), plan.undecided(records)
    steps = sum(run.train.max_steps for run in left) + later * plan.kinds[0].train.max_steps
    failed = sum(not record.ok for record in records.values())
    return Progress(len(runs) + rows, failed, rows - later, len(left) + later, steps)


def minutes_of(item: Item, left: Progress) -> float:
    """Return the minutes that the rest of a suite takes, by its rate."""
    return MARGIN * left.steps / item.rate / 60


def jobs_of(item: Item, minutes: float) -> int:
    """Return how many runs of a suite are made at a time in a turn of so many minutes.

    At most as many as finish within half of it: the rate is that of all of them, so n at a time take n times as long.
    Where none finishes, a turn leaves no record, and a machine that forgets loses all.
    """
    seconds = max(kind.train.max_steps for kind in make_plan(item.suite).kinds) / item.rate
    return max(1, min(item.jobs, int(30 * minutes / seconds)))


def table(out: Path, data_dir: Path | None, minutes: float) -> str:
    """Return the queue as a table: runs that are done and left, minutes, and the data that a turn needs."""
    rows = []
    for item in QUEUE:
        suite = load_suite(item.suite)
        now = progress(suite, out / item.suite)
        size = data_size(suite, data_dir)
        rows.append([
            item.suite, f"{now.total - now.left - now.stuck} of {now.total}", now.failed, now.stuck,
            f"{minutes_of(item, now):.0f}", "-" if size is None else f"{size / 2**20:.0f}", jobs_of(item, minutes),
            item.rate, item.source,
        ])  # fmt: skip
    heads = [
        "suite", "runs done", "failed", "wait for them", "minutes left", "data, MB", "at a time", "steps/s", "rate by"
    ]  # fmt: skip
    return tabulate(rows, headers=heads, disable_numparse=True)


def data_size(suite: Suite, data_dir: Path | None) -> int | None:
    """Return the bytes of the local copies that a suite reads; None where no folder of copies is named."""
    if data_dir is None:
        return None
    folders = {data_dir / source.folder for task in suite.tasks if (source := find_task(task).source)}
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def prepare(data_dir: Path | None) -> None:
    """Make the tensors of all data that the queue reads, unless that has been done."""
    from pebench.data import datamodule_of  # here, as it loads torch

    for item in QUEUE:
        for config in {find_task(kind.task).name: kind for kind in make_plan(item.suite).kinds}.values():
            data = datamodule_of(config, data_dir)
            data.prepare_data()
            print(f"{item.suite}: {config.task}, {data.file.stat().st_size / 2**20:.0f} MB in {data.file}", flush=True)


def work(options: argparse.Namespace) -> int:
    """Go on with the suites that are not complete, in order, until the time is over.

    Returns:
        The exit status: 130 after Ctrl-C or SIGTERM, 2 where a suite cannot run, that of a suite of which a run
        failed, else 0.

    Raises:
        UserError: Where there is no GPU and one is asked for.
    """
    end = time.monotonic() + 60 * options.minutes
    import torch  # here, as it takes seconds

    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "expected a GPU that this torch can use, found none. --smoke tries the suites on processors, and --device "
            "cpu trains them there, for weeks."
        )
    failed = 0
    for item in QUEUE:
        out = options.out / item.suite
        if not progress(load_suite(item.suite), out).left:
            continue
        left = end - time.monotonic() - ENDING_S
        if left < SHORTEST_S:
            break
        print(f"queue: {item.suite}, for {left / 60:.1f} minutes at most", flush=True)
        status = run_for(command_of(item, out, options), left)
        if status in (2, 130):
            return status
        failed = failed or status  # a run that failed is no reason for the other suites to wait
    return failed


def command_of(item: Item, out: Path, options: argparse.Namespace) -> list[str]:
    """Return the command that makes the runs of a suite."""
    words = [sys.executable, "-m", "pebench", "run", "--suite", item.suite, "--out", str(out)]
    words += ["--jobs", str(options.jobs or jobs_of(item, options.minutes)), "--device", options.device]
    return words + (["--data-dir", str(options.data_dir)] if options.data_dir else [])


def run_for(command: Sequence[str], seconds: float) -> int:
    """Run a command for a time, then have it end as on SIGTERM, which lets its runs save where they are.

    Returns:
        Its exit status, which is 130 after Ctrl-C; 0 if the time is over.
    """
    begun, early = list[subprocess.Popen[bytes]](), list[int]()

    def stop(number: int, frame: Any) -> None:
        if begun:
            begun[0].terminate()
        else:
            early.append(number)

    # In a session of its own: a terminal's Ctrl-C would reach it beside the signal that is handed on, and a second one
    # ends its runs before they have saved. The handlers come first: a signal in between would end this process alone.
    with (
        handling({signal.SIGINT: stop, signal.SIGTERM: stop}),
        subprocess.Popen(command, start_new_session=True) as process,
    ):
        begun.append(process)
        if early:
            process.terminate()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            print("queue: the time is over; the next turn goes on from here", flush=True)
            return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_queue", description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="print what is done, what is left and what it costs")
    what.add_argument("--prepare", action="store_true", help="make the tensors of all data")
    what.add_argument("--smoke", action="store_true", help="two steps of a small run of every suite, on processors")
    parser.add_argument("--minutes", type=float, default=9.0, help="length of a turn (default: 9)")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of the suites' folders (default: runs)")
    parser.add_argument("--data-dir", type=Path, help="local data instead of downloads")
    parser.add_argument("--device", default="cuda", help="where to train: cuda (default), cpu or auto")
    parser.add_argument("--jobs", type=int, help="runs at a time (default: as many as finish within half a turn)")
    options = parser.parse_args(arguments)
    try:
        if options.smoke:
            with tempfile.TemporaryDirectory() as folder:
                return smoke([item.suite for item in QUEUE], Path(folder))
        if options.list:
            print(table(options.out, options.data_dir, options.minutes))
        elif options.prepare:
            prepare(options.data_dir)
        else:
            return work(options)
    except UserError as error:
        print(f"queue: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
