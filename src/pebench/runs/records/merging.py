"""Records of several machines as one collection."""

from collections.abc import Iterable, Sequence
from typing import Any

from pebench.runs.records.record import Record


def merge(collections: Iterable[Sequence[Record]]) -> tuple[list[Record], list[tuple[Record, Record]]]:
    """Merge records of several machines into one collection that has each run once.

    A run that finished anywhere counts as finished. If all its records are failures, one that diverged counts, as that
    is a property of the run. Otherwise the first record of a run is kept.

    Args:
        collections: Collections as `read_records` returns them; earlier ones take precedence.

    Returns:
        The records in a fixed order, and pairs that contradict each other: kept, and left out.
    """
    kept: dict[tuple[str, str], Record] = {}
    conflicts = []
    for records in collections:
        for record in records:
            known = kept.setdefault(record.identity, record)
            if (record.ok, record.diverged) > (known.ok, known.diverged):
                kept[record.identity] = record
            # Both have finished. Durations and devices may differ between two attempts; outcome and data may not.
            elif record.ok and (record.metrics, record.dataset) != (known.metrics, known.dataset):
                conflicts.append((known, record))
    return sorted(kept.values(), key=_order), conflicts


def _order(record: Record) -> tuple[Any, ...]:
    config = record.config
    return config.task, config.encoding, config.seed, config.key, record.protocol
