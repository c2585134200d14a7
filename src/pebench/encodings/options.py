"""Options of encodings and tasks: written after a name as in ``rope(theta=500.0)``, and brought into one form."""

import ast
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

from pebench.errors import UNREADABLE, UserError, unknown_name
from pebench.formatting import quoted

ENCODING = "an encoding as in rope, rope(theta=500.0) or concat(table=learned)"
"""A description of a name with options, for messages."""
WORD = re.compile(r"=\s*([\w./@-]+)(?=\s*[,)])")
"""A value without quotes."""
UNQUOTED = re.compile(r"(\w+)\s*=([^'\"=,()]+)(?=[,)])")
"""An option, and whatever stands for its value without quotes."""


def split_options(text: str, expected: str = ENCODING) -> tuple[str, dict[str, Any]]:
    """Split a name with options into the name and the options as they are written.

    Args:
        text: ``"rope"``, ``"rope(theta=500.0)"``, or a table's label: ``"concat (table=learned)"``.
        expected: A description of such a name, for the message.

    Raises:
        UserError: If the text has another form.

    Example:
        >>> split_options("concat (table=learned, d_p=8)")
        ('concat', {'table': 'learned', 'd_p': 8})
        >>> split_options("texts(hub=owner/name, revision=4f2a01, max_len=8)")
        ('texts', {'hub': 'owner/name', 'revision': '4f2a01', 'max_len': 8})
    """
    name, bracket, rest = text.partition("(")
    name = name.rstrip()
    if not bracket:
        return name, {}
    source = f"_({rest}"
    try:
        source, call = _parse(source)
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise SyntaxError
        options = {word.arg: _read_value(source, word.value) for word in call.keywords if word.arg}
        if len(options) < len(call.keywords):  # one is given twice, or is **something
            raise SyntaxError
    except UNREADABLE:
        raise UserError(
            f"expected {expected}, values as Python writes them (5, True, 'learned', None), got {quoted(text)}."
            f"{_hint(text)}"
        ) from None
    return name, options


def _hint(text: str) -> str:
    """Return a sentence on what is usually wrong with options that cannot be read; empty if it is something else."""
    if not text.rstrip().endswith(")"):
        return " The bracket at the end is missing."
    for option, value in UNQUOTED.findall(text):
        if "#" in value or not _is_python(value):
            return f" A text needs quotes, unless it is one word: {option}={value.strip()!r}."
    return ""


def _parse(source: str) -> tuple[str, ast.expr]:
    """Parse options as those of a call in Python; words that are none, such as the commit 4f2a01, get quotes."""
    try:
        return source, ast.parse(source, mode="eval").body
    except SyntaxError:
        source = WORD.sub(lambda found: found[0] if _is_python(found[1]) else f"={found[1]!r}", source)
        return source, ast.parse(source, mode="eval").body


def _is_python(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _read_value(source: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except UNREADABLE:  # a word without quotes
        return ast.get_source_segment(source, node)


def normalise(
    whose: str, defaults: Mapping[str, Any], types: Mapping[str, type], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options that differ from their defaults, with whole numbers made floats where floats are meant.

    Equal runs then have equal names and keys.

    Args:
        whose: The encoding or task that has them, for messages.
        defaults: Its options with their defaults.
        types: The type of each.
        options: Options as they were given.

    Raises:
        UserError: For an option that it does not have, of the wrong type, or not finite.
    """
    normal = {}
    for option, value in options.items():
        if option not in defaults:
            raise unknown_name(f"option of {whose}:", option, defaults or ["(it has none)"])
        kind, default = types[option], defaults[option]
        if kind is float and type(value) is int:
            # a larger whole number overflows; as infinity it is refused below, with a message
            value = float(value) if abs(value) <= sys.float_info.max else math.inf
        # dropped, so that naming a default makes no other run; True is equal to 1
        if value == default and isinstance(value, bool) == isinstance(default, bool):
            continue
        # by exact type, as True is an int to isinstance
        if type(value) is not kind:
            raise UserError(f"option {option!r} of {whose} expects {kind.__name__}, got {quoted(value)}.")
        if isinstance(value, float) and not math.isfinite(value):  # JSON, and so a record, cannot hold it
            raise UserError(f"option {option!r} of {whose} must be finite, got {quoted(value)}.")
        normal[option] = value
    return normal
