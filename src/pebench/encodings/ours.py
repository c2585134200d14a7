"""Pebench's own encodings: the cards of the files in this folder, and their other names."""

import ast
import functools
import re
from collections.abc import Iterable
from pathlib import Path

from pebench.encodings.cards import EncodingCard, read_card
from pebench.encodings.sources import parse_source
from pebench.errors import UserError, unknown_name


@functools.cache
def encoding_cards() -> dict[str, EncodingCard]:
    """Return the cards of pebench's own encodings by name, in alphabetical order."""
    found = {}
    # parsed, not imported: names must be known without torch; the pattern leaves out __init__.py
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        for node in parse_source(path):
            if isinstance(node, ast.ClassDef) and (name := _registered_name(node)):
                found[name] = read_card(name, f"pebench.encodings.{path.stem}", node.name)
    return dict(sorted(found.items()))


def _registered_name(node: ast.ClassDef) -> str | None:
    """Return the name in a class's ``@register("name")``."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) == "register":
            return str(ast.literal_eval(decorator.args[0]))
    return None


def unknown_encoding(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for a name that does not exist, with pebench's name where the literature has another.

    Args:
        kind: Kind of thing that was named, in the singular: ``"encoding"``.
        name: The name as it was given.
        known: The valid names.
    """
    hint = hint_of_name(name.partition("(")[0])
    return UserError(f"unknown {kind} {name!r}. {hint}") if hint else unknown_name(kind, name, known)


def hint_of_name(name: str) -> str:
    """Return a hint for a name under which the literature knows an encoding, several in one, or a local class.

    Args:
        name: A name without options.

    Example:
        >>> hint_of_name("RoPE-2D")
        "'rope' is what it is called here; see: pebench list encodings"
    """
    if "<locals>" in name:
        return "It was a class inside a function, which cannot be imported: move it to a module's top, or register it."
    if "," in name:
        return f"Expected one name each: {' '.join(f'--pe {part.strip()}' for part in name.split(','))}"
    # aliases are written without case, space and punctuation, as papers agree on none of them
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for ours, card in encoding_cards().items():
        if plain in card.declared["aliases"]:
            return f"{ours!r} is what it is called here; see: pebench list encodings"
    return ""
