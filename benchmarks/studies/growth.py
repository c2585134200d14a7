"""Measure how time and memory grow with length, width and the number of runs, beside what arithmetic predicts.

A step has 4,096 tokens whatever their arrangement, so that length alone makes attention grow. Each point is measured in
a process of its own: seconds per step, and the memory that training took. Arithmetic is the closed form of
`pebench.runs.costs`; a point is worse than it where its seconds per operation are over 1.25 times those of the row's
fastest point that does less. On a machine that does nothing else, run
    python -m benchmarks.studies.growth --threads 2 --output results/studies/growth.md
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from tabulate import tabulate

from pebench.benchmarks.studies.engine import LARGE_SUITE, RUNS, make_finished, run_pebench
from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page
from pebench.benchmarks.studies.timing import make_step, time_loop
from pebench.benchmarks.studies.workloads import Workload, make_tensors
from pebench.config import DataConfig, ModelConfig, RunConfig
from pebench.models import LanguageModel
from pebench.runs.costs import cost
from pebench.training import environment

TOKENS = 4096  # of a step
SMALL = Workload("", "lm", depth=4, width=128, heads=4, batch=1, size=256, outputs=256, steps=2)
ENCODINGS = ("none", "add", "rope", "alibi", "t5-bias")
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
WIDTHS = (64, 128, 256, 512)
PLANS = (1_000, 10_000, 100_000)
FINISHED = (100, 500, 2_000)
SLACK = 1.25  # how much worse than arithmetic is marked

Points = dict[str, list[dict[str, float]]]
"""Measurements of each encoding, in the order of the columns: seconds, gib, flops."""


@dataclass
class Measured:
    """Everything that has been measured so far."""

    by_length: Points = field(default_factory=dict)
    by_width: Points = field(default_factory=dict)
    runs: list[tuple[str, int, float]] = field(default_factory=list)  # what was done, with how many, seconds


def flops(encoding: str, work: Workload) -> int:
    """Return the floating-point operations of a step."""
    model = ModelConfig(work.width, work.depth, work.heads)
    data = DataConfig(max_len=work.size, vocab_size=work.outputs)
    return cost(RunConfig("lm-grammar", encoding, model=model, data=data)).flops * work.batch


def measure_point(encoding: str, work: Workload) -> dict[str, float]:
    """Measure the seconds of a step here, and the GiB that it takes beyond the process before it."""
    device = torch.device("cpu")
    before = environment.peak_memory_gib(device) or 0.0
    shape = {"d_model": work.width, "num_layers": work.depth, "num_heads": work.heads}
    module = LanguageModel(encoding, vocab_size=work.outputs, max_len=work.size, **shape)
    data = make_tensors(work, 4 * work.batch)
    seconds = min(time_loop(make_step(work, module, data, device), work.steps, device) for _ in range(3))
    return {"seconds": seconds, "gib": (environment.peak_memory_gib(device) or 0.0) - before}


def measure_elsewhere(encoding: str, work: Workload, threads: int | None) -> dict[str, float]:
    """Measure a point in a process of its own, where no other point has taken memory."""
    values = json.dumps([encoding, work.size, work.width, work.batch, threads])
    command = [sys.executable, __file__, "--point", values]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return {**json.loads(answer.stdout), "flops": flops(encoding, work)}


def slowdowns(row: Sequence[dict[str, float]]) -> list[float]:
    """Return for each point its seconds per operation over the least of the points up to it."""
    found, least = [], float("inf")
    for point in row:
        rate = point["seconds"] / point["flops"]
        least = min(least, rate)
        found.append(rate / least)
    return found


def sweep(
    points: Points, works: Iterable[Workload], encodings: Sequence[str], threads: int | None
) -> Iterator[dict[str, float]]:
    """Measure every encoding with every workload, note each point in `points`, and yield it."""
    works = [*works]
    for name in encodings:
        points[name] = []
        for work in works:
            point = measure_elsewhere(name, work, threads)
            points[name].append(point)
            report_progress(f"{name}, length {work.size}, width {work.width}: {point_text(point)}")
            yield point


def point_text(point: dict[str, float]) -> str:
    """Return a point's seconds and memory."""
    return f"{point['seconds']:.3f} s, {point['gib']:.2f} GiB"


def grid(points: Points, columns: Sequence[int], head: str) -> str:
    """Return the table of seconds, their ratio to arithmetic and memory, with a line for each encoding."""
    lines = []
    for name, row in points.items():
        cells = [name]
        for point, slowdown in zip(row, slowdowns(row), strict=True):
            cells.append(point_text(point) + (f" (x{slowdown:.2f})" if slowdown > SLACK else ""))
        lines.append(cells)
    return tabulate(lines, [head, *map(str, columns)], tablefmt="pipe")


