"""Suite files: Python files that define ``SUITE``, pebench's own and those of users."""

import functools
import re
import runpy
import traceback
from dataclasses import fields, replace
from pathlib import Path

from pebench.encodings.plugins import add_paths
from pebench.errors import UserError, given_path, unknown_name
from pebench.exits import without_exits
from pebench.formatting import MOST, first_line, quoted
from pebench.runs.suite.declaration import Suite

STRANGER = re.compile(r"^Suite\.__init__\(\) got an unexpected keyword argument '(\w+)'")
"""Python's message on an argument that a suite does not have."""


@functools.cache
def suite_files() -> dict[str, Path]:
    """Return the files of the suites that come with pebench, by the suites' names."""
    return {path.stem: path for path in sorted(shipped("benchmarks").glob("suites/*/*.py"), key=lambda path: path.stem)}


def shipped(name: str) -> Path:
    """Return a file or folder of the repository's top level that comes with pebench, in a wheel or a checkout."""
    package = Path(__file__).parents[2]  # src/pebench: this file lies in runs/suite
    return package / name if (package / name).exists() else package.parents[1] / name


def load_suite(name_or_file: str) -> Suite:
    """Return a suite by its name, or from a file of the user's own, which may import modules beside it.

    Raises:
        UserError: If there is none, or the file does not define one.
    """
    if not isinstance(name_or_file, str):
        name_or_file = str(given_path("suite", name_or_file))
    path = suite_files().get(name_or_file) or Path(name_or_file)
    if not path.is_file():
        if path.suffix == ".py":
            raise UserError(f"expected a suite file, but {quoted(name_or_file)} does not exist.")
        raise unknown_name("suite", name_or_file, suite_files())
    # Its folder is searched for modules, here and in the processes of runs: the file may import encodings that lie
    # there.
    if name_or_file not in suite_files():
        add_paths([str(path.resolve().parent)])
    suite = _run(path)
    if not isinstance(suite, Suite):
        got = f"SUITE is {type(suite).__name__}" if suite is not None else "it defines none"
        raise UserError(f"suite file {path} must define SUITE = pebench.Suite(...), but {got}.")
    # Pages and messages print commands that name the suite: one of the user's own is found by its file alone.
    return suite if name_or_file in suite_files() else replace(suite, file=name_or_file)


def _run(path: Path) -> object:
    """Run a suite file and return its ``SUITE``; None if it defines none.

    Raises:
        UserError: If the file fails, with the line.
    """
    try:
        with without_exits():
            return runpy.run_path(str(path)).get("SUITE")
    except UserError as error:
        raise UserError(f"suite file {path}: {error}") from error
    except (Exception, SystemExit) as error:  # else a file that exits would end this command as a success
        frames = traceback.walk_tb(error.__traceback__)
        # The last line of the file itself, not of pebench's code below it: that is where its author has to look.
        lines = [number for frame, number in frames if frame.f_code.co_filename == str(path)]
        where = f"{path}, line {lines[-1]}," if lines else path
        if isinstance(error, TypeError) and (found := STRANGER.search(str(error))):
            unknown = unknown_name("argument of Suite", found[1], (f.name for f in fields(Suite)))
            raise UserError(f"suite file {where} cannot be read: {unknown}") from error
        raise UserError(
            f"suite file {where} cannot be read: {type(error).__name__}: {first_line(error, MOST)}"
        ) from error
