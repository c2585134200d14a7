"""Measure what the engine costs: plans, finished suites, start-up and packing.

    python -m benchmarks.studies.engine --output results/studies/engine.md

Ratios are taken within one run of this file, interleaved, since the machine may do other work.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch
from tabulate import tabulate

from pebench.benchmarks.studies.pages import command, report_progress, write_page
from pebench.runs.records import Record, write_record
from pebench.tasks import configure
from pebench.training import environment

LARGE_SUITE = """
from pebench import Suite
SUITE = Suite("large", "?", ["vit-digits", "text-order"], ["add", "concat", "learned", "none", "rope"], seeds={})
"""
RUNS = ["run", "--task", "vit-digits", "--pe", "add", "--pe", "rope", "--device", "cpu"]
EMBEDDED = ("vit-digits", "text-order", "lm-grammar")

Row = tuple[str, str, str]
"""A measurement, its figure, and the bar that it should keep."""


def measure(folder: Path, rounds: int, data_dir: str | None = None) -> Iterator[Row]:
    """Measure every figure, one after the other.

    Args:
        folder: Empty folder for runs and caches.
        rounds: Repetitions of each measurement.
        data_dir: Folder with IMDB, to measure its preparation too.
    """
    suite = folder / "large.py"
    suite.write_text(LARGE_SUITE.format(10_000), encoding="utf-8")
    finished = folder / "finished"
    plan = ["run", "--suite", str(suite), "--dry-run", "--out"]
    make_finished(finished, 500)
    again = [*RUNS, "--seeds", "250", "--tier", "smoke", "--out", str(finished)]
    yield repeated("`--help`", rounds, lambda: run_pebench("--help"), "0.3 s")
    yield repeated("plan of 100,000 runs, none done", rounds, lambda: run_pebench(*plan, str(folder / "none")), "5 s")
    yield repeated("500 finished runs recognised, table printed", rounds, lambda: run_pebench(*again), "2 s")
    yield from cold_starts(folder, rounds)
    yield from overheads(folder, rounds)
    for task in EMBEDDED:
        for threads in (1, 2):
            yield packing(folder, rounds, task, threads)
    if data_dir:
        yield preparation(folder, rounds, data_dir)


def run_pebench(*arguments: str) -> float:
    """Run the command line in a process of its own, and return its seconds."""
    return run_python("from pebench.cli import main; raise SystemExit(main())", *arguments)


def run_python(code: str, *arguments: str) -> float:
    """Run Python code in a process of its own, and return its seconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def repeated(name: str, rounds: int, measure_once: Callable[[], float], bar: str) -> Row:
    """Measure a figure several times."""
    return name, median_and_range([measure_once() for _ in range(rounds)], "s"), f"under {bar}"


def median_and_range(values: Sequence[float], unit: str) -> str:
    """Return the median, and the smallest and the largest value."""
    return f"{statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


