"""Imported once by the process that runs are forked from, so that each of them starts at once."""

import contextlib

with contextlib.suppress(Exception):  # whatever is wrong, the run itself will say
    import pebench.runner  # noqa: F401
