"""Measure what a report of very many runs costs: time and memory, from a file and from a folder of runs.

    python -m benchmarks.studies.report --output results/studies/report.md

The records are made up, in the form and size of real ones; tables, pages and statistics are not.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from pebench.benchmarks.studies.engine import machine, made_by, median_and_range
from pebench.benchmarks.studies.pages import report_progress, write_page
from pebench.config import RunConfig
from pebench.encodings.registry import encoding_cards
from pebench.runs.records import FAILURE, FILE_NAME, Record, read_records
from pebench.tasks import TASKS, configure
from pebench.training import environment

MEASURED = """
import re, sys, time
from pathlib import Path
from pebench.cli import main
started = time.perf_counter()
code = main(sys.argv[1:])
wall = time.perf_counter() - started
peak = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]  # getrusage counts the parent's
print(code, wall, time.process_time(), peak, file=sys.stderr)
"""
BARS = "15 s and 1 GiB"


Row = tuple[str, str, str, str]
"""A report, its seconds by the clock, its seconds of the processor, its largest memory."""


def measure(folder: Path, count: int, rounds: int) -> Iterator[Row]:
    """Measure reports of many encodings with few seeds, and of few with many, from a file and from a folder.

    Args:
        folder: Empty folder for the records.
        count: Number of records.
        rounds: Repetitions of each measurement.
    """
    names = [*encoding_cards()]
    for title, tasks, encodings in (
        (f"{len(TASKS)} tasks x {len(names)} encodings", [*TASKS], names),
        ("2 tasks x 5 encodings", ["vit-digits", "text-order"], ["add", "concat", "learned", "none", "rope"]),
    ):
        out = folder / f"{len(tasks)}-{len(encodings)}"
        seeds = count // (len(tasks) * len(encodings))
        make_records(out, tasks, encodings, seeds)
        number = len(tasks) * len(encodings) * seeds
        for kind, source in (("file", out / "all.jsonl"), ("folder of runs", out / "runs")):
            figures = [report(source, folder / "page") for _ in range(rounds)]
            clock, processor, memory = zip(*figures, strict=True)
            yield (
                f"{number:,} records, {title} x {seeds:,} seeds, from a {kind}",
                median_and_range(clock, "s"),
                median_and_range(processor, "s"),
                median_and_range(memory, "GiB"),
            )


def report(source: Path, prefix: Path) -> tuple[float, float, float]:
    """Write every format in a process of its own; return its seconds, the processor's seconds, and its largest GiB."""
    words = [sys.executable, "-c", MEASURED, "report", str(source), "--output", str(prefix)]
    text = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    code, wall, processor, kilobytes = text.split()[-4:]
    if code != "0":
        raise RuntimeError(text)
    return float(wall), float(processor), int(kilobytes) / 2**20


def make_records(out: Path, tasks: Sequence[str], encodings: Sequence[str], seeds: int) -> None:
    """Write records as runs leave them, one in a hundred failed, in a folder and in a file."""
    (example, *_) = read_records(Path(__file__).parents[2] / "results" / "tuned")
    draw = random.Random(0)
    out.mkdir()
    with (out / "all.jsonl").open("w", encoding="utf-8") as file:
        for task in tasks:
            for number, encoding in enumerate(encodings):
                kind = configure(task, encoding)
                for seed in range(seeds):
                    record = make_record(kind.with_seed(seed), number, example, draw)
                    values = record.to_dict()
                    file.write(json.dumps(values, sort_keys=True) + "\n")
                    folder = out / "runs" / record.config.directory
                    folder.mkdir(parents=True)
                    text = json.dumps(values, indent=1, sort_keys=True) + "\n"
                    (folder / (FILE_NAME if record.ok else FAILURE)).write_text(text, encoding="utf-8")


def make_record(config: RunConfig, number: int, example: Record, draw: random.Random) -> Record:
    """Make up a record.

    Args:
        config: The run's configuration.
        number: Place of its encoding among the others; later ones are better.
        example: Real record, whose versions and data it has.
        draw: Random numbers.
    """
    metric = TASKS[config.task].metric
    value = 0.5 + number / 100 + draw.gauss(0, 0.02)
    curve = [
        {"step": step, "val/loss": draw.random(), f"val/{metric}": value, "train/loss": draw.random()}
        for step in range(100, 600, 100)
    ]
    outcome: dict[str, Any] = {
        "metrics": {f"test/{metric}": value, "test/loss": draw.random(), **curve[-1], "best_step": 500}
    }
    if draw.random() < 0.01:
        error = {"kind": "diverged", "reason": "loss is nan at step 12", "log": "..."}
        outcome = {"status": "failed", "error": error}
    return Record(
        config,
        curve=curve,
        parameters={"encoding": 10 * number, "total": 10_000 + 10 * number},
        flops_per_sample=1_000_000,
        throughput=1000 + draw.random(),
        peak_memory_gib=0.5,
        duration_s=10 * draw.random(),
        dataset=example.dataset,
        environment=example.environment,
        started="2026-01-01T00:00:00+00:00",
        **outcome,
    )


def render(rows: Sequence[Row], rounds: int, arguments: Sequence[str]) -> str:
    """Return the page."""
    head = ["What", f"Time, median of {rounds} (range)", "Processor's time", "Peak memory"]
    table = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True)
    return (
        "# What a report costs\n\n"
        f"{made_by('report', arguments)}"
        f"{table}\n\n"
        f"- Bar: under {BARS}, on a machine that does nothing else.\n"
        "- `pebench report SOURCE --output PREFIX`: every format is written. Memory: resident, of the process.\n"
        "- A record is as large as a real one: five points of a curve, versions, data; one run in a hundred failed.\n"
        f"- {machine()}, pebench {environment.versions()['pebench']}, commit {environment.commit()}\n"
    )


def pages(arguments: Sequence[str], runs: int, rounds: int) -> Iterator[str]:
    """Yield the page after each figure."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(Path(folder), runs, rounds):
            report_progress(" | ".join(row))
            rows.append(row)
            yield render(rows, rounds, arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure everything and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    parser.add_argument("--runs", type=int, default=100_000, help="number of records")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each measurement")
    options = parser.parse_args(arguments)
    return write_page(pages(arguments, options.runs, options.rounds), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
