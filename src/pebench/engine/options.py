"""Checks of options that say how runs are made, apart from the runs: numbers, and folders to read and to write."""

import math
import numbers
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from pebench.atomic import FULL
from pebench.errors import UserError
from pebench.formatting import quoted
from pebench.runs.records import FILE_NAME

NUMBERS = ("jobs", "threads", "devices", "time_limit")
"""Options that are numbers from 1 on, where they are given."""


def check_numbers(options: Mapping[str, Any], called: Callable[[str], str] = str) -> None:
    """Refuse numbers that are too small, or none.

    Args:
        options: Values by name, others besides.
        called: The name by which a user knows an option.

    Raises:
        UserError: For the first of them.
    """
    for name in NUMBERS:
        value = options.get(name)
        if isinstance(value, bool) or not isinstance(value, numbers.Real | None):
            raise UserError(f"{called(name)} expects a number, got {quoted(value)}.")
        # Asked this way round, NaN is refused too.
        if value is not None and not 1 <= float(value) < math.inf:
            raise UserError(f"{called(name)} must be at least 1, and finite, got {value:g}.")


def check_data_dir(folder: Path | None) -> None:
    """Refuse a folder of data that is none.

    Raises:
        UserError: If there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise UserError(f"--data-dir expects a folder, but {str(folder)!r} is none.")


def check_writable(out: Path) -> None:
    """Refuse an output folder that takes no files, that cannot be made, or that is a single run's, without making it.

    Raises:
        UserError: With the folder or the file that is in the way.
    """
    if (out / FILE_NAME).exists():
        raise UserError(
            f"--out: {str(out)!r} holds a {FILE_NAME} itself, as the folder of a single run does: name another folder."
        )
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable(out, f"{there} is not writable" if there.is_dir() else f"{there} is no folder")


def make_writable(out: Path) -> None:
    """Make an output folder, and write a file in it, which is removed again.

    Raises:
        UserError: If it takes none.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        # Permissions alone do not tell: the superuser has all of them, in /proc too.
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        if error.errno not in FULL:  # the plan, which comes next, says what is free
            raise _unwritable(out, error.strerror or str(error)) from error


def _unwritable(out: Path, why: str) -> UserError:
    return UserError(f"--out: cannot write in {str(out)!r} ({why}). Name a folder that takes files: --out DIR")
