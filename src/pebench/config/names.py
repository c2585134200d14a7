"""Names and options that records, suites and command lines bring. They become folders, cells and commands."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from pebench.errors import UserError, unknown_name
from pebench.formatting import quoted

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names of tasks, encodings and tiers: they name folders, too."""

PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""An object in a module: ``my_module:MyEncoding``."""

LONGEST = 200
"""Most characters of a name."""

MOST_TEXT = 1000
"""Most characters of an option or another text that is a value."""


def check_name(kind: str, name: Any, options: bool = False) -> None:
    """Refuse what is no name: it could lead out of a folder, or be markup where a page shows it.

    Args:
        kind: The kind of thing that is named, for the message: ``task``.
        name: The given name.
        options: Accept options in brackets after it: ``my_module:my_task(length=32)``.

    Raises:
        UserError: With the expected and the given name.

    Example:
        >>> check_name("encoding", "rope"), check_name("task", "mine:task(length=32)", options=True)
        (None, None)
    """
    known = name.partition("(")[0].rstrip() if options and isinstance(name, str) else name
    if is_text(name) and len(known) <= LONGEST and (NAME.fullmatch(known) or PLACE.fullmatch(known)):
        return
    raise UserError(
        f"{kind} expects a name of letters, digits, dots, - and _, or a place as in my_module:MyClass, "
        f"got {quoted(name)}."
    )


def is_text(value: Any) -> bool:
    """Return True for a text on one line that neither moves, colours nor hides what stands beside it."""
    return isinstance(value, str) and len(value) <= MOST_TEXT and value.isprintable()


def check_kind(name: str, value: Any, kind: Any) -> None:
    """Refuse a value of another type than a setting has.

    Args:
        name: The setting's name, for the message.
        value: The given value.
        kind: Its type, as the field of a dataclass is annotated; where it is float, whole numbers are right too.

    Raises:
        UserError: With the expected type and the given value.
    """
    kinds = get_args(kind) or (kind,)
    if isinstance(value, bool):
        fits = bool in kinds
    else:
        fits = isinstance(value, kinds) or (float in kinds and isinstance(value, int))
    if not fits or (isinstance(value, str) and not is_text(value)):
        raise UserError(f"{name} expects {getattr(kind, '__name__', kind)}, got {quoted(value)}.")


def check_options(name: str, options: Any) -> None:
    """Refuse options that are not identifiers with plain values: numbers, texts, and lists and mappings of them.

    Raises:
        UserError: With the option, and the expected and the given value.
    """
    if not isinstance(options, Mapping):
        raise UserError(f"{name} expects names and values, got {quoted(options)}.")
    for option, value in options.items():
        if not (is_text(option) and option.isidentifier()):
            raise UserError(f"{name} expects names of options, got {quoted(option)}.")
        if not _is_plain(value):
            raise UserError(f"{name}.{option} expects a number, a text or a list of these, got {quoted(value)}.")


def _is_plain(value: Any, depth: int = 5) -> bool:
    """Return True for what a literal can write, but texts of one line alone."""
    if isinstance(value, str):
        return is_text(value)
    if isinstance(value, list | tuple | Mapping):
        parts = [*value, *value.values()] if isinstance(value, Mapping) else value
        return depth > 0 and all(_is_plain(part, depth - 1) for part in parts)
    return value is None or isinstance(value, bool | int | float)


def check_kinds(config: Any, sections: Mapping[str, type], known: Mapping[str, Any]) -> None:
    """Refuse a configuration with names that are none, or values of other types than their settings have.

    Args:
        config: The configuration of a run.
        sections: Its sections.
        known: Its settings by dotted name.

    Raises:
        UserError: With the setting, and the expected and the given value.
    """
    check_name("task", config.task, options=True)
    check_name("encoding", config.encoding)
    check_name("tier", config.tier)
    check_options("encoding_args", config.encoding_args)
    for name, kind in (("seed", int), ("regime", str), ("stage", str)):
        check_kind(name, getattr(config, name), kind)
    for section, cls in sections.items():
        values = vars(getattr(config, section))
        for f in fields(cls):
            check_kind(f"{section}.{f.name}", values[f.name], f.type)
    for name in config.selected:
        if not isinstance(name, str) or name not in known:
            raise unknown_name("selected setting", str(name), known)
