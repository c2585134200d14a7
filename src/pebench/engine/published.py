"""Published runs of a suite: which of them a call takes instead of making them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pebench.config import RunConfig
from pebench.engine.execution import Execution
from pebench.runs.published import published_records, shipped_results
from pebench.runs.records import Record
from pebench.runs.suite import Suite


def take_published(
    runs: Sequence[RunConfig], known: Mapping[str, Record], suite: Suite, how: Execution
) -> dict[str, Record]:
    """Return the published records of runs that have none yet, by key; nothing is written.

    They are asked for declared suites, unless a folder is named: whoever names a task, or a suite without a date of
    declaration such as the quickstart, wants to train.

    Args:
        runs: The runs of a stage.
        known: Records that are there already, by key.
        suite: The suite of the runs.
        how: How runs are made, and the folder of published records.

    Raises:
        UserError: If a published record of one of the runs is damaged.
    """
    folder = how.published if isinstance(how.published, Path) else shipped_results()
    if how.published is False or (how.published is True and not suite.declared):
        return {}
    # Records alone are published: weights come only of training.
    left = [c for c in runs if c.key not in known and not (how.keep_weights and c.stage == "test")]
    return {key: record for key, record in published_records(left, folder).items() if _serves(record, how)}


def _serves(record: Record, how: Execution) -> bool:
    """Return True if a record has what was asked for: an outcome that is not to be tried again, and figures."""
    if how.retry_failed and not record.ok:
        return False
    return not how.analyze or record.config.stage != "test" or bool(record.analysis)


def published_text(taken: int, runs: int) -> str:
    """Return a sentence on how many of the runs are published; empty where none is.

    Example:
        >>> published_text(2, 30), published_text(0, 30)
        ('2 of 30 runs are published: taken (--no-published makes them)', '')
    """
    if not taken:
        return ""
    return f"{taken} of {runs} runs {'is' if taken == 1 else 'are'} published: taken (--no-published makes them)"
