"""What is raised on purpose: a mistake that the user can mend, a run that diverged, a run asked to stop."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what was asked for: a name, a value, a file, a data set that is not there.

    The command line prints the message alone, without a traceback, and exits with 2. The message says what was
    expected, what was got and what to do.
    """


class DivergedError(Exception):
    """The loss is no longer a number."""


class InterruptedRunError(Exception):
    """The run was asked to stop; it can be resumed."""


UNREADABLE = (SyntaxError, ValueError, TypeError, MemoryError, RecursionError)
"""What `ast.literal_eval` raises for texts that are no literals."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does.

    Args:
        kind: What was named, in the singular: ``"task"``.
        name: What was given.
        known: The valid names.
    """
    names = sorted(set(known))
    last = name.rpartition(".")[2]
    alike = (other for other in names if "." in other and last in (leaf := other.partition(".")[2], _initials(leaf)))
    near = next(alike, nearest(name, names))
    hint = f" Did you mean {near!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}.{hint} Valid: {', '.join(names)}.")


def _initials(name: str) -> str:
    """What a setting is called by people in a hurry: ``lr`` for ``learning_rate``."""
    return "".join(word[0] for word in name.split("_")) if "_" in name else name


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The valid name that is most like one that does not exist, if any is.

    Example:
        >>> nearest("Alibi", ["add", "alibi"])
        'alibi'
    """
    lower = {other.lower(): other for other in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.lower(), sorted(lower), n=1, cutoff=0.6)
    return lower[near[0]] if near else None
