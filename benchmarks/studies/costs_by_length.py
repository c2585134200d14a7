"""Measure a training step with each encoding at 256, 1,024 and 4,096 tokens, for the scorecard.

The causal language model of `growth`, with 4,096 tokens in a step whatever their arrangement. Each point is measured in
a process of its own: seconds of a step, over those of `none` measured just before, and the memory that training takes
beyond what it takes with `none`. On a machine that does nothing else, run
    python -m benchmarks.studies.costs_by_length --threads 2 --output results/studies/costs_by_length.md
With --pe it adds encodings to those that are in the output already.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from pebench.benchmarks.studies.growth import SMALL, TOKENS, measure_point
from pebench.benchmarks.studies.pages import Page, circumstances, report_progress, write_page
from pebench.encodings.base import EncodingSpec, build_encoding
from pebench.encodings.registry import encoding_cards
from pebench.engine.checks import memory

LENGTHS = (256, 1024, 4096)
SHARE = 0.8
"""Share of the machine's memory that a point may take; one that needs more has no figures."""

Point = Mapping[str, float] | None
Points = dict[str, dict[str, Point]]
"""Encoding to length to ``ratio`` (seconds over those of `none`) and ``gib`` (memory beyond it); None: no memory."""


def serves(name: str, length: int) -> bool:
    """Return True if an encoding serves the model at a length."""
    try:
        build_encoding(name, EncodingSpec(SMALL.width, SMALL.heads, SMALL.depth, (length,), causal=True))
    except ValueError:
        return False
    return True


def measure(name: str, length: int, threads: int | None) -> dict[str, float] | None:
    """Measure a point in a process of its own; None if it asks for more memory than it may."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.studies.costs_by_length",
        "--point",
        json.dumps([name, length, threads]),
    ]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=False, cwd=Path(__file__).parents[2])
    found: dict[str, float] | None = json.loads(answer.stdout) if answer.returncode == 0 else None
    return found


def measure_here(name: str, length: int, threads: int | None) -> dict[str, float]:
    """Measure a point in this process, with a limit on its memory where the system has one."""
    if threads:
        torch.set_num_threads(threads)
    if whole := memory():
        import resource  # not on Windows

        limit = int(SHARE * whole)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return measure_point(name, replace(SMALL, size=length, batch=TOKENS // length))


def sweep(points: Points, names: Sequence[str], lengths: Sequence[int], threads: int | None) -> Iterator[None]:
    """Measure encodings beside `none`, note each point, and yield after each."""
    for length in lengths:
        for name in names:
            if not serves(name, length):
                continue
            usual, found = measure("none", length, threads), measure(name, length, threads)
            point = usual and found and {
                "ratio": found["seconds"] / usual["seconds"], "gib": max(0.0, found["gib"] - usual["gib"]),
            }  # fmt: skip
            points.setdefault(name, {})[str(length)] = point or None
            report_progress(f"{name}, {length} tokens: {cell(point)}")
            yield


def cell(point: Point) -> str:
    """Return a point as text."""
    return f"{point['ratio']:.2f}, {point['gib']:.2f} GiB" if point else "too much memory"


def earlier(output: Path | None) -> Points:
    """Return the points that were measured before; none where the file is another or not there."""
    path = output.with_suffix(".json") if output else None
    found: Points = json.loads(path.read_text(encoding="utf-8"))["points"] if path and path.exists() else {}
    return found


def pages(arguments: Sequence[str], options: argparse.Namespace) -> Iterator[Page]:
    """Yield the page after each point."""
    names = options.pe or sorted(encoding_cards().keys() - {"none"})
    lengths = options.length or LENGTHS
    points = earlier(options.output)
    head = (
        "# A training step by length\n\n"
        f"{circumstances('costs_by_length', arguments, torch.device('cpu'), options.threads)}"
        f"A causal language model of {SMALL.depth} layers of width {SMALL.width} with {SMALL.heads} heads; {TOKENS:,} "
        "tokens in a step. Seconds of a step over those of `none`, the fastest of three blocks each; memory beyond "
        "`none`'s.\n\n"
    )
    for _ in sweep(points, names, lengths, options.threads):
        known = sorted({int(length) for row in points.values() for length in row})
        rows = [
            [f"`{name}`", *(cell(row[str(n)]) if str(n) in row else "" for n in known)]
            for name, row in sorted(points.items())
        ]
        table = tabulate(rows, ["Encoding", *(f"{n:,} tokens" for n in known)], tablefmt="pipe", disable_numparse=True)
        figures: dict[str, Any] = {"tokens": TOKENS, "points": points}
        yield Page(f"{head}{table}\n", figures)


def main(arguments: Sequence[str]) -> int:
    """Measure one point for another process, or everything."""
    parser = argparse.ArgumentParser(description="Time a training step with each encoding by length.")
    parser.add_argument("--pe", action="append", choices=sorted(encoding_cards()), help="an encoding (repeatable)")
    parser.add_argument(
        "--length", action="append", type=int, help="tokens (repeatable); by default 256, 1024 and 4096"
    )
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--output", type=Path, help="Markdown file; the figures are put beside it as JSON")
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.point:
        print(json.dumps(measure_here(*options.point)))
        return 0
    return write_page(pages(arguments, options), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
