"""Time a training step of pebench against a hand-written PyTorch loop of the same model.

Arms take turns on synthetic data, so that a busy machine slows all of them alike:
1. hand-written: a model and a loop that owe nothing to pebench or Lightning (`plain`, `timing`);
2. module in the loop: pebench's module in that loop, which is what the model costs;
3. pebench: the module under the runner's Trainer, callbacks and logger, which adds what Lightning costs;
4. with --tuned, pebench in 16 bit, and compiled too, and the floor: the linear layers' matrix products alone;
5. with --peers, other libraries' models of the same sizes (`peers`).

Equal parameter counts and, after copying the weights, equal logits prove first that both models are one.
Augmentation, validation and checkpoints are not timed. On a machine that does nothing else, run
    python -m benchmarks.studies.throughput --threads 2 --tuned --peers --output results/studies/throughput.md
and, for memory, the same with --memory.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset, TensorDataset

from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page
from pebench.benchmarks.studies.peers import PACKAGES, PEERS
from pebench.benchmarks.studies.plain import PlainTransformer, disagreement, make_module
from pebench.benchmarks.studies.timing import WARM_UP, time_loop, time_pebench, time_products
from pebench.benchmarks.studies.workloads import WORKLOADS, Workload, make_tensors
from pebench.data.batches import Windows
from pebench.training import environment

CUDA_STEPS = 200  # timed steps of a block on a GPU
ARMS = ("hand-written", "module in the loop", "pebench")
TUNED: dict[str, dict[str, Any]] = {
    "pebench, compiled": {"compile": True},
    "pebench, bf16": {"precision": "bf16-mixed"},
    "pebench, bf16, compiled": {"precision": "bf16-mixed", "compile": True},
}
PRODUCTS = {"products, 32 bit": torch.float32, "products, 16 bit": torch.bfloat16}
MEMORY_STEPS = 2  # timed steps of a process that measures its memory

Seconds = dict[str, list[float]]
"""Seconds per step of every arm, by round."""


def make_arm(work: Workload, name: str, device: torch.device) -> Callable[[], float]:
    """Return a function that runs a block of an arm and returns its seconds per step."""
    if name in PRODUCTS:
        return lambda: time_products(work, PRODUCTS[name], device)
    tensors = make_tensors(work, min(45_000, work.batch * max(64, 2 * work.steps)))  # CIFAR-10 has 45,000
    if name == ARMS[2] or name in TUNED:
        data: Dataset[Any] = Windows(tensors[0], work.size, 1) if work.kind == "lm" else TensorDataset(*tensors)
        settings, module = TUNED.get(name, {}), make_module(work)
        if settings.get("compile"):
            module.trunk.compile()  # as the runner does
        return lambda: time_pebench(work, module, data, device, settings.get("precision", "32-true"))
    make = {ARMS[0]: PlainTransformer, ARMS[1]: make_module, **PEERS[work.kind]}[name]
    on_device, model = tuple(tensor.to(device) for tensor in tensors), make(work).to(device)
    return lambda: time_loop(work, model, on_device, device)


def arms(work: Workload, options: argparse.Namespace) -> dict[str, Callable[[], float]]:
    """Return every arm that the options select, by name, without peers that are not installed."""
    names = [*ARMS]
    if options.tuned:
        names += [*TUNED, *PRODUCTS]
    if options.peers:
        names += PEERS[work.kind]
    found: dict[str, Callable[[], float]] = {}
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            found[name] = make_arm(work, name, torch.device(options.device))
    return found


def measure(work: Workload, options: argparse.Namespace) -> Iterator[Seconds]:
    """Yield the seconds per step of every arm after each round."""
    blocks = arms(work, options)
    seconds: Seconds = {arm: [] for arm in blocks}
    for number in range(1, options.rounds + 1):
        for arm, run_block in blocks.items():
            seconds[arm].append(run_block())
            report_progress(f"{work.name}, round {number} of {options.rounds}, {arm}: {seconds[arm][-1]:.4f} s a step")
        yield seconds


def time_tables(work: Workload, options: argparse.Namespace) -> Iterator[list[list[str]]]:
    """Yield a workload's lines of every table of times, after each round."""
    for seconds in measure(work, options):
        yield [
            [row(work, seconds)], peer_rows(work, seconds), tuned_rows(work, seconds), floor_rows(work, seconds),
        ]  # fmt: skip


