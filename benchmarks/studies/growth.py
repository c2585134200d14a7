"""How do time and memory grow with length, width and the number of runs? Faster than the arithmetic says?

A step has 4,096 tokens whatever their arrangement, so that length alone makes attention grow. Each point has a
process of its own, which tells its seconds per step and the memory that training took. Arithmetic is the
closed form of `pebench.runs.costs`; a point is worse than it where its seconds per operation are over 1.25 times those
of the row's fastest point that does less. On a machine that does nothing else, run
    python benchmarks/studies/growth.py --threads 2 --output results/growth.md
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tabulate import tabulate
from throughput import Workload, circumstances, make_tensors, time_loop

from engine import LARGE_SUITE, RUNS, make_finished, pebench
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
SLACK = 1.25  # how much worse than arithmetic is worth a word


def flops(encoding: str, work: Workload) -> int:
    """Operations of a step."""
    model = ModelConfig(work.width, work.depth, work.heads)
    data = DataConfig(max_len=work.size, vocab_size=work.outputs)
    return cost(RunConfig("lm-grammar", encoding, model=model, data=data)).flops * work.batch


def point(encoding: str, work: Workload) -> dict[str, float]:
    """Seconds of a step and GiB beyond the process before, measured here."""
    device = torch.device("cpu")
    before = environment.peak_memory_gib(device) or 0.0
    shape = {"d_model": work.width, "num_layers": work.depth, "num_heads": work.heads}
    module = LanguageModel(encoding, vocab_size=work.outputs, max_len=work.size, **shape)
    data = make_tensors(work, 4 * work.batch)
    seconds = min(time_loop(work, module, data, device) for _ in range(3))
    return {"seconds": seconds, "gib": (environment.peak_memory_gib(device) or 0.0) - before}


def measured(encoding: str, work: Workload, threads: int | None) -> dict[str, float]:
    """`point` in a process of its own."""
    values = json.dumps([encoding, work.size, work.width, work.batch, threads])
    told = subprocess.run([sys.executable, __file__, "--point", values], stdout=subprocess.PIPE, check=True)
    return {**json.loads(told.stdout), "flops": flops(encoding, work)}


def worse(row: Sequence[dict[str, float]]) -> list[float]:
    """For each point, its seconds per operation over the least of the points up to it."""
    found, least = [], float("inf")
    for at in row:
        rate = at["seconds"] / at["flops"]
        least = min(least, rate)
        found.append(rate / least)
    return found


def sweep(
    works: Iterable[Workload], encodings: Sequence[str], threads: int | None
) -> dict[str, list[dict[str, float]]]:
    """Every encoding's points."""
    points = {name: [measured(name, work, threads) for work in works] for name in encodings}
    return {name: [{**at, "worse": by} for at, by in zip(row, worse(row), strict=True)] for name, row in points.items()}


def grid(points: dict[str, list[dict[str, float]]], columns: Sequence[int], head: str) -> str:
    """Seconds, their ratio to arithmetic and memory, a line for each encoding."""
    cells = {
        name: [
            f"{at['seconds']:.3f} s, {at['gib']:.2f} GiB" + (f" (x{at['worse']:.2f})" if at["worse"] > SLACK else "")
            for at in row
        ]
        for name, row in points.items()
    }
    return tabulate([[name, *row] for name, row in cells.items()], [head, *map(str, columns)], tablefmt="pipe")


def runs(folder: Path, rounds: int, plans: Sequence[int], finished: Sequence[int]) -> str:
    """Seconds to plan suites and to recognise finished ones, by their size."""
    lines = []
    for count in plans:
        suite = folder / f"suite{count}.py"
        suite.write_text(LARGE_SUITE.format(count // 10), encoding="utf-8")
        command = ["run", "--suite", str(suite), "--dry-run", "--out", str(folder / "none")]
        lines.append(["planned", count, statistics.median(pebench(*command) for _ in range(rounds))])
    for count in finished:
        out = folder / f"finished{count}"
        make_finished(out, count)
        command = [*RUNS, "--tier", "smoke", "--seeds", str(count // 2), "--out", str(out)]
        lines.append(["finished, recognised", count, statistics.median(pebench(*command) for _ in range(rounds))])
    rows = [[what, f"{count:,}", f"{seconds:.2f}", f"{1e3 * seconds / count:.2f}"] for what, count, seconds in lines]
    return tabulate(rows, ["runs", "count", "s", "ms each"], tablefmt="pipe", disable_numparse=True)


def draw(by_length: dict[str, list[dict[str, float]]], lengths: Sequence[int], path: Path) -> None:
    """Seconds and memory against length, with what arithmetic predicts from the shortest."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for name, row in by_length.items():
        (line,) = left.plot(lengths, [at["seconds"] for at in row], marker="o", ms=3, lw=1, label=name)
        scale = row[0]["seconds"] / row[0]["flops"]
        left.plot(lengths, [scale * at["flops"] for at in row], ls=":", lw=0.8, color=line.get_color())
        right.plot(lengths, [at["gib"] for at in row], marker="o", ms=3, lw=1, color=line.get_color())
    for axes, title in ((left, "seconds of a step (dotted: arithmetic)"), (right, "memory, GiB")):
        axes.set(xscale="log", yscale="log", xlabel=f"length ({TOKENS:,} tokens a step)", title=title)
        axes.title.set_fontsize(9)
    left.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure how time and memory grow.")
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each plan")
    parser.add_argument("--output", type=Path, help="Markdown file; a picture is put beside it")
    parser.add_argument("--quick", action="store_true", help="small points, to see that it works")
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def page(arguments: Sequence[str], options: argparse.Namespace) -> str:
    """Everything measured, as Markdown."""
    lengths, widths, names = (LENGTHS[:2], WIDTHS[:2], ENCODINGS[:2]) if options.quick else (LENGTHS, WIDTHS, ENCODINGS)
    by_length = sweep([replace(SMALL, size=n, batch=TOKENS // n) for n in lengths], names, options.threads)
    by_width = sweep([replace(SMALL, width=n, batch=TOKENS // SMALL.size) for n in widths], names, options.threads)
    with tempfile.TemporaryDirectory() as name:
        some = (PLANS[:1], (10,)) if options.quick else (PLANS, FINISHED)
        of_runs = runs(Path(name), options.rounds, *some)
    picture = ""
    if options.output:
        path = options.output.with_suffix(".svg")
        draw(by_length, lengths, path)
        picture = f"![Time and memory against length]({path.name})\n\n"
    return (
        "# How time and memory grow\n\n"
        f"{circumstances('growth.py', arguments, torch.device('cpu'), options.threads)}"
        f"A language model of {SMALL.depth} layers, {SMALL.heads} heads; {TOKENS:,} tokens a step. Seconds: the "
        f"fastest of 3 blocks of {SMALL.steps} steps. A factor in brackets: seconds per operation over the least of "
        f"the columns to the left, where it is above {SLACK}.\n\n"
        f"## Length (width {SMALL.width})\n\n{grid(by_length, lengths, 'encoding')}\n\n{picture}"
        f"## Width (length {SMALL.size})\n\n{grid(by_width, widths, 'encoding')}\n\n"
        f"## Runs of a suite\n\n{of_runs}\n"
    )


def main(arguments: Sequence[str]) -> None:
    """Measure one point for another process, or everything."""
    options = parse(arguments)
    if options.point:
        encoding, size, width, batch, threads = options.point
        if threads:
            torch.set_num_threads(threads)
        print(json.dumps(point(encoding, replace(SMALL, size=size, width=width, batch=batch))))
        return
    text = page(arguments, options)
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
