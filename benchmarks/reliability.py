"""Inject the failures that pebench is built to survive, and write how often each was injected and what was lost.

Every kind is a row of tests/reliability/failures.py and is injected by tests, all of which run here, also those of the
slow groups; those of Ray and SLURM are skipped where these are not installed. It takes half an hour on two cores:
    python -m benchmarks.reliability --output results/reliability.md
An earlier run's results are read again by --junit FILE, without running anything.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tabulate import tabulate

from pebench.benchmarks.studies.pages import write_page

ROOT = Path(__file__).parents[1]
HEAD = """# What was injected, and what was lost

Each row is a kind of failure that was brought about on purpose, by tests that anyone can run. An injection is one case
of a test: a process that is killed at one moment, a file with one bit flipped. It is survived if the test finds what
it should: every run there, none twice, none changed, the message and the exit code that are documented.

"""


def failures() -> dict[str, Any]:
    """Return the kinds of failure by name, with the tests that inject each; they are no part of the package."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from tests.reliability.failures import FAILURES

    return dict(FAILURES)


@dataclass(frozen=True)
class Case:
    """One case of a test, as it ended.

    Args:
        injections: Number of failures that it injected.
        outcome: ``survived``, ``lost`` or ``skipped``.
    """

    injections: int
    outcome: str


def read_cases(path: Path) -> dict[str, list[Case]]:
    """Return the cases in a JUnit file, by their test's file and function, without parameters."""
    found: dict[str, list[Case]] = {}
    for element in ElementTree.parse(path).iter("testcase"):
        place, name = element.attrib["classname"], element.attrib["name"].partition("[")[0]
        counted = element.find("properties/property[@name='injections']")
        lost = element.find("failure") is not None or element.find("error") is not None
        outcome = "lost" if lost else "skipped" if element.find("skipped") is not None else "survived"
        case = Case(int(counted.attrib["value"]) if counted is not None else 1, outcome)
        found.setdefault(f"{place}.{name}", []).append(case)
    return found


def case_name(test: str) -> str:
    """Return the name by which JUnit files have a test: ``tests.engine.test_it.test_so`` of ``file::test_so``."""
    return "tests." + test.replace(".py", "").replace("/", ".").replace("::", ".")


def page(cases: Mapping[str, Sequence[Case]], redo: str) -> str:
    """Return the page, in Markdown."""
    rows, total = [], 0
    for name, failure in failures().items():
        found = [case for test in failure.tests for case in cases.get(case_name(test), ())]
        injected = sum(case.injections for case in found if case.outcome != "skipped")
        lost = sum(case.outcome == "lost" for case in found)
        skipped = sum(case.outcome == "skipped" for case in found)
        verdict = f"**{lost} not survived**" if lost else "nothing" if injected else "not measured"
        verdict += f"; {skipped} not measured" if skipped and injected else ""
        rows.append([name, failure.injected, failure.expected, injected, verdict])
        total += injected
    lost_kinds = sum("not survived" in str(row[4]) for row in rows)
    summary = f"{total:,} injections of {len(rows)} kinds; in {lost_kinds or 'none'} of these was anything lost.\n\n"
    headers = ["", "Injected", "Expected", "Times", "Lost"]
    return HEAD + summary + tabulate(rows, headers, tablefmt="github") + f"\n\nMade by {redo}.\n"


def run_tests(junit: Path) -> None:
    """Run every test that injects a failure, and write their outcomes to a JUnit file."""
    tests = sorted({f"tests/{test}" for failure in failures().values() for test in failure.tests})
    words = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", f"--junitxml={junit}"]
    words += ["-m", "not browser and not gpu", *tests]
    subprocess.run(words, cwd=ROOT, check=False)  # what fails is on the page


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, or read an earlier run of them, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--output", type=Path, help="write the page to this file, too")
    parser.add_argument("--junit", type=Path, help="JUnit file of an earlier run")
    options = parser.parse_args(arguments)
    redo = f"`python -m benchmarks.reliability --output {options.output}`"
    with tempfile.TemporaryDirectory() as folder:
        junit = options.junit or Path(folder) / "junit.xml"
        if not options.junit:
            run_tests(junit)
        return write_page([page(read_cases(junit), redo)], options.output)


if __name__ == "__main__":
    raise SystemExit(main())