def time_suites(
    rows: list[tuple[str, int, float]], folder: Path, rounds: int, plans: Sequence[int], finished: Sequence[int]
) -> Iterator[tuple[str, int, float]]:
    """Time the planning of suites and the recognition of finished ones, note each size in `rows`, and yield it."""

    def median(command: Sequence[str]) -> float:
        return statistics.median(run_pebench(*command) for _ in range(rounds))

    for count in plans:
        suite = folder / f"suite{count}.py"
        suite.write_text(LARGE_SUITE.format(count // 10), encoding="utf-8")
        command = ["run", "--suite", str(suite), "--dry-run", "--out", str(folder / "none")]
        rows.append(("planned", count, median(command)))
        yield rows[-1]
    for count in finished:
        out = folder / f"finished{count}"
        make_finished(out, count)
        command = [*RUNS, "--tier", "smoke", "--seeds", str(count // 2), "--out", str(out)]
        rows.append(("finished, recognised", count, median(command)))
        yield rows[-1]


def draw(by_length: Points, lengths: Sequence[int], path: Path) -> None:
    """Draw seconds and memory against length, with what arithmetic predicts from the shortest."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for name, row in by_length.items():
        measured = lengths[: len(row)]
        (line,) = left.plot(measured, [point["seconds"] for point in row], marker="o", ms=3, lw=1, label=name)
        scale = row[0]["seconds"] / row[0]["flops"]
        left.plot(measured, [scale * point["flops"] for point in row], ls=":", lw=0.8, color=line.get_color())
        right.plot(measured, [point["gib"] for point in row], marker="o", ms=3, lw=1, color=line.get_color())
    for axes, title in ((left, "seconds of a step (dotted: arithmetic)"), (right, "memory, GiB")):
        axes.set(xscale="log", yscale="log", xlabel=f"length ({TOKENS:,} tokens a step)", title=title)
        axes.title.set_fontsize(9)
    left.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def render(measured: Measured, arguments: Sequence[str], options: argparse.Namespace) -> str:
    """Return the page of what has been measured."""
    parts = [
        "# How time and memory grow\n\n"
        f"{circumstances('growth', arguments, torch.device('cpu'), options.threads)}"
        f"A language model of {SMALL.depth} layers, {SMALL.heads} heads; {TOKENS:,} tokens a step. Seconds: the "
        f"fastest of 3 blocks of {SMALL.steps} steps. A factor in brackets: seconds per operation over the least of "
        f"the columns to the left, where it is above {SLACK}.\n"
    ]
    if measured.by_length:
        table = grid(measured.by_length, LENGTHS[:2] if options.quick else LENGTHS, "encoding")
        parts.append(f"## Length (width {SMALL.width})\n\n{table}\n")
        if options.output:
            parts.append(f"![Time and memory against length]({options.output.with_suffix('.svg').name})\n")
    if measured.by_width:
        table = grid(measured.by_width, WIDTHS[:2] if options.quick else WIDTHS, "encoding")
        parts.append(f"## Width (length {SMALL.size})\n\n{table}\n")
    if measured.runs:
        rows = [[what, f"{n:,}", f"{seconds:.2f}", f"{1e3 * seconds / n:.2f}"] for what, n, seconds in measured.runs]
        table = tabulate(rows, ["runs", "count", "s", "ms each"], tablefmt="pipe", disable_numparse=True)
        parts.append(f"## Runs of a suite\n\n{table}\n")
    return "\n".join(parts)


def pages(arguments: Sequence[str], options: argparse.Namespace) -> Iterator[str]:
    """Yield the page after each point, with its picture beside it."""
    lengths, widths, names = (LENGTHS[:2], WIDTHS[:2], ENCODINGS[:2]) if options.quick else (LENGTHS, WIDTHS, ENCODINGS)
    by_length = [replace(SMALL, size=n, batch=TOKENS // n) for n in lengths]
    by_width = [replace(SMALL, width=n, batch=TOKENS // SMALL.size) for n in widths]
    measured = Measured()
    for _ in sweep(measured.by_length, by_length, names, options.threads):
        yield render(measured, arguments, options)
        if options.output:
            draw(measured.by_length, lengths, options.output.with_suffix(".svg"))
    for _ in sweep(measured.by_width, by_width, names, options.threads):
        yield render(measured, arguments, options)
    with tempfile.TemporaryDirectory() as name:
        sizes = (PLANS[:1], (10,)) if options.quick else (PLANS, FINISHED)
        for what, count, seconds in time_suites(measured.runs, Path(name), options.rounds, *sizes):
            report_progress(f"{count:,} runs {what}: {seconds:.2f} s")
            yield render(measured, arguments, options)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Measure how time and memory grow.")
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each plan")
    parser.add_argument("--output", type=Path, help="Markdown file; a picture is put beside it")
    parser.add_argument("--quick", action="store_true", help="small points, to see that it works")
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure one point for another process, or everything."""
    options = parse(arguments)
    if options.point:
        encoding, size, width, batch, threads = options.point
        if threads:
            torch.set_num_threads(threads)
        print(json.dumps(measure_point(encoding, replace(SMALL, size=size, width=width, batch=batch))))
        return 0
    return write_page(pages(arguments, options), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
