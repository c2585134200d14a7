"""Names of encodings, read from the source files without importing them (or torch).

An encoding is a class decorated with ``@register("name")`` in a file of `pebench.encodings`. Listing,
checking a name and checking an option happen here, in milliseconds; `load_encoding` imports the one file.
"""

import ast
import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pebench.errors import UserError, unknown_name

T = TypeVar("T", bound=type)
_loaded: dict[str, type] = {}


@dataclass(frozen=True)
class EncodingCard:
    """What can be said of an encoding without running it.

    Args:
        name: The name after ``--pe``.
        summary: First line of the class's docstring.
        module: Where it is defined.
        options: Keyword options of its constructor with their defaults.
    """

    name: str
    summary: str
    module: str
    options: Mapping[str, Any]


def register(name: str) -> Callable[[T], T]:
    """Class decorator that makes an encoding known as `name`."""

    def decorate(cls: T) -> T:
        _loaded[name] = cls
        cls.name = name  # type: ignore[attr-defined]
        return cls

    return decorate


@functools.cache
def encoding_cards() -> dict[str, EncodingCard]:
    """Every encoding of this package by name, in alphabetical order."""
    found = {}
    for path in sorted((Path(__file__).parent / "encodings").glob("[a-z]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (name := _registered_name(node)):
                summary = (ast.get_docstring(node) or "").split("\n")[0].rstrip(".")
                found[name] = EncodingCard(name, summary, f"pebench.encodings.{path.stem}", _options(node))
    return dict(sorted(found.items()))


def _registered_name(node: ast.ClassDef) -> str | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) == "register":
            return str(ast.literal_eval(decorator.args[0]))
    return None


def _options(node: ast.ClassDef) -> dict[str, Any]:
    """Keyword-only arguments of ``__init__`` with their default values."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            pairs = zip(item.args.kwonlyargs, item.args.kw_defaults, strict=True)
            return {a.arg: ast.literal_eval(default) for a, default in pairs if default is not None}
    return {}


def encoding_card(name: str) -> EncodingCard:
    """The card of the encoding called `name`.

    Raises:
        UserError: Where there is none, with the nearest name.
    """
    if name not in encoding_cards():
        raise unknown_name("encoding", name, encoding_cards())
    return encoding_cards()[name]


def load_encoding(name: str) -> type:
    """The class of the encoding called `name`; imports its file.

    Raises:
        UserError: Where there is none.
    """
    if name not in _loaded:
        importlib.import_module(encoding_card(name).module)
    return _loaded[name]


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the encoding's constructor does not have, or of another type than their default's.

    Raises:
        UserError: With the options that exist.
    """
    known = encoding_card(name).options
    for option in options:
        if option in known:
            expected = float if known[option] is None else type(known[option])
            fits = isinstance(options[option], expected) or (expected is float and type(options[option]) is int)
            if not fits and options[option] != known[option]:
                raise UserError(
                    f"option {option!r} of encoding {name!r} expects {expected.__name__}, got {options[option]!r}."
                )
        else:
            valid = ", ".join(f"{k} (default {v})" for k, v in known.items()) or "it has none"
            raise UserError(f"encoding {name!r} has no option {option!r}. Valid: {valid}.")
