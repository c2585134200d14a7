"""Suites: declared sets of runs that answer a question, their checks, and the files that they are read from."""

from pebench.runs.suite.declaration import MARGIN, Suite
from pebench.runs.suite.encodings import Encoding, serves
from pebench.runs.suite.files import load_suite, shipped, suite_files

__all__ = ["MARGIN", "Encoding", "Suite", "load_suite", "serves", "shipped", "suite_files"]