def make_finished(out: Path, count: int) -> None:
    """Write records of `count` finished runs as those runs would leave them, with two encodings by turns."""
    for number in range(count):
        config = configure("vit-digits", ("add", "rope")[number % 2], number // 2, "smoke")
        curve = [{"step": step, "val/loss": 1.0, "val/accuracy": 0.5} for step in range(5)]
        write_record(Record(config, metrics={"test/accuracy": number % 7 / 7, "val/loss": 1.0}, curve=curve), out)


def cold_starts(folder: Path, rounds: int) -> Iterator[Row]:
    """Measure a command of one run of two steps, by each executor, and the import that it needs; interleaved."""
    words = ["run", "--task", "vit-digits", "--pe", "add", "--seeds", "1", "--tier", "smoke", "--device", "cpu"]
    executors = ("local", "sequential")
    imports: list[float] = []
    commands: dict[str, list[float]] = {executor: [] for executor in executors}
    records: dict[str, list[float]] = {executor: [] for executor in executors}
    for number in range(rounds):
        for executor in executors:
            out = folder / f"cold-{executor}-{number}"
            started = time.time()
            commands[executor].append(run_pebench(*words, "--executor", executor, "--out", str(out)))
            (record,) = out.rglob("record.json")
            records[executor].append(record.stat().st_mtime - started)
        imports.append(run_python("import lightning.pytorch, os; os._exit(0)"))
    run = "one run of two steps in a new process"
    yield "`import lightning.pytorch` in a new process, without its end", median_and_range(imports, "s"), "-"
    for executor in executors:
        what = f"{run}: until its record is written, executor {executor}"
        yield what, median_and_range(records[executor], "s"), "under 6 s for its first step"
    for executor in executors:
        what = f"{run}: until the table is printed and the process gone, executor {executor}"
        yield what, median_and_range(commands[executor], "s"), "-"


def overheads(folder: Path, rounds: int) -> Iterator[Row]:
    """Measure the time of a run with next to nothing to train, once the server has started."""
    for task in EMBEDDED:
        found = []
        for number in range(rounds):
            few, many = (
                run_batch(folder / f"{task}-{number}-{count}", task, count, 1, "--tier", "smoke") for count in (1, 11)
            )
            found.append((many - few) / 10)
        yield f"a run of {task} beyond its training", median_and_range(found, "s"), "under 1.5 s"


def run_batch(out: Path, task: str, count: int, jobs: int, *more: str) -> float:
    """Execute equal runs, each with a seed of its own, and return the seconds that all took."""
    words = ["run", "--task", task, "--pe", "add", "--seeds", str(count), "--threads", "1", "--device", "cpu"]
    return run_pebench(*words, "--jobs", str(jobs), "--out", str(out), *more)


def packing(folder: Path, rounds: int, task: str, threads: int) -> Row:
    """Compare two jobs of one thread each with the same runs one after the other on `threads` threads."""
    ratios, words = [], ["--tier", "quick", "--set", "train.max_steps=150", "--set", "train.evaluations=1"]
    for number in range(rounds):
        where = folder / f"pack-{task}-{threads}-{number}"
        one = run_batch(where / "one", task, 4, 1, *words, "--threads", str(threads))
        two = run_batch(where / "two", task, 4, 2, *words)
        idle = run_batch(where / "idle", task, 1, 1, "--tier", "smoke")
        ratios.append((one - idle) / (two - idle))
    against = "on one thread" if threads == 1 else f"on {threads} threads"
    what = f"4 runs of {task}, two at a time on one thread each against one at a time {against}"
    return what, median_and_range(ratios, "x"), "at least 1.6 x" if threads == 1 else "-"


def preparation(folder: Path, rounds: int, data_dir: str) -> Row:
    """Measure the preparation of IMDB: texts and vocabulary, from its archive to the file that runs map."""
    code = (
        "import sys, time; from pathlib import Path; from pebench.data.text import IMDB;"
        "data = IMDB(data_dir=Path(sys.argv[1])); started = time.perf_counter(); data.prepare_data();"
        "print(time.perf_counter() - started)"
    )
    found = []
    for number in range(rounds):
        variables = os.environ | {"PEBENCH_CACHE_DIR": str(folder / f"cache-{number}")}
        words = [sys.executable, "-c", code, data_dir]
        found.append(float(subprocess.run(words, env=variables, check=True, capture_output=True, text=True).stdout))
    return "IMDB prepared", median_and_range(found, "s"), "under 60 s"


def made_by(study: str, arguments: Sequence[str]) -> str:
    """Return the line with a page's date and command."""
    return f"{datetime.now(UTC):%Y-%m-%d}, {command(study, arguments)}\n\n"


def machine() -> str:
    """Return the machine, and the version of Python."""
    device = environment.device_name(torch.device("cpu"))
    return f"{os.cpu_count()} cores, {device}, Python {platform.python_version()}"


def render(rows: Sequence[Row], rounds: int, arguments: Sequence[str] = ()) -> str:
    """Return the page."""
    versions = environment.versions()
    table = tabulate(
        rows, headers=["What", f"Median of {rounds} (range)", "Bar"], tablefmt="pipe", disable_numparse=True
    )
    return (
        "# What the engine costs\n\n"
        f"{made_by('engine', arguments)}"
        f"{table}\n\n"
        "- Times are of whole processes, start-up included, unless the line says otherwise.\n"
        "- Beyond training: runs of two steps of a tiny model; eleven of them less one, divided by ten:\n"
        "  start, data, one validation, one test, checkpoints, TensorBoard, record.\n"
        "- Two at a time: the time of start-up (a batch of one two-step run) is taken off both.\n"
        f"- {machine()}, torch {versions['torch']}, pebench {versions['pebench']}, commit {environment.commit()}\n"
    )


def pages(arguments: Sequence[str], rounds: int, data_dir: str | None) -> Iterator[str]:
    """Yield the page after each figure."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(Path(folder), rounds, data_dir):
            report_progress(" | ".join(row))
            rows.append(row)
            yield render(rows, rounds, arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure everything and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each measurement")
    parser.add_argument("--data-dir", help="folder with IMDB, to measure its preparation too")
    options = parser.parse_args(arguments)
    return write_page(pages(arguments, options.rounds, options.data_dir), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
