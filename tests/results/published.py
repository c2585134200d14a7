"""Published records and their page, read and built once for all tests of a process."""

import functools
from pathlib import Path

from pebench.results.page import Page
from pebench.runs.records import Record, read_records
from pebench.runs.suite import load_suite

RESULTS = Path(__file__).parents[2] / "results"


@functools.cache
def published(name: str = "untuned") -> tuple[Record, ...]:
    """The published records of a suite."""
    return tuple(read_records(RESULTS / name))


@functools.cache
def published_page(name: str = "untuned", of_suite: bool = False) -> Page:
    """Their page, of their suite or of none."""
    return Page.of(published(name), load_suite(name) if of_suite else None)
