"""Cards: what an encoding declares, read from source files without importing them, or from classes.

Source and class are two front ends, `read_card` and `card_of`: either collects a `Declaration`, and one set of rules
turns that into an `EncodingCard`.
"""

import ast
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from pebench.encodings.sources import ROOT, UnreadableError, assigned_values, class_family, literal, methods
from pebench.errors import UserError
from pebench.formatting import quoted

INHERITED = (
    "axes", "causal_only", "contextual", "relative", "isotropic", "mirror_blind", "wraps", "beyond", "kv_cache",
    "size", "cite",
)  # fmt: skip
"""Attributes of `pebench.PositionalEncoding` that a card holds and subclasses inherit, literals in a class's body."""

OWN: Mapping[str, Any] = {"formula": None, "aliases": (), "mark": None, "paper": None, "paper_size": None}
"""Attributes that a card holds and subclasses do not inherit, with their values where a class declares none."""

HOOKS = {
    "embed": "input", "residual": "residual stream", "query_key": "queries, keys", "bias": "logits", "value": "values",
    "output": "outputs",
}  # fmt: skip
"""Hooks that a card names where a class overrides them, and the part of the model that each changes."""

OPTION_TYPES = {"bool": bool, "int": int, "float": float, "str": str}
"""Types that an option may have; None is allowed besides where it is the default."""

REQUIRED = object()
"""Stands for the default of an option that has none."""


@dataclass(frozen=True)
class EncodingCard:
    """All that is known of an encoding without running it.

    Args:
        name: The name after ``--pe``.
        summary: First line of the class's docstring.
        module: Dotted name of the module that defines the class.
        options: Keyword options of the constructor with their defaults.
        meanings: Descriptions of options, from ``Args:`` in the class's docstring; not all need be there.
        types: Types of the options; None is allowed where it is the default.
        declared: Attributes named in `INHERITED` and `OWN`; `pebench.PositionalEncoding` documents them.
        hooks: Hooks named in `HOOKS` that the class overrides.
    """

    name: str
    summary: str
    module: str
    options: Mapping[str, Any]
    meanings: Mapping[str, str]
    types: Mapping[str, type]
    declared: Mapping[str, Any]
    hooks: tuple[str, ...]

    @property
    def beyond(self) -> str:
        """Its behaviour at positions outside the trained extent; empty where that is as of encodings it changes."""
        return "" if self.declared["wraps"] else str(self.declared["beyond"])

    @property
    def kv_cache(self) -> str:
        """The way a cache of keys and values fares with it in causal text, likewise; empty for images alone, too."""
        return "" if self.declared["wraps"] or 1 not in self.declared["axes"] else str(self.declared["kv_cache"])

    def describe_options(self, options: Container[str]) -> str:
        """Return the descriptions of some options as a line of Markdown.

        Args:
            options: Names of options; the line has them in the order of the constructor.
        """
        described = (f"`{option}`: {self.meanings[option]}" for option in self.options if option in options)
        return " ".join(described).replace("``", "`")


@dataclass(frozen=True)
class Declaration:
    """Declarations of a class, before they are checked.

    Args:
        docstring: The class's docstring, without indentation.
        positional: Positional arguments of the constructor after ``self`` and ``spec``.
        options: Keyword options: name to default, `REQUIRED` where there is none.
        annotations: The options' annotations as text, where they have one.
        declared: Attributes named in `INHERITED` and `OWN`.
        hooks: Hooks named in `HOOKS` that the class overrides.
    """

    docstring: str
    positional: list[str]
    options: dict[str, Any]
    annotations: dict[str, str]
    declared: dict[str, Any]
    hooks: tuple[str, ...]


# Front ends: source files and classes


def read_card(name: str, module: str, cls: str) -> EncodingCard:
    """Return the card of a class from its source and the sources of the classes that it inherits from.

    Args:
        name: The encoding's name.
        module: Dotted name of the module that defines the class, or imports it.
        cls: The class's name.

    Raises:
        UnreadableError: If the source is not enough and the module must be imported.
        UserError: If an option cannot be given on a command line.
    """
    return _make_card(name, module, _declaration_in_source(module, cls))


def card_of(name: str, cls: Any) -> EncodingCard:
    """Return the card of a class that has been imported.

    Args:
        name: The encoding's name.
        cls: The class.

    Raises:
        UserError: If it is not the class of an encoding, or an option cannot be given on a command line.
    """
    root = next((base for base in getattr(cls, "__mro__", ()) if (base.__module__, base.__name__) == ROOT), None)
    if root is None:
        raise UserError(
            f"encoding {name!r} is {quoted(cls)}, expected a class that inherits from pebench.PositionalEncoding."
        )
    return _make_card(name, cls.__module__, _declaration_of_class(cls, root))


