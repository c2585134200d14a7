"""The encodings of a suite: their names and options, and the tasks that they serve."""

from collections.abc import Iterable, Mapping
from typing import Any

from pebench.encodings.registry import encoding_card, read_encoding
from pebench.errors import UserError
from pebench.tasks import find_task

Encoding = str | tuple[str, Mapping[str, Any]]
"""An encoding as on the command line, ``"rope(theta=500.0)"``, or a pair of its name and options."""


def name_and_options(encoding: Encoding) -> tuple[str, Mapping[str, Any]]:
    """Return an encoding's name and the options that are given with it.

    Raises:
        UserError: If it is text that cannot be parsed.
    """
    return read_encoding(encoding) if isinstance(encoding, str) else encoding


def option_names(encoding: Encoding) -> Iterable[str]:
    """Return the names of the options that an encoding has; none if it does not exist, which other checks report."""
    try:
        name, _ = name_and_options(encoding)
        return encoding_card(name).options
    except UserError:
        return ()


def serves(task: str, encoding: Encoding) -> bool:
    """Return whether an encoding's card declares that it serves a task.

    Raises:
        UserError: If the task or the encoding does not exist.
    """
    name, _ = name_and_options(encoding)
    declared, card = encoding_card(name).declared, find_task(task)
    position_axes = 2 if card.image else 1
    return position_axes in declared["axes"] and (card.causal or not declared["causal_only"])
