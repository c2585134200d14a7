"""Break the code on purpose, one place at a time, and count how many faults the tests notice.

First the default tests are run with coverage, which tells those that reach a line: half an hour on two cores. Then
mutants are tried, drawn at random, so that however many they are a fair sample, and one can go on with more:
    python -m benchmarks.mutation --reach
    python -m benchmarks.mutation --minutes 60 --output results/mutation.md
A mutant is noticed if one of the tests that reach its line fails, or does not end.
"""

import argparse
import contextlib
import csv
import hashlib
import io
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from tabulate import tabulate

from pebench.atomic import replacing
from pebench.benchmarks.mutants import Mutant, mutants_of
from pebench.benchmarks.reached import MOST_S, ROOT, SOURCE, Reach, reach
from pebench.benchmarks.studies.pages import report_progress, write_page

LIST = ROOT / "results" / "mutation.csv"
LEFT_OUT = ("results/figures/", "results/document/", "results/writers/", "cli/templates.py")
"""Pictures and words, as folders or files below `SOURCE`."""
NOTHING = "changes nothing"
"""Outcome that a reader writes into the list, where a mutant that no test noticed leaves every result as it was."""
COLUMNS = ["outcome", "file", "code", "old", "new"]
HEAD = """# How many faults the tests notice

A mutant is the package with one place broken on purpose: another operator, constant or condition, a statement left out.
It is noticed if a test that reaches its line fails. Pictures, pages and words are left out. A mutant that leaves every
result as it was can be noticed by nothing: those were found by reading, are listed at the end, and do not count. For
some that were not noticed a test was written, and they were tried again: mutants yet untried may do worse.

"""
IMPORTS = "torch, lightning, torchmetrics, torchvision, numpy, scipy.stats, datasets, matplotlib.pyplot, hypothesis"
"""Packages that a process imports once, before it is forked for each mutant."""


def all_mutants() -> list[Mutant]:
    """Return every mutant of the package, in an order that is random and always the same."""
    found = []
    for path in sorted((ROOT / SOURCE).rglob("*.py")):
        place = path.relative_to(ROOT / SOURCE).as_posix()
        if not place.startswith(LEFT_OUT):
            found += mutants_of(place, path.read_bytes())
    different = {mutant.key: mutant for mutant in found}
    return sorted(different.values(), key=lambda mutant: hashlib.sha256(repr(mutant.key).encode()).digest())


def prepare_worker(folder: str) -> None:
    """Make a copy of the project for this process, which goes there and imports what the tests need."""
    copy = Path(folder) / str(os.getpid())
    copy.mkdir()
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name in files.splitlines():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    sys.path[:0] = [str(copy / "src"), str(copy)]
    exec(f"import {IMPORTS}")


def try_mutant(mutant: Mutant, tests: Sequence[str]) -> str:
    """Try a mutant in this process's copy of the project; return ``noticed``, ``survived``, or ``no test``."""
    if not tests:
        return "no test"
    file = SOURCE / mutant.file
    content = file.read_bytes()
    try:
        file.write_bytes(mutant.applied(content))
        return "noticed" if fails(tests) else "survived"
    finally:
        file.write_bytes(content)


def run_quietly(tests: Sequence[str]) -> int:
    """Run tests in this process without a word, until one fails; return pytest's exit code."""
    import pytest

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pebench", "benchmarks", "tests")]:
        del sys.modules[name]  # the copy's are to be imported
    plain = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", ""]
    return pytest.main([*plain, "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests])


def fails(tests: Sequence[str], most_s: int = 5 * MOST_S) -> bool:
    """Run tests in a fork of this process, which has imported packages already; return True unless all pass in time."""
    if not (child := os.fork()):
        code = 1
        try:
            os.setsid()
            signal.alarm(most_s)
            code = run_quietly(tests)
        finally:
            os._exit(code != 0)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):  # it has left no process
        os.killpg(child, signal.SIGKILL)
    return status != 0


class Outcomes:
    """The list of mutants that were tried, in a file to which each is added once its tests have ended.

    A mutant is known by its line's text: one whose line has changed is another, and what was tried on it is left out.

    Args:
        path: File of comma-separated values.
        mutants: Every mutant of the code as it is.
    """

    def __init__(self, path: Path, mutants: Sequence[Mutant]) -> None:
        self.path, self.by_key = path, {mutant.key: mutant for mutant in mutants}
        self.found: dict[Mutant, str] = {}
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    if mutant := self.by_key.get(tuple(row[name] for name in COLUMNS[1:])):  # type: ignore[call-overload]
                        self.found[mutant] = row["outcome"]

    def add(self, mutant: Mutant, outcome: str) -> None:
        """Add a mutant, or give it another outcome."""
        self.found[mutant] = outcome
        text = io.StringIO()
        rows = sorted((one.key, result) for one, result in self.found.items())
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *((result, *key) for key, result in rows)])
        with replacing(self.path) as file:
            file.write(text.getvalue().encode())


