"""What the engine costs: plans, finished suites, start-up and packing, measured.

    python benchmarks/studies/engine.py --output results/engine.md

Ratios are taken within one run of this file, interleaved, since the machine may do other work.
"""

import argparse
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pebench.runs.records import Record, write_record
from pebench.tasks import configure
from pebench.training import environment

LARGE_SUITE = """
from pebench import Suite
SUITE = Suite("large", "?", ["vit-digits", "text-order"], ["add", "concat", "learned", "none", "rope"], seeds={})
"""
RUNS = ["run", "--task", "vit-digits", "--pe", "add", "--pe", "rope", "--device", "cpu"]
EMBEDDED = ("vit-digits", "text-order", "lm-grammar")


def main() -> None:
    """Measure everything and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="write the page here, not to the terminal")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each measurement")
    parser.add_argument("--data-dir", help="folder with IMDB, to measure its preparation too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [*measure(Path(folder), options.rounds)]
        if options.data_dir:
            rows.append(preparation(Path(folder), options.rounds, options.data_dir))
    page = render(rows, options.rounds)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(page)


def measure(folder: Path, rounds: int) -> list[tuple[str, str, str]]:
    """Every figure with its bar: what, figure, bar."""
    suite = folder / "large.py"
    suite.write_text(LARGE_SUITE.format(10_000), encoding="utf-8")
    finished = folder / "finished"
    plan = ["run", "--suite", str(suite), "--dry-run", "--out"]
    make_finished(finished, 500)
    again = [*RUNS, "--seeds", "250", "--tier", "smoke", "--out", str(finished)]
    rows = [
        seconds("`--help`", rounds, lambda: pebench("--help"), "0.3 s"),
        seconds("plan of 100,000 runs, none done", rounds, lambda: pebench(*plan, str(folder / "none")), "5 s"),
        seconds("500 finished runs recognised, table printed", rounds, lambda: pebench(*again), "2 s"),
        *cold(folder, rounds),
        *overheads(folder, rounds),
    ]
    return [*rows, *(packing(folder, rounds, task, threads) for task in EMBEDDED for threads in (1, 2))]


def pebench(*arguments: str) -> float:
    """Run the command line in a process of its own; how long it took, in seconds."""
    return python("from pebench.cli import main; raise SystemExit(main())", *arguments)


def python(code: str, *arguments: str) -> float:
    """Run Python in a process of its own; how long it took, in seconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def seconds(name: str, rounds: int, do: Callable[[], float], bar: str) -> tuple[str, str, str]:
    """A figure from several repetitions."""
    return name, spread([do() for _ in range(rounds)], "s"), f"under {bar}"


def spread(values: Sequence[float], unit: str) -> str:
    """Median, and from where to where."""
    return f"{statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


