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
        types: Their types; ``None`` is allowed where it is the default.
    """

    name: str
    summary: str
    module: str
    options: Mapping[str, Any]
    types: Mapping[str, type]


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
                found[name] = EncodingCard(name, summary, f"pebench.encodings.{path.stem}", *_options(node))
    return dict(sorted(found.items()))


def _registered_name(node: ast.ClassDef) -> str | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) == "register":
            return str(ast.literal_eval(decorator.args[0]))
    return None


def _options(node: ast.ClassDef) -> tuple[dict[str, Any], dict[str, type]]:
    """Keyword-only arguments of ``__init__``: their default values, and their types."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            pairs = list(zip(item.args.kwonlyargs, item.args.kw_defaults, strict=True))
            defaults = {a.arg: ast.literal_eval(default) for a, default in pairs if default is not None}
            return defaults, {a.arg: _TYPES[ast.unparse(a.annotation).split(" ")[0]] for a, _ in pairs if a.annotation}
    return {}, {}


_TYPES = {"int": int, "float": float, "str": str, "bool": bool}


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


def parse_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """Take apart a name with options, as one encoding's option names another.

    Args:
        text: ``"rope"``, or ``"rope(theta=500.0)"``.

    Returns:
        The name, and options in their normal form.

    Raises:
        UserError: If it cannot be read, or names what does not exist.

    Example:
        >>> parse_encoding("rope(theta=500)")
        ('rope', {'theta': 500.0})
    """
    name, bracket, rest = text.partition("(")
    if not bracket:
        encoding_card(name)
        return name, {}
    try:
        call = ast.parse(f"_({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise SyntaxError
        options = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords if word.arg}
    except (SyntaxError, ValueError):
        raise UserError(f"expected an encoding as in rope or rope(theta=500.0), got {text!r}.") from None
    return name, normal_options(name, options)


def normal_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an encoding in one form, so that the same run has the same name.

    Args:
        name: Of the encoding.
        options: Keyword options of its constructor.

    Returns:
        The options that differ from their defaults, whole numbers made floats where floats are meant.

    Raises:
        UserError: For an option that it does not have, or of the wrong type.

    Example:
        >>> normal_options("rope", {"theta": 10}), normal_options("add", {"ratio": 1})
        ({'theta': 10.0}, {})
    """
    card, normal = encoding_card(name), {}
    for option, value in options.items():
        if option not in card.options:
            raise unknown_name(f"option of encoding {name!r}:", option, card.options or ["(it has none)"])
        kind, default = card.types[option], card.options[option]
        if kind is float and type(value) is int:
            value = float(value)
        if value != default and type(value) is not kind:
            raise UserError(f"option {option!r} of encoding {name!r} expects {kind.__name__}, got {value!r}.")
        if value != default:
            normal[option] = value
    return normal
