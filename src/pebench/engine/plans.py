"""The plan of a call: of a declared suite, of the runs that a command line asks for, or of exact configurations."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pebench.config import REFERENCE_ENCODING, RunConfig
from pebench.errors import UserError
from pebench.formatting import quoted
from pebench.runs.plan import Plan, unique_runs
from pebench.runs.records import Record
from pebench.runs.suite import Suite, load_suite

UNDECLARED = "command line"
"""Name of a suite that no file declares."""


class FixedPlan(Plan):
    """Exactly the runs of some configurations, whatever their seeds; nothing is selected."""

    @staticmethod
    def of(configs: Sequence[RunConfig], reference: str = REFERENCE_ENCODING) -> "FixedPlan":
        """Return the plan of some configurations, whose results are compared to the row called `reference`."""
        tasks = list(dict.fromkeys(config.task for config in configs))
        return FixedPlan(Suite(UNDECLARED, "", tasks, reference=reference), configs)

    def testing(self, records: Mapping[str, Record]) -> list[RunConfig]:
        """Return the runs, each once."""
        return unique_runs(self.kinds)


def make_plan(suite: Suite | Plan | str | Path | Sequence[RunConfig]) -> Plan:
    """Return the plan of a suite.

    Args:
        suite: A suite, its name or file, its plan, or the configurations of exact runs.

    Raises:
        UserError: For everything that does not exist or cannot work, in one message.
    """
    if isinstance(suite, Plan):
        return suite
    if isinstance(suite, str | Path):
        suite = load_suite(str(suite))
    if isinstance(suite, Suite):
        return Plan(suite, suite.kinds())
    if (
        isinstance(suite, Sequence)
        and not isinstance(suite, str)
        and all(isinstance(config, RunConfig) for config in suite)
    ):
        return FixedPlan.of(suite)
    raise UserError(f"suite expects a Suite, its name or file, or a list of configurations, got {quoted(suite)}.")


def plain(seeds: Any) -> Any:
    """Return seeds as Python's own numbers, where they are numpy's; what is none as it is, for the suite to refuse."""
    if isinstance(seeds, Iterable) and not isinstance(seeds, str | Mapping | range):
        return [plain(seed) for seed in seeds]
    return seeds if isinstance(seeds, bool) or not hasattr(seeds, "__index__") else operator.index(seeds)


def listed(given: Any) -> Any:
    """Return one name, or several, as a list; what is neither as it is, for the suite to refuse."""
    if isinstance(given, str):
        return [given]
    return list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else given
