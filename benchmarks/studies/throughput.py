"""Time a training step of pebench against a hand-written PyTorch loop of the same model.

Arms take turns on synthetic data, so that a busy machine slows all of them alike:
1. hand-written: a model and a loop that owe nothing to pebench or Lightning (`plain`, `timing`);
2. module in the loop: pebench's module in that loop, which is what the model costs;
3. pebench: the module under the runner's Trainer, callbacks and logger, which adds what Lightning costs;
4. with --tuned, pebench and the loop in 16 bit, compiled and, on CUDA, captured; and the floor: the linear layers'
   matrix products alone;
5. with --peers, other libraries' models of the same sizes (`peers`).

Equal parameter counts and, after copying the weights, equal logits prove first that both models are one.
Augmentation, validation and checkpoints are not timed. Every workload has its first round before any has a second, and
what is known is written after each: --minutes, or Ctrl-C, ends it early without loss. With --output the raw figures
stand beside the page, as JSON. On a machine that does nothing else, run
    python -m benchmarks.studies.throughput --threads 2 --tuned --peers --output results/studies/throughput.md
and, for memory, the same with --memory.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from pebench.benchmarks.studies.arms import arms
from pebench.benchmarks.studies.limits import Limits, measure_limits
from pebench.benchmarks.studies.memory import memory_pages, print_memory
from pebench.benchmarks.studies.pages import Page, circumstances, report_progress, write_page
from pebench.benchmarks.studies.plain import PlainTransformer, disagreement
from pebench.benchmarks.studies.throughput_tables import ARMS, page, raw
from pebench.benchmarks.studies.workloads import WORKLOADS, Workload, make_tensors, random_batch
from pebench.formatting import first_line
from pebench.models.counting import count_flops

CUDA_STEPS = 200
"""Timed steps of a block on a GPU."""
TITLE = "# A training step of pebench and of a hand-written loop\n\n"
QUICK_SIDE = 64
"""Side of the matrices of the device's limits with --quick."""

Measured = dict[Workload, dict[str, list[float]]]
"""Seconds per step by workload, arm and round."""


def measure(works: Sequence[Workload], options: argparse.Namespace) -> Iterator[Measured]:
    """Yield all seconds per step after each round of a workload, until no round or no time is left."""
    until = time.monotonic() + 60 * options.minutes
    blocks = {work: arms(work, options) for work in works}
    measured: Measured = {}
    for number in range(1, options.rounds + 1):
        for work, by_name in blocks.items():
            if time.monotonic() > until:
                report_progress(f"{options.minutes:g} minutes are over: ended before round {number} of {work.name}")
                return
            taken = {}
            for arm, run_block in [*by_name.items()]:
                try:
                    taken[arm] = run_block()
                except Exception as error:
                    if arm in ARMS:
                        raise
                    # A library or a setting that fails is no reason to lose the others.
                    del by_name[arm]
                    measured.get(work, {}).pop(arm, None)
                    report_progress(f"{work.name}, {arm}: left out, {type(error).__name__}: {first_line(error)}")
                    continue
                report_progress(f"{work.name}, round {number} of {options.rounds}, {arm}: {taken[arm]:.4f} s a step")
            for arm, seconds in taken.items():
                measured.setdefault(work, {}).setdefault(arm, []).append(seconds)
            yield measured


def step_flops(work: Workload) -> int:
    """Return the floating-point operations of a step, counted on one example of the hand-written model."""
    model, batch = PlainTransformer(work), random_batch(work, make_tensors(work, work.batch), torch.device("cpu"))
    with sdpa_kernel(SDPBackend.MATH):  # the counter cannot look into a fused kernel
        return work.batch * count_flops(lambda: model.loss(tuple(part[:1] for part in batch)))


def pages(works: Sequence[Workload], options: argparse.Namespace, arguments: Sequence[str]) -> Iterator[Page]:
    """Yield the page and its figures after each round of a workload.

    Raises:
        RuntimeError: If the two models are not one.
    """
    for work in works:
        if not disagreement(work) <= 1e-4:  # nor NaN
            raise RuntimeError(f"{work.name}: the two models do not compute the same")
    device = torch.device(options.device)
    top = TITLE + circumstances("throughput", arguments, device)
    limits = measure_limits(device, QUICK_SIDE if options.quick else None)
    report_progress(device_text(limits))
    flops = {work.name: step_flops(work) for work in works}
    for measured in measure(works, options):
        yield Page(page(top, options.rounds, measured, limits, flops), raw(measured, limits, flops))


def device_text(limits: Limits) -> str:
    """Return a device's limits as a line of progress."""
    rates = f"{limits.wide / 1e9:,.0f} GFLOP/s in 32 bit, {limits.half / 1e9:,.0f} in 16 bit"
    return f"the device: {rates}, {limits.bandwidth / 1e9:,.0f} GB/s"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    names = [work.name for work in WORKLOADS]
    parser = argparse.ArgumentParser(description="Time a training step of pebench against a hand-written loop.")
    parser.add_argument("--workloads", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no round after so many minutes")
    parser.add_argument("--steps", type=int, help="timed steps of a block; by default a few seconds' worth")
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--peers", action="store_true", help="time other libraries too: timm, vit-pytorch, x-transformers, transformers"
    )
    parser.add_argument("--tuned", action="store_true", help="time 16 bit, compilation and, on CUDA, capture too")
    parser.add_argument("--memory", action="store_true", help="measure each arm's memory instead")
    parser.add_argument("--arm", help=argparse.SUPPRESS)  # for a process that measures its memory
    parser.add_argument("--output", type=Path, help="Markdown file for the page; its figures are written beside it")
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
    found: Iterator[Any] = (memory_pages if options.memory else pages)(works, options, arguments)
    return write_page(found, options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