def _declaration_in_source(module: str, cls: str) -> Declaration:
    family = class_family(module, cls)
    bodies = [assigned_values(node) for node in family]
    declared = {}
    for attribute in INHERITED:
        # nearest class first, as Python looks attributes up
        value = next((body[attribute] for body in bodies if attribute in body), None)
        declared[attribute] = literal(value)
    for attribute, default in OWN.items():
        # the class's own body alone: an inherited alias or mark would name two encodings
        declared[attribute] = literal(bodies[0][attribute]) if attribute in bodies[0] else default
    defined = [methods(node) for node in family]
    init = next(body["__init__"] for body in defined if "__init__" in body).args
    options = {}
    for argument, default_value in zip(init.kwonlyargs, init.kw_defaults, strict=True):
        options[argument.arg] = REQUIRED if default_value is None else literal(default_value)
    return Declaration(
        docstring=ast.get_docstring(family[0]) or "",
        # without `self` and `spec`
        positional=[argument.arg for argument in (*init.posonlyargs, *init.args)][2:],
        options=options,
        annotations={arg.arg: ast.unparse(arg.annotation) for arg in init.kwonlyargs if arg.annotation},
        declared=declared,
        hooks=tuple(hook for hook in HOOKS if any(hook in body for body in defined[:-1])),  # the last is the root
    )


def _declaration_of_class(cls: Any, root: Any) -> Declaration:
    import inspect  # 0.02 s that reading sources does without

    arguments = inspect.signature(cls.__init__).parameters.values()
    keyword = [argument for argument in arguments if argument.kind is argument.KEYWORD_ONLY]
    positional = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    options, annotations = {}, {}
    for argument in keyword:
        options[argument.name] = REQUIRED if argument.default is argument.empty else argument.default
        if argument.annotation is not argument.empty:
            annotations[argument.name] = inspect.formatannotation(argument.annotation)
    inherited = {attribute: getattr(cls, attribute) for attribute in INHERITED}
    own = {attribute: vars(cls).get(attribute, default) for attribute, default in OWN.items()}
    return Declaration(
        docstring=inspect.getdoc(cls) or "",
        positional=positional[2:],
        options=options,
        annotations=annotations,
        declared=inherited | own,
        hooks=tuple(hook for hook in HOOKS if getattr(cls, hook) is not getattr(root, hook)),
    )


# Rules, the same for both


def _make_card(name: str, module: str, found: Declaration) -> EncodingCard:
    """Check a declaration and return its card.

    Raises:
        UserError: For an option that a command line cannot give.
    """
    for argument in found.positional:
        raise UserError(
            f"option {argument!r} of encoding {name!r} must be keyword-only: __init__(self, spec, *, {argument}...)."
        )
    types = {}
    for option, default in found.options.items():
        if default is REQUIRED:
            raise UserError(f"option {option!r} of encoding {name!r} needs a default.")
        types[option] = _option_type(name, option, default, found.annotations.get(option))
    summary = next((line.strip().rstrip(".") for line in found.docstring.splitlines() if line.strip()), "")
    meanings = _meanings(found.docstring)
    return EncodingCard(name, summary, module, found.options, meanings, types, found.declared, found.hooks)


def _option_type(name: str, option: str, default: Any, annotation: str | None) -> type:
    """Return the type of an option: the one that its annotation names, else its default's."""
    named = re.findall(r"\b(float|int|str|bool)\b", annotation or "")
    kind = OPTION_TYPES[named[0]] if named else type(default)
    # by exact type, as a bool is an int to isinstance
    fits = default is None or type(default) is kind or (kind is float and type(default) is int)
    if kind not in OPTION_TYPES.values() or not fits:
        raise UserError(
            f"option {option!r} of encoding {name!r} must be a {', '.join(OPTION_TYPES)} or None by annotation and "
            f"default, got {annotation or 'no annotation'} = {default!r}."
        )
    return kind


def _meanings(docstring: str) -> dict[str, str]:
    r"""Return the descriptions of arguments in a docstring, by name.

    Example:
        >>> _meanings("A cat.\n\nArgs:\n    legs: How many;\n        four.\n    tail: Long.\n\nShape:\n    x: (B,)")
        {'legs': 'How many; four.', 'tail': 'Long.'}
    """
    _, _, below = docstring.partition("\nArgs:\n")
    # up to the next section, which is the next line that is not indented
    block = re.split(r"^\S", below, maxsplit=1, flags=re.MULTILINE)[0]
    items = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", block, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in items}


__all__ = ["HOOKS", "EncodingCard", "UnreadableError", "card_of", "read_card"]
