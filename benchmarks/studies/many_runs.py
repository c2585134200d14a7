"""Measure how fast many runs train on one device: a process each, or together in one.

    python -m benchmarks.studies.many_runs --device cuda --data-dir DIR --output results/studies/many_runs.md

Arms follow one another; each begins anew, so that what it prints is its own.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from pebench import run_suite
from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page
from pebench.config import RunConfig
from pebench.engine.observer import Observer
from pebench.engine.pace import device_here
from pebench.runs.costs import cost
from pebench.runs.records import Record
from pebench.tasks import configure

HEADERS = ["Runs at a time", "Executor", "Captured", "Steps/s, all together", "TFLOP/s", "First step after, s"]
FULL = {"train.evaluations": 1, "train.precision": "bf16-mixed"}
QUICK = {"train.evaluations": 1, "train.precision": "32-true"}


@dataclass(frozen=True)
class Arm:
    """A way to make runs.

    Args:
        jobs: Runs at a time, and in all.
        executor: Executor that makes them.
        capture: True for captured steps.
    """

    jobs: int
    executor: str
    capture: bool


ARMS = (
    Arm(1, "local", False), Arm(1, "local", True), Arm(12, "local", False), Arm(12, "local", True),
    Arm(4, "together", True), Arm(12, "together", True), Arm(12, "together", False), Arm(24, "together", True),
)  # fmt: skip
"""In order of worth: where time is short, the last are left out."""


class Pace(Observer):
    """Measures the pace of runs from the time at which all of them train until the first one has made its steps.

    Args:
        jobs: Number of runs.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self.since, self.first = jobs, time.perf_counter(), 0.0
        self.steps: dict[str, int] = {}
        self.begun: tuple[float, int] | None = None
        self.over: tuple[float, int] | None = None
        self.failed: list[str] = []

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        """Note the step; once every run is past its tenth, which capture and warm-up do not reach, begin."""
        now = time.perf_counter()
        self.first = self.first or (now - self.since if step else 0.0)
        self.steps[config.key] = step
        all_train = len(self.steps) == self.jobs and min(self.steps.values()) > 10
        self.begun = self.begun or ((now, sum(self.steps.values())) if all_train else None)
        if not self.over and step == config.train.max_steps:
            self.over = now, sum(self.steps.values())

    def finished(self, record: Record) -> None:
        """Note a failure."""
        self.failed += [] if record.ok else [str(record.reason)]

    @property
    def steps_per_second(self) -> float:
        """Steps a second of all runs together.

        Raises:
            RuntimeError: If they failed, or were too short to be measured.
        """
        if self.failed or not self.begun or not self.over or self.over[0] <= self.begun[0]:
            raise RuntimeError(self.failed[0] if self.failed else "the first run had ended when the last one began")
        return (self.over[1] - self.begun[1]) / (self.over[0] - self.begun[0])


def runs_of(arm: Arm, options: argparse.Namespace) -> list[RunConfig]:
    """Return the runs of an arm: one seed each of one encoding, so that all take as long."""
    task, tier, settings = ("lm-grammar", "smoke", QUICK) if options.quick else ("lm-wikitext2", "full", FULL)
    more: dict[str, Any] = {"train.max_steps": options.steps, "train.capture": arm.capture}
    return [configure(task, "add", seed, tier, settings | more) for seed in range(arm.jobs)]


def measure(arm: Arm, options: argparse.Namespace) -> list[str]:
    """Return an arm's row."""
    runs, pace = runs_of(arm, options), Pace(arm.jobs)
    with tempfile.TemporaryDirectory() as out:
        results = run_suite(
            runs, out, executor=arm.executor, jobs=arm.jobs, device=options.device, data_dir=options.data_dir,
            threads=1, published=False, observer=pace,
        )  # fmt: skip
    # As the records have it: some devices capture nothing.
    captured = "yes" if all(record.environment.get("captured") for record in results.records) else "no"
    try:
        steps = pace.steps_per_second
    except RuntimeError as error:
        return [str(arm.jobs), arm.executor, captured, f"not measured: {error}", "-", "-"]
    operations = cost(runs[0]).flops * runs[0].train.batch_size * steps
    return [str(arm.jobs), arm.executor, captured, f"{steps:.0f}", f"{operations / 1e12:.3g}", f"{pace.first:.1f}"]


def pages(arguments: Sequence[str], options: argparse.Namespace) -> Iterator[str]:
    """Yield the page after each arm, until the minutes are over."""
    end, rows = time.perf_counter() + 60 * options.minutes, list[list[str]]()
    for number, arm in enumerate(arm for arm in ARMS if not options.quick or arm.jobs <= 4):
        if time.perf_counter() > end:
            report_progress(f"the minutes are over: {len(ARMS) - number} arms are left out")
            break
        rows.append(measure(arm, options))
        report_progress(" | ".join(rows[-1]))
        yield render(rows, arguments, options)


def render(rows: Sequence[Sequence[str]], arguments: Sequence[str], options: argparse.Namespace) -> str:
    """Return the page."""
    device = torch.device(device_here(options.device))
    what = "a tiny model of `lm-grammar`" if options.quick else "`lm-wikitext2`, tier `full`, in bf16-mixed"
    return (
        "# Many runs on one device\n\n"
        f"{circumstances('many_runs', arguments, device, 1).replace(', 32 bit', '')}"
        f"Runs of {what}, {options.steps} steps each, from the time at which all of them train until one is done. "
        "The first step comes so long after the command, imports and data included.\n\n"
        f"{tabulate(rows, headers=HEADERS, tablefmt='pipe', disable_numparse=True)}\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Measure every arm, and write a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--data-dir", help="folder with WikiText-2, instead of a download")
    parser.add_argument("--steps", type=int, default=400, help="training steps of each run")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no arm after so many minutes")
    parser.add_argument("--quick", action="store_true", help="tiny runs, at most four at a time, on embedded data")
    options = parser.parse_args(arguments)
    return write_page(pages(arguments, options), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
