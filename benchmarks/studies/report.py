"""What a report of very many runs costs, measured: time and memory, from a file and from a folder of runs.

    python benchmarks/studies/report.py --output results/report.md

The records are made up, in the form and size of real ones; tables, pages and statistics are not.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine import made_by, spread
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


def main() -> None:
    """Measure everything and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="write the page here, not to the terminal")
    parser.add_argument("--runs", type=int, default=100_000, help="how many records")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each measurement")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = render([*measure(Path(folder), options.runs, options.rounds)], options)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(page)


def measure(folder: Path, count: int, rounds: int) -> Iterator[tuple[str, str, str, str]]:
    """What, time, processor's time and memory, for records of many encodings with few seeds and of few with many."""
    names = [*encoding_cards()]
    for title, tasks, encodings in (
        (f"{len(TASKS)} tasks x {len(names)} encodings", [*TASKS], names),
        ("2 tasks x 5 encodings", ["vit-digits", "text-order"], ["add", "concat", "learned", "none", "rope"]),
    ):
        out = folder / f"{len(tasks)}-{len(encodings)}"
        seeds = count // (len(tasks) * len(encodings))
        make(out, tasks, encodings, seeds)
        number = len(tasks) * len(encodings) * seeds
        for kind, source in (("file", out / "all.jsonl"), ("folder of runs", out / "runs")):
            figures = zip(*(report(source, folder / "page") for _ in range(rounds)), strict=True)
            wall, processor, memory = (
                spread([*found], unit) for found, unit in zip(figures, ("s", "s", "GiB"), strict=True)
            )
            yield f"{number:,} records, {title} x {seeds:,} seeds, from a {kind}", wall, processor, memory


def report(source: Path, prefix: Path) -> tuple[float, float, float]:
    """Write every format, in a process of its own: seconds by the clock and of the processor, largest memory in GiB."""
    words = [sys.executable, "-c", MEASURED, "report", str(source), "--output", str(prefix)]
    text = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    code, wall, processor, kilobytes = text.split()[-4:]
    if code != "0":
        raise RuntimeError(text)
    return float(wall), float(processor), int(kilobytes) / 2**20


def make(out: Path, tasks: list[str], encodings: list[str], seeds: int) -> None:
    """Records as runs leave them, one in a hundred failed, in a folder and in a file."""
    (example, *_) = read_records(Path(__file__).parents[2] / "results" / "tuned.jsonl")
    draw = random.Random(0)
    out.mkdir()
    with (out / "all.jsonl").open("w", encoding="utf-8") as file:
        for task in tasks:
            metric = TASKS[task].metric
            for number, encoding in enumerate(encodings):
                kind = configure(task, encoding)
                for seed in range(seeds):
                    value = 0.5 + number / 100 + draw.gauss(0, 0.02)
                    curve = [
                        {"step": step, "val/loss": draw.random(), f"val/{metric}": value, "train/loss": draw.random()}
                        for step in range(100, 600, 100)
                    ]
                    usual = {f"test/{metric}": value, "test/loss": draw.random(), **curve[-1], "best_step": 500}
                    failed = draw.random() < 0.01
                    error = {"kind": "diverged", "reason": "loss is nan at step 12", "log": "..."}
                    record = Record(
                        kind.with_seed(seed), status="failed" if failed else "ok", metrics={} if failed else usual,
                        curve=curve, parameters={"encoding": 10 * number, "total": 10_000 + 10 * number},
                        flops_per_sample=1_000_000, throughput=1000 + draw.random(), peak_memory_gib=0.5,
                        duration_s=10 * draw.random(), dataset=example.dataset, environment=example.environment,
                        started="2026-01-01T00:00:00+00:00", error=error if failed else None,
                    )  # fmt: skip
                    values = record.to_dict()
                    file.write(json.dumps(values, sort_keys=True) + "\n")
                    folder = out / "runs" / record.config.directory
                    folder.mkdir(parents=True)
                    text = json.dumps(values, indent=1, sort_keys=True) + "\n"
                    (folder / (FAILURE if failed else FILE_NAME)).write_text(text, encoding="utf-8")


def render(rows: list[tuple[str, str, str, str]], options: argparse.Namespace) -> str:
    """The page."""
    from tabulate import tabulate

    head = ["What", f"Time, median of {options.rounds} (range)", "Processor's time", "Peak memory"]
    table = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True)
    return (
        "# What a report costs\n\n"
        f"{made_by('report.py')}"
        f"{table}\n\n"
        f"- Bar: under {BARS}, on a machine that does nothing else.\n"
        "- `pebench report SOURCE --output PREFIX`: every format is written. Memory: resident, of the process.\n"
        "- A record is as large as a real one: five points of a curve, versions, data; one run in a hundred failed.\n"
        f"- {os.cpu_count()} cores, {environment.device_name(__import__('torch').device('cpu'))}, "
        f"Python {platform.python_version()}, pebench {environment.versions()['pebench']}, "
        f"commit {environment.commit()}\n"
    )


if __name__ == "__main__":
    main()
