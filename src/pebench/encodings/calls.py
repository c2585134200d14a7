"""Names with options as the command line and tables write them: ``rope(theta=500.0)``."""

import ast
from typing import Any

from pebench.errors import UNREADABLE, UserError


def read_call(text: str, expected: str) -> tuple[str, dict[str, Any]]:
    """Split a name with options, such as ``rope(theta=500.0)``, into the name and its options.

    Args:
        text: A name, alone or with options in parentheses, as Python writes them; words need no quotes.
        expected: What was expected, for the message.

    Raises:
        UserError: If it cannot be read.

    Example:
        >>> read_call("concat (table=learned, d_p=8)", "an encoding")
        ('concat', {'table': 'learned', 'd_p': 8})
    """
    name, bracket, rest = text.partition("(")
    name = name.rstrip()
    if not bracket:
        return name, {}
    source = f"_({rest}"
    try:
        call = ast.parse(source, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise SyntaxError
        options = {word.arg: _read_value(word.value, source) for word in call.keywords if word.arg}
        if len(options) < len(call.keywords):  # one is given twice, or is **something
            raise SyntaxError
    except UNREADABLE:
        raise UserError(
            f"expected {expected}, values as Python writes them (5, True, 'learned', None), got {text!r}."
        ) from None
    return name, options


def _read_value(node: ast.expr, source: str) -> Any:
    try:
        return ast.literal_eval(node)
    except UNREADABLE:  # a word without quotes
        return ast.get_source_segment(source, node)