def make_finished(out: Path, count: int) -> None:
    """Records of as many finished runs as a run of them would leave, two encodings by turns."""
    for number in range(count):
        config = configure("vit-digits", ("add", "rope")[number % 2], number // 2, "smoke")
        curve = [{"step": step, "val/loss": 1.0, "val/accuracy": 0.5} for step in range(5)]
        write_record(Record(config, metrics={"test/accuracy": number % 7 / 7, "val/loss": 1.0}, curve=curve), out)


def overheads(folder: Path, rounds: int) -> list[tuple[str, str, str]]:
    """Wall time of a run with next to nothing to train, after the server has started."""
    rows = []
    for task in EMBEDDED:
        found = []
        for number in range(rounds):
            few, many = (
                batch(folder / f"{task}-{number}-{count}", task, count, 1, "--tier", "smoke") for count in (1, 11)
            )
            found.append((many - few) / 10)
        rows.append((f"a run of {task} beyond its training", spread(found, "s"), "under 1.5 s"))
    return rows


def batch(out: Path, task: str, count: int, jobs: int, *more: str) -> float:
    """Do equal runs, each with a seed of its own; how long it took, in seconds."""
    words = ["run", "--task", task, "--pe", "add", "--seeds", str(count), "--threads", "1", "--device", "cpu"]
    return pebench(*words, "--jobs", str(jobs), "--out", str(out), *more)


def cold(folder: Path, rounds: int) -> list[tuple[str, str, str]]:
    """A command that does one run of two steps, by each executor, beside what it cannot do without; interleaved."""
    words = ["run", "--task", "vit-digits", "--pe", "add", "--seeds", "1", "--tier", "smoke", "--device", "cpu"]
    executors = ("local", "sequential")
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        for executor in executors:
            out = folder / f"cold-{executor}-{number}"
            started = time.time()
            took = pebench(*words, "--executor", executor, "--out", str(out))
            (record,) = out.rglob("record.json")
            found.setdefault(f"{executor} record", []).append(record.stat().st_mtime - started)
            found.setdefault(executor, []).append(took)
        found.setdefault("import", []).append(python("import lightning.pytorch, os; os._exit(0)"))
    what = "one run of two steps in a new process"
    return [
        ("`import lightning.pytorch` in a new process, without its end", spread(found["import"], "s"), "-"),
        *((f"{what}: until its record is written, executor {executor}", spread(found[f"{executor} record"], "s"),
           "under 6 s for its first step") for executor in executors),
        *((f"{what}: until the table is printed and the process gone, executor {executor}",
           spread(found[executor], "s"), "-") for executor in executors),
    ]  # fmt: skip


def preparation(folder: Path, rounds: int, data_dir: str) -> tuple[str, str, str]:
    """Texts and vocabulary of IMDB, from its archive to the file that runs map."""
    code = (
        "import sys, time; from pathlib import Path; from pebench.data.text import IMDB;"
        "data = IMDB(data_dir=Path(sys.argv[1])); started = time.perf_counter(); data.prepare_data();"
        "print(time.perf_counter() - started)"
    )
    found = []
    for number in range(rounds):
        environment = os.environ | {"PEBENCH_CACHE_DIR": str(folder / f"cache-{number}")}
        words = [sys.executable, "-c", code, data_dir]
        found.append(float(subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout))
    return "IMDB prepared", spread(found, "s"), "under 60 s"


def packing(folder: Path, rounds: int, task: str, threads: int) -> tuple[str, str, str]:
    """Two jobs of one thread each against the same runs one after the other on so many threads."""
    ratios, words = [], ["--tier", "quick", "--set", "train.max_steps=150", "--set", "train.evaluations=1"]
    for number in range(rounds):
        where = folder / f"pack-{task}-{threads}-{number}"
        one = batch(where / "one", task, 4, 1, *words, "--threads", str(threads))
        two = batch(where / "two", task, 4, 2, *words)
        idle = batch(where / "idle", task, 1, 1, "--tier", "smoke")
        ratios.append((one - idle) / (two - idle))
    against = "on one thread" if threads == 1 else f"on {threads} threads"
    bar = "at least 1.6 x" if threads == 1 else "-"
    return (
        f"4 runs of {task}, two at a time on one thread each against one at a time {against}",
        spread(ratios, "x"),
        bar,
    )


def made_by(script: str) -> str:
    """When and by what command a page is made."""
    return f"{datetime.now(UTC):%Y-%m-%d}, `{shlex.join(['python', f'benchmarks/{script}', *sys.argv[1:]])}`\n\n"


def render(rows: Sequence[tuple[str, str, str]], rounds: int) -> str:
    """The page."""
    from tabulate import tabulate

    versions = environment.versions()
    table = tabulate(
        rows, headers=["What", f"Median of {rounds} (range)", "Bar"], tablefmt="pipe", disable_numparse=True
    )
    return (
        "# What the engine costs\n\n"
        f"{made_by('engine.py')}"
        f"{table}\n\n"
        "- Times are of whole processes, start-up included, unless the line says otherwise.\n"
        "- Beyond training: runs of two steps of a tiny model; eleven of them less one, divided by ten:\n"
        "  start, data, one validation, one test, checkpoints, TensorBoard, record.\n"
        "- Two at a time: the time of start-up (a batch of one two-step run) is taken off both.\n"
        f"- {os.cpu_count()} cores, {environment.device_name(__import__('torch').device('cpu'))}, "
        f"Python {platform.python_version()}, torch {versions['torch']}, pebench {versions['pebench']}, "
        f"commit {environment.commit()}\n"
    )


if __name__ == "__main__":
    main()