def memory_tables(work: Workload, options: argparse.Namespace, arguments: Sequence[str]) -> Iterator[list[list[str]]]:
    """Yield a workload's lines of the table of memory, after each arm: what it takes beyond its process before it."""
    lines: list[str] = []
    for name in arms(work, options):
        if name in PRODUCTS:
            continue
        command = [sys.executable, __file__, *arguments, "--arm", name, "--workloads", work.name]
        gib = float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        lines.append(f"| {work.name} | {name} | {gib:.2f} |")
        report_progress(lines[-1])
        yield [lines]


def print_memory(work: Workload, options: argparse.Namespace) -> None:
    """Print the one figure of a process that `memory_tables` starts."""
    device = torch.device(options.device)
    with contextlib.suppress(ModuleNotFoundError):  # what a library's import takes is not the model's
        make_arm(replace(work, depth=1, width=32 * work.heads, steps=1, batch=2), options.arm, torch.device("cpu"))
    before = environment.peak_memory_gib(device) or 0.0
    make_arm(replace(work, steps=MEMORY_STEPS), options.arm, device)()
    print((environment.peak_memory_gib(device) or 0.0) - before)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the median of the ratios within each round, with the smallest and the largest."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def row(work: Workload, seconds: Seconds) -> str:
    """Return a workload's line of the first table."""
    cells = [work.name, str(work.steps), *(f"{statistics.median(seconds[arm]):.4f}" for arm in ARMS)]
    cells += [ratio(seconds[arm], seconds[ARMS[0]]) for arm in ARMS[1:]]
    return f"| {' | '.join(cells)} |"


def peers_of(work: Workload, seconds: Seconds) -> list[str]:
    """Return the names of the peers that were timed."""
    return [arm for arm in seconds if arm in PEERS[work.kind]]


def fastest_peer(work: Workload, seconds: Seconds) -> str | None:
    """Return the name of the fastest peer, or None where none was timed."""
    return min(peers_of(work, seconds), key=lambda name: statistics.median(seconds[name]), default=None)


def peer_rows(work: Workload, seconds: Seconds) -> list[str]:
    """Return a line of the second table for every peer."""
    names = peers_of(work, seconds)
    return [f"| {work.name} | {name} | {ratio(seconds[name], seconds[ARMS[2]])} |" for name in names]


