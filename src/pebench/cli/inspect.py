"""The verbs that look at runs: status, show and compare."""

import argparse
import sys
from pathlib import Path

from pebench.cli.report import import_tasks
from pebench.errors import UserError
from pebench.formatting import folded, printable

MOST_NAMED = 8
"""Number of runs that an ambiguous name lists."""


def status_command(options: argparse.Namespace) -> int:
    """Print how far the runs of an output folder are."""
    from pebench.runs.status import status

    sys.stdout.write(folded(printable(status(options.out))))
    return 0


def show_command(options: argparse.Namespace) -> int:
    """Print everything that is recorded about some runs."""
    from pebench.results.compare import describe

    sys.stdout.write(folded(printable("\n".join(describe(find_run(name, options.out)) for name in options.runs))))
    return 0


def find_run(name: str, out: Path) -> Path:
    """Return the folder of a run.

    Args:
        name: The folder itself, the beginning of the run's key, or a part of its path, with names as in tables or as
            folders have them: ``rope/seed0``, ``my_module:Mine``.
        out: The output folder to look in.

    Raises:
        UserError: If there is no such run, or more than one.
    """
    if Path(name).exists():
        return Path(name)
    runs = sorted(out.glob("*/*/*"))
    # The key is what follows the last dash of a run's folder: seed0-<key>, select-seed0-<key>.
    found = [path for path in runs if path.name.rpartition("-")[2].startswith(name)]
    part = name.replace(":", ".")  # as in `RunConfig.directory`
    # First from the beginning of a folder's name on: seed1 is not found in another encoding's name.
    found = found or [path for path in runs if f"/{part}" in f"/{path.relative_to(out).as_posix()}"]
    # Without the key, in whose middle short names would be found by chance.
    found = found or [path for path in runs if part in path.relative_to(out).as_posix().rpartition("-")[0]]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"expected a run's folder or key, but no run under {str(out)!r} matches {name!r}.")
    some = "".join(f"\n  {path}" for path in found[:MOST_NAMED])
    more = f"\n  and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise UserError(f"{len(found)} runs match {name!r}; name the folder of one, or several:{some}{more}")


def compare_command(options: argparse.Namespace) -> int:
    """Print what differs between two sets of records."""
    from pebench.results.compare import compare
    from pebench.runs.records import read_records

    import_tasks(options.tasks)
    names = str(options.a), str(options.b)
    sys.stdout.write(folded(printable(compare(read_records(options.a), read_records(options.b), names))))
    return 0
