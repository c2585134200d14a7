"""Errors that are raised on purpose: a user's mistake, a run that diverged, a run that was interrupted."""

import difflib
import os
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pebench.formatting import quoted


class UserError(Exception):
    """A mistake in the request: a name, a value, a file or a data set that does not exist or cannot work.

    The command line prints the message alone, without a traceback, and exits with 2. The message names the expected
    and the given value and the way out.
    """


class DivergedError(Exception):
    """The training loss is no longer a finite number."""


NAN_REFUSED = "`nan` values"
"""Words by which torchmetrics refuses NaN."""


class InterruptedRunError(Exception):
    """The run was asked to stop; it can be resumed."""


UNREADABLE = (SyntaxError, ValueError, TypeError, MemoryError, RecursionError)
"""Exceptions of `ast.literal_eval` for text that is no literal."""


LIBRARIES = ("site-packages", "dist-packages")
"""Folders of installed packages."""


def with_place(text: str, error: BaseException, own: bool = False) -> str:
    """Return a text about an exception, and its file and line: the last ones of a user, else those that raised it.

    Args:
        text: The text.
        error: The exception, as it was caught.
        own: True to name lines of a user's files alone.
    """
    frames = traceback.extract_tb(error.__traceback__)
    found = [frame for frame in frames if not _is_library(frame.filename)] or frames * (not own)
    return f"{text} ({found[-1].filename}:{found[-1].lineno})" if found else text


def _is_library(file: str) -> bool:
    """Return True for a file of pebench, of an installed package or of Python."""
    path = Path(file)
    folders = Path(__file__).parent, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
    return file.startswith("<") or bool({*LIBRARIES} & {*path.parts}) or any(path.is_relative_to(f) for f in folders)


def given_path(name: str, value: Any) -> Path:
    """Return the path that a caller gave as an argument.

    Args:
        name: The argument's name, for the message.
        value: A text or a path.

    Raises:
        UserError: For anything else, and for an empty text.
    """
    if not isinstance(value, str | os.PathLike):
        raise UserError(f"{name} expects a text or a pathlib.Path, got {quoted(value)}.")
    if not str(value):
        raise UserError(f"{name} expects a path, got an empty text.")
    return Path(value)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for a name that does not exist, with the nearest one that does.

    Args:
        kind: The kind of thing that was named, in the singular: ``"task"``.
        name: The given name.
        known: The valid names.
    """
    names = sorted(set(known))
    near = _same_field(name, names) or nearest(name, names)
    hint = f" Did you mean {near!r}?" if near else ""
    return UserError(f"unknown {kind} {quoted(name)}.{hint} Valid: {', '.join(names)}.")


def _same_field(name: str, known: Iterable[str]) -> str | None:
    """Return the dotted name whose last part, or the initials of that, were given in another section or in none."""
    given = name.rpartition(".")[2]
    for other in known:
        field = other.partition(".")[2]
        if field and given in (field, _initials(field)):
            return other
    return None


def _initials(name: str) -> str:
    """Return the usual abbreviation of a setting: ``lr`` for ``learning_rate``."""
    return "".join(word[0] for word in name.split("_")) if "_" in name else name


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the only valid name that begins with a wrong one, or the one that is most like it; None if none is.

    Example:
        >>> nearest("Alibi", ["add", "alibi"]), nearest("plot", ["add", "plot-encoding"])
        ('alibi', 'plot-encoding')
    """
    lower = {other.lower(): other for other in sorted(known, reverse=True)}
    near = [other for other in lower if name and other.startswith(name.lower())]
    if len(near) != 1:
        near = difflib.get_close_matches(name.lower(), sorted(lower), n=1, cutoff=0.6)
    return lower[near[0]] if near else None