def tuned_rows(work: Workload, seconds: Seconds) -> list[str]:
    """Return a line of the third table for each of pebench's settings, beside the fastest of the peers."""
    fastest = fastest_peer(work, seconds)
    rows = []
    for name in [arm for arm in seconds if arm in TUNED]:
        cells = [work.name, name, f"{statistics.median(seconds[name]):.4f}", ratio(seconds[ARMS[2]], seconds[name])]
        cells += [fastest or "none installed", ratio(seconds[fastest], seconds[name]) if fastest else "-"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def floor_rows(work: Workload, seconds: Seconds) -> list[str]:
    """Return the workload's line of the fourth table, if matrix products were timed."""
    if not all(name in seconds for name in PRODUCTS):
        return []
    fastest = fastest_peer(work, seconds)
    wide, half = (seconds[name] for name in PRODUCTS)
    cells = [work.name, *(f"{statistics.median(some):.4f}" for some in (wide, half)), ratio(half, wide)]
    cells += [ratio(wide, seconds[ARMS[2]]), ratio(seconds[fastest], wide) if fastest else "-"]
    return [f"| {' | '.join(cells)} |"]


def heading(arguments: Sequence[str], rounds: int, device: torch.device) -> str:
    """Return the text above the first table, and the table's head."""
    columns = ["workload", "steps", *(f"{arm}, s" for arm in ARMS), *(f"{arm} / hand-written" for arm in ARMS[1:])]
    return (
        "# A training step of pebench and of a hand-written loop\n\n"
        f"{circumstances('throughput', arguments, device)}"
        f"{rounds} rounds in which the arms take turns. Seconds per step: median over the rounds. "
        "Ratios: median over the rounds (smallest to largest), each within its round.\n\n"
        f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    )


def peer_heading() -> str:
    """Return the text above the rows of peers, with their versions, and the table's head."""
    versions = []
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return (
        f"The same sizes in other libraries ({', '.join(versions) or 'none installed'}), their defaults but for "
        "dropout (none), in the hand-written loop; seconds over those of pebench:\n\n"
        "| workload | model | model / pebench |\n|---|---|---|"
    )


TUNED_HEADING = (
    "pebench's other settings: 16-bit matrix products with 32-bit weights, and compiled; how many times as fast as "
    "its own default, and as the fastest peer by its defaults:\n\n"
    "| workload | settings | s | pebench / this | fastest peer | fastest peer / this |\n|---|---|---|---|---|---|"
)
FLOOR_HEADING = (
    "The floor: the matrix products of the blocks' linear layers alone, forward and backward, without attention and "
    "all else. No setting of a width makes a step faster than its products; 16 bit helps where its products take less "
    "than those of 32 bit:\n\n"
    "| workload | 32 bit, s | 16 bit, s | 16 bit / 32 bit | 32 bit / pebench | fastest peer / 32 bit |\n"
    "|---|---|---|---|---|---|"
)
MEMORY_TITLE = "# Memory of a training step of pebench and of others\n\n"
MEMORY_HEADING = (
    "Memory that training takes beyond the process and its imports, in GiB, each in a process of its own, "
    f"{WARM_UP + MEMORY_STEPS} steps:\n\n| workload | model | GiB |\n|---|---|---|"
)


def pages(works: Sequence[Workload], options: argparse.Namespace, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the page after each round of a workload, or each arm's memory.

    Raises:
        RuntimeError: If the two models are not one.
    """
    device = torch.device(options.device)
    heads = [heading(arguments, options.rounds, device), peer_heading(), TUNED_HEADING, FLOOR_HEADING]
    if options.memory:
        heads = [f"{MEMORY_TITLE}{circumstances('throughput', arguments, device)}{MEMORY_HEADING}"]
    finished: list[list[list[str]]] = []  # workloads, tables, lines
    for work in works:
        if not disagreement(work) <= 1e-4:  # nor NaN
            raise RuntimeError(f"{work.name}: the two models do not compute the same")
        latest = memory_tables(work, options, arguments) if options.memory else time_tables(work, options)
        tables: list[list[str]] = []
        for tables in latest:
            yield render(heads, [*finished, tables])
        finished.append(tables)


def render(heads: Sequence[str], workloads: Sequence[Sequence[Sequence[str]]]) -> str:
    """Return the page: each table that has lines, with the lines of every workload below its head."""
    parts = []
    for head, by_workload in zip(heads, zip(*workloads, strict=True), strict=True):
        lines = [line for lines in by_workload for line in lines]
        if lines:
            parts.append("\n".join([head, *lines]))
    return "\n\n".join(parts) + "\n"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    names = [work.name for work in WORKLOADS]
    parser = argparse.ArgumentParser(description="Time a training step of pebench against a hand-written loop.")
    parser.add_argument("--workloads", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="timed steps of a block; by default a few seconds' worth")
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--peers", action="store_true", help="time other libraries too: timm, vit-pytorch, x-transformers, transformers"
    )
    parser.add_argument("--tuned", action="store_true", help="time pebench in 16 bit and compiled too")
    parser.add_argument("--memory", action="store_true", help="measure each arm's memory instead")
    parser.add_argument("--arm", help=argparse.SUPPRESS)  # for a process that measures its memory
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it works")
    return parser.parse_args(arguments)


def resized(work: Workload, options: argparse.Namespace) -> Workload:
    """Return a workload with as many steps as the options ask for, and tiny with --quick."""
    work = replace(work, steps=options.steps or (work.steps if options.device == "cpu" else CUDA_STEPS))
    return replace(work, depth=1, width=16, heads=2, batch=4, size=8, steps=2) if options.quick else work


def main(arguments: Sequence[str]) -> int:
    """Check that the models are one, time the arms, and write the tables."""
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    works = [resized(work, options) for work in WORKLOADS if work.name in options.workloads]
    if options.arm:
        print_memory(works[0], options)
        return 0
    return write_page(pages(works, options, arguments), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
