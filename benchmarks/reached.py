"""Which tests reach a line of the package: the default tests are run once, with coverage."""

import itertools
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from pebench.benchmarks.mutants import Mutant

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/pebench")
MOST_S = 30
"""Time of the tests that a mutant is given, in seconds as they took without it."""
COVERAGE = """[run]
source_pkgs = pebench
context = ${PYTEST_CURRENT_TEST}
patch = subprocess, _exit
parallel = true
core = ctrace
data_file = %s/coverage
"""


def reach(folder: Path, tests: Sequence[str] = ()) -> None:
    """Run tests with coverage; leave in a folder which test reaches which line, and how long each takes.

    Args:
        folder: The folder.
        tests: Files of tests, to what is known of others; by default all of the default run, and nothing else is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "coveragerc"
    settings.write_text(COVERAGE % folder.resolve())
    words = ["-n", "auto", "--dist", "worksteal", "--cov", "--cov-context=test", f"--cov-config={settings}"]
    words += ["--cov-report=", f"--junitxml={folder}/{time.time_ns()}.xml", "-p", "no:cacheprovider"]
    words += ["--cov-append", *tests] if tests else []
    for earlier in () if tests else folder.glob("*.xml"):  # which may know tests that are gone
        earlier.unlink()
    subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False)  # a failing test reaches lines, too
    combine = ["-m", "coverage", "combine", "--append", f"--rcfile={settings}"]  # what tests' processes have left
    subprocess.run([sys.executable, *combine], cwd=ROOT, check=False)


def seconds_of_tests(folder: Path) -> dict[str, float]:
    """Return how long each test takes, by its name as pytest takes it."""
    found = {}
    files = sorted(folder.glob("*.xml"))  # of several calls, the last one last
    for case in itertools.chain.from_iterable(ElementTree.parse(file).iter("testcase") for file in files):
        module = case.attrib["classname"].replace(".", "/")
        if (ROOT / f"{module}.py").exists() and case.find("skipped") is None:
            found[f"{module}.py::{case.attrib['name']}"] = float(case.attrib["time"])
    return found


class Reach:
    """Which tests reach a line.

    Args:
        folder: Folder that `reach` has filled.
    """

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(folder / "coverage"))
        self.data.read()
        self.seconds = seconds_of_tests(folder)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant's line, then the others of their files, until they take `MOST_S`.

        Tests of one file may share what the first of them has computed, so that no other reaches the line. Those come
        first that are named after the mutant's file, then those of its package; of each the fastest.
        """
        by_line = self.data.contexts_by_lineno(str(ROOT / SOURCE / mutant.file))
        names = self.names(by_line.get(mutant.line, []) or by_line.get(mutant.statement, []))
        if not names and mutant.statement in by_line:  # it runs when the file is imported
            names = self.names(itertools.chain.from_iterable(by_line.values())) or self.beside(mutant.file)
        files = {name.partition("::")[0] for name in names}
        nearby = {name for name in self.seconds if name.partition("::")[0] in files}
        stem, package = Path(mutant.file).stem, mutant.file.partition("/")[0]

        def rank(name: str) -> tuple[object, ...]:
            file = name.partition("::")[0]
            return name not in names, stem not in file, f"/{package}/" not in file, self.seconds[name], name

        chosen, total = [], 0.0
        for name in sorted(nearby, key=rank):
            if total + self.seconds[name] <= MOST_S:
                total += self.seconds[name]
                chosen.append(name)
        return chosen

    def beside(self, file: str) -> set[str]:
        """Return the tests of a file's package: a file that only declares has no function which a test could reach."""
        return {name for name in self.seconds if name.startswith(f"tests/{file.partition('/')[0]}/")}

    def names(self, contexts: Iterable[str]) -> set[str]:
        """Return the tests that contexts of coverage name: ``test|run``, or ``test (call)`` in processes of a test."""
        return {part.partition(" (")[0] for context in contexts for part in context.split("|")} & self.seconds.keys()
