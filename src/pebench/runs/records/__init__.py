"""Records: one JSON file per run, written whole or not at all, and collections of them. Tables are made from these."""

from pebench.runs.records.collection import COLLECTION, holds_records, read_records, write_jsonl
from pebench.runs.records.merging import merge
from pebench.runs.records.places import without_places
from pebench.runs.records.record import FAILURE, FILE_NAME, PARTS, SCHEMA, WEIGHTS, Record
from pebench.runs.records.run_files import (
    damage,
    find_record,
    lacks_weights,
    read_config,
    read_record,
    record_in,
    write_config,
    write_record,
)

__all__ = [
    "COLLECTION", "FAILURE", "FILE_NAME", "PARTS", "SCHEMA", "WEIGHTS", "Record", "damage", "find_record",
    "holds_records", "lacks_weights", "merge", "read_config", "read_record", "read_records", "record_in",
    "without_places", "write_config", "write_jsonl", "write_record",
]  # fmt: skip
