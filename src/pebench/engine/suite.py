"""The public `Suite`: a declared set of runs that can execute itself."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from pebench.runs import suite as declared

if TYPE_CHECKING:
    from pebench.engine.execution import RunOptions
    from pebench.results.frame import Results


class Suite(declared.Suite):
    """Tasks x encodings x seeds, and the question that they answer; its arguments are those of its base class."""

    def run(self, out: Path | str = "runs", **options: Unpack["RunOptions"]) -> "Results":
        """Execute the runs of the suite that are left, and return the results of all; see `pebench.run_suite`.

        Args:
            out: Output folder of the records.
            **options: Keyword arguments of `pebench.run_suite`: ``executor``, ``jobs``, ``device`` and others.
        """
        from pebench.engine.run import run_suite  # it loads the executors, which a declaration does not need

        return run_suite(self, out, **options)


def load_suite(name_or_file: str) -> Suite:
    """Return a suite by its name, or the one that a file defines as ``SUITE``.

    Args:
        name_or_file: Name of one of pebench's suites, or a Python file.

    Raises:
        UserError: If there is none, or its file cannot be read.
    """
    found = declared.load_suite(name_or_file)
    # A file may have imported the class that only declares, from where earlier versions had it.
    return found if isinstance(found, Suite) else Suite(**vars(found))
