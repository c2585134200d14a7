"""The observer: what executors report to while runs are made."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pebench.config import RunConfig
from pebench.runs.records import Record


@dataclass(frozen=True)
class Stage:
    """A set of runs that are made together: those that select settings, or those that are tested.

    Args:
        runs: Every run of the stage, finished ones too.
        todo: The runs that are left to be made.
        failed: Number of runs that failed earlier and are not tried again.
        title: Name of the stage, ``selecting train.clip`` or ``testing``; empty where nothing is selected.
        varied: Dotted names of the settings in which runs of one encoding and seed differ.
        known: The records that are there already, by key; also of failed runs that are tried again.
    """

    runs: Sequence[RunConfig]
    todo: Sequence[RunConfig]
    failed: int = 0
    title: str = ""
    varied: Collection[str] = ()
    known: Mapping[str, Record] = field(default_factory=dict)


class Observer:
    """Follows the runs of a suite. Every method does nothing; a subclass overrides those that it needs.

    The methods are called in this order, for each stage: `planned`, then, if runs are left, `started`, any number of
    `note`, `progress` and `finished`, and `ended`, also after an error or Ctrl-C. All calls come from the thread that
    called `pebench.run_suite`.
    """

    def loading(self) -> AbstractContextManager[object]:
        """Return a context for the imports and checks before runs start, in which Ctrl-C has nothing to save."""
        return nullcontext()

    def planned(self, stage: Stage) -> None:
        """Called with the runs of a stage, before any of them starts."""

    def started(self) -> None:
        """Called when the runs of the stage begin."""

    def note(self, message: str) -> None:
        """Called with a message that is not about one run, such as that data is being prepared."""

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        """Called now and then for each run in progress.

        Args:
            config: The run's configuration.
            step: Optimizer steps that are done.
            metrics: The latest metrics by name, such as ``val/loss``; empty before the first validation.
        """

    def finished(self, record: Record) -> None:
        """Called with the record of each run that has ended; `Record.ok` is False for one that failed."""

    def ended(self) -> None:
        """Called when no run of the stage is going on any more."""