def try_for(minutes: float, waiting: Iterable[Mutant], reached: Reach, outcomes: Outcomes, workers: int) -> None:
    """Try mutants for some minutes, as many at a time as there are workers."""
    end, left, under_way = time.monotonic() + 60 * minutes, iter(waiting), dict[Future[str], Mutant]()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), prepare_worker, (folder,)) as pool,
    ):
        while True:
            while len(under_way) < 2 * workers and time.monotonic() < end and (mutant := next(left, None)):
                under_way[pool.submit(try_mutant, mutant, reached.tests(mutant))] = mutant
            if not under_way:
                return
            for ended in wait(under_way, return_when=FIRST_COMPLETED).done:
                mutant = under_way.pop(ended)
                outcomes.add(mutant, ended.result())
                report_progress(f"{ended.result()}: {mutant.file}:{mutant.line} {mutant.old!r} -> {mutant.new!r}")


def page(outcomes: Outcomes, redo: str) -> str:
    """Return the page: shares by package, and every mutant that no test noticed."""
    by_package: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, outcome in outcomes.found.items():
        for name in (mutant.file.partition("/")[0].removesuffix(".py"), "all"):
            by_package[name][outcome] += 1
    rows = [
        [name, sum(count.values()), share(count), count["survived"], count["no test"], count[NOTHING]]
        for name, count in sorted(by_package.items(), key=lambda pair: (pair[0] == "all", pair[0]))
    ]
    headers = ["Package", "Mutants", "Noticed % [95 % interval]", "Survived", "No test", "Changes nothing"]
    listed: dict[str, list[str]] = {outcome: [] for outcome in ("survived", "no test", NOTHING, "noticed")}
    for mutant, outcome in sorted(outcomes.found.items(), key=lambda pair: pair[0].key):
        listed[outcome].append(f"- `{mutant.file}`: `{in_a_line(mutant.old)}` as `{in_a_line(mutant.new)}`")
    survivors = [*listed["survived"], *(f"{line} (no test)" for line in listed["no test"])]
    tried, every = len(outcomes.found), len(outcomes.by_key)
    drawn = f"{tried:,} of {every:,} mutants have been tried, drawn at random.\n\n"
    table = tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    lines = [HEAD + drawn + table, f"\n## Not noticed\n\nMade by {redo}.\n", *survivors]
    if listed[NOTHING]:
        lines += ["\n## Changes nothing\n", *listed[NOTHING]]
    return "\n".join(lines) + "\n"


def in_a_line(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def share(count: Counter[str]) -> str:
    """Return the share of mutants that were noticed, of those that change something, with Wilson's interval."""
    from scipy.stats import binomtest

    noticed, every = count["noticed"], sum(count.values()) - count[NOTHING]
    if not every:
        return ""
    low, high = binomtest(noticed, every).proportion_ci(method="wilson")
    return f"{100 * noticed / every:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure which test reaches which line, or try mutants and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "runs" / "mutation", help="where it keeps what tests reach"
    )
    parser.add_argument("--reach", nargs="*", metavar="TESTS", help="run all tests, or these, with coverage, first")
    parser.add_argument("--minutes", type=float, default=0.0, help="time for mutants")
    parser.add_argument("--again", action="store_true", help="try again those that were not noticed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--output", type=Path, help="write the page to this file, too")
    options = parser.parse_args(arguments)
    if options.reach is not None:
        reach(options.folder, options.reach)
        return 0
    outcomes = Outcomes(LIST, all_mutants())
    unnoticed = [mutant for mutant, outcome in outcomes.found.items() if outcome in ("survived", "no test")]
    new = (mutant for mutant in outcomes.by_key.values() if mutant not in outcomes.found)
    if options.minutes:
        waiting = unnoticed if options.again else new
        try_for(options.minutes, waiting, Reach(options.folder), outcomes, options.workers)
    return write_page([page(outcomes, f"`python -m benchmarks.mutation --output {options.output}`")], options.output)


if __name__ == "__main__":
    raise SystemExit(main())
