"""``pebench`` alone: the first commands of someone who has just installed it."""

import argparse
import sys

FIRST_STEPS = """\
pebench compares positional encodings for transformers.

pebench run --suite quickstart
    five encodings on three small tasks: a table in minutes
pebench list encodings
    all that can be compared; also: list tasks, list suites
pebench new encoding my_encoding
    a file for an encoding of your own, with its test
pebench doctor
    what this machine can run, and how long it takes

Everything else: pebench --help
"""


def start_command(options: argparse.Namespace) -> int:
    """Print what to do first."""
    sys.stdout.write(FIRST_STEPS)
    return 0
