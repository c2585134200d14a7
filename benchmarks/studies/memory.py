"""The memory of a training step of each arm of the study of throughput, each in a process of its own."""

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from pebench.benchmarks.studies.arms import DTYPES, arms, make_arm
from pebench.benchmarks.studies.pages import circumstances, report_progress
from pebench.benchmarks.studies.timing import WARM_UP
from pebench.benchmarks.studies.workloads import Workload
from pebench.training import environment

STEPS = 2
"""Timed steps of a process that measures its memory."""
TITLE = "# Memory of a training step of pebench and of others\n\n"
HEADING = (
    "Memory that training takes beyond the process and its imports, in GiB, each in a process of its own, "
    f"{WARM_UP + STEPS} steps:\n\n| workload | model | GiB |\n|---|---|---|"
)


def memory_pages(works: Sequence[Workload], options: argparse.Namespace, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the page after each arm: what it takes beyond its process before it."""
    top = f"{TITLE}{circumstances('throughput', arguments, torch.device(options.device))}{HEADING}"
    lines: list[str] = []
    for work in works:
        for name in arms(work, options):
            if name in DTYPES:
                continue
            lines.append(f"| {work.name} | {name} | {memory_of(work, name, arguments):.2f} |")
            report_progress(lines[-1])
            yield "\n".join([top, *lines]) + "\n"


def memory_of(work: Workload, arm: str, arguments: Sequence[str]) -> float:
    """Return the memory of an arm in GiB, measured by a process of its own."""
    study = [sys.executable, "-m", "pebench.benchmarks.studies.throughput"]
    command = [*study, *arguments, "--arm", arm, "--workloads", work.name]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def print_memory(work: Workload, options: argparse.Namespace) -> None:
    """Print the one figure of a process that `memory_of` starts."""
    device = torch.device(options.device)
    with contextlib.suppress(ModuleNotFoundError):  # what a library's import takes is not the model's
        make_arm(replace(work, depth=1, width=32 * work.heads, steps=1, batch=2), options.arm, torch.device("cpu"))
    before = environment.peak_memory_gib(device) or 0.0
    make_arm(replace(work, steps=STEPS), options.arm, device)()
    after = environment.peak_memory_gib(device) or 0.0
    print(max(0.0, after - before))  # Linux sums its counters of pages with an error of some
