"""Cards: what an encoding declares of itself, read from source files without importing them (or torch)."""

import ast
import functools
import importlib.machinery
import importlib.util
import math
import re
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebench.errors import UserError

DECLARED = (
    "axes", "causal_only", "contextual", "relative", "isotropic", "mirror_blind", "wraps", "beyond", "size", "cite",
)  # fmt: skip
"""Attributes of `pebench.PositionalEncoding` that a card holds, as literals in the body of the class."""

HOOKS = {"embed": "input", "residual": "residual stream", "query_key": "queries, keys", "bias": "logits"}
"""The hooks that a card names if the class overrides them, with what each of them tells."""

OPTION_TYPES = {"bool": bool, "int": int, "float": float, "str": str}
"""What an option may be; None besides, where that is its default."""

ROOT = ("pebench.encodings.base", "PositionalEncoding")


@dataclass(frozen=True)
class EncodingCard:
    """What can be said of an encoding without running it.

    Args:
        name: The name after ``--pe``.
        summary: First line of the class's docstring.
        module: Where it is defined.
        options: Keyword options of its constructor with their defaults.
        meanings: What they are, as the class's docstring says under ``Args:``; not all need be there.
        types: Their types; ``None`` is allowed where it is the default.
        declared: The attributes of `DECLARED`, by name; `pebench.PositionalEncoding` documents them.
        hooks: Those of `HOOKS` that it overrides.
    """

    name: str
    summary: str
    module: str
    options: Mapping[str, Any]
    meanings: Mapping[str, str]
    types: Mapping[str, type]
    declared: Mapping[str, Any]
    hooks: tuple[str, ...]

    def told(self, options: Container[str]) -> str:
        """What some of its options are, in Markdown.

        Args:
            options: Their names; they come in the order of the constructor.
        """
        said = (f"`{option}`: {self.meanings[option]}" for option in self.options if option in options)
        return " ".join(said).replace("``", "`")


class UnreadableError(Exception):
    """A class says something that only importing it can tell."""


def read_card(name: str, module: str, cls: str) -> EncodingCard:
    """The card of a class, from its source and those of the classes it inherits from.

    Args:
        name: Of the encoding.
        module: That the class is defined in, or imported into.
        cls: Name of the class.

    Raises:
        UnreadableError: If it takes an import.
    """
    family = _unique(_family(module, cls))
    bodies = [_assigned(node) for node in family]
    methods = [{item.name: item for item in node.body if isinstance(item, ast.FunctionDef)} for node in family]
    declared = {}
    for attribute in DECLARED:
        value = next((body[attribute] for body in bodies if attribute in body), None)
        declared[attribute] = _literal(value)
    init = next(body["__init__"] for body in methods if "__init__" in body)
    _check_positional(name, [argument.arg for argument in (*init.args.posonlyargs, *init.args.args)][2:])
    pairs = list(zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True))
    if any(default is None for _, default in pairs):
        raise UnreadableError
    options = {argument.arg: _literal(default) for argument, default in pairs}
    texts = {argument.arg: ast.unparse(argument.annotation) for argument, _ in pairs if argument.annotation}
    summary = next((text for node in family[:1] if (text := ast.get_docstring(node))), "")
    hooks = tuple(hook for hook in HOOKS if any(hook in body for body in methods[:-1]))
    types = _types(name, options, texts)
    return EncodingCard(name, _first_line(summary), module, options, _meanings(summary), types, declared, hooks)


def card_of(name: str, cls: Any) -> EncodingCard:
    """The card of a class that is there.

    Args:
        name: Of the encoding.
        cls: The class.

    Raises:
        UserError: If it is no class of an encoding, or has options that a command line cannot give.
    """
    import inspect

    root = next((base for base in getattr(cls, "__mro__", ()) if (base.__module__, base.__name__) == ROOT), None)
    if root is None:
        raise UserError(
            f"encoding {name!r} is {cls!r}, expected a class that inherits from pebench.PositionalEncoding."
        )
    arguments = inspect.signature(cls.__init__).parameters.values()
    positional = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    _check_positional(name, positional[2:])
    keyword = [argument for argument in arguments if argument.kind is argument.KEYWORD_ONLY]
    for argument in keyword:
        if argument.default is argument.empty:
            raise UserError(f"option {argument.name!r} of encoding {name!r} needs a default.")
    options = {argument.name: argument.default for argument in keyword}
    annotated = (argument for argument in keyword if argument.annotation is not argument.empty)
    texts = {argument.name: inspect.formatannotation(argument.annotation) for argument in annotated}
    declared = {attribute: getattr(cls, attribute) for attribute in DECLARED}
    hooks = tuple(hook for hook in HOOKS if getattr(cls, hook) is not getattr(root, hook))
    types = _types(name, options, texts)
    said = inspect.getdoc(cls) or ""
    return EncodingCard(name, _first_line(said), cls.__module__, options, _meanings(said), types, declared, hooks)


def _check_positional(name: str, arguments: list[str]) -> None:
    """Refuse arguments of a constructor, behind self and spec, that are no options."""
    if arguments:
        raise UserError(
            f"option {arguments[0]!r} of encoding {name!r} must be keyword-only: __init__(self, spec, *, "
            f"{arguments[0]}...)."
        )


def _types(name: str, options: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, type]:
    """Types of options, by their annotations, else by their defaults.

    Raises:
        UserError: Where that is none that can be given on a command line.
    """
    found = {}
    for option, default in options.items():
        named = re.findall(r"\b(float|int|str|bool)\b", annotations.get(option, ""))
        kind = OPTION_TYPES[named[0]] if named else type(default)
        fits = default is None or type(default) is kind or (kind is float and type(default) is int)
        if kind not in OPTION_TYPES.values() or not fits:
            raise UserError(
                f"option {option!r} of encoding {name!r} must be a {', '.join(OPTION_TYPES)} or None by annotation and "
                f"default, got {annotations.get(option, 'no annotation')} = {default!r}."
            )
        found[option] = kind
    return found


def _first_line(docstring: str) -> str:
    return next((line.strip().rstrip(".") for line in docstring.splitlines() if line.strip()), "")


def _meanings(docstring: str) -> dict[str, str]:
    r"""What a docstring says of arguments, by name.

    Example:
        >>> _meanings("A cat.\n\nArgs:\n    legs: How many;\n        four.\n    tail: Long.\n\nShape:\n    x: (B,)")
        {'legs': 'How many; four.', 'tail': 'Long.'}
    """
    _, _, below = docstring.partition("\nArgs:\n")
    block = re.split(r"^\S", below, maxsplit=1, flags=re.MULTILINE)[0]
    items = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", block, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in items}


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except ValueError as error:
        raise UnreadableError from error


def _assigned(node: ast.ClassDef) -> dict[str, ast.expr | None]:
    """What the body of a class assigns."""
    found: dict[str, ast.expr | None] = {}
    for item in node.body:
        if isinstance(item, ast.Assign):
            found |= {target.id: item.value for target in item.targets if isinstance(target, ast.Name)}
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value:
            found[item.target.id] = item.value
    return found


def _unique(nodes: Iterator[ast.ClassDef]) -> list[ast.ClassDef]:
    """Each once, where it comes last: as Python resolves attributes, but for odd families."""
    return list(dict.fromkeys(reversed(list(nodes))))[::-1]


def _family(module: str, cls: str, before: float = math.inf) -> Iterator[ast.ClassDef]:
    """The definition of a class and of those it inherits from, down to `ROOT`.

    Raises:
        UnreadableError: If one of them is not to be seen without importing.
    """
    where, node = _definition(module, cls, before)
    yield node
    if (where, cls) == ROOT:
        return
    if not node.bases:
        raise UnreadableError  # no encoding, or a part of one
    for base in node.bases:
        name = ast.unparse(base)
        if name.split(".")[0] == "pebench" or name == ROOT[1]:
            if name.rpartition(".")[2] != ROOT[1]:
                raise UnreadableError
            yield from _family(*ROOT)
        elif isinstance(base, ast.Name):
            yield from _family(where, name, node.lineno)
        else:
            raise UnreadableError


def _definition(module: str, cls: str, before: float = math.inf) -> tuple[str, ast.ClassDef]:
    """Where a class is defined that a module defines or imports from another, and its definition.

    Args:
        module: Its dotted name.
        cls: What the class is called there, by the last to give that name.
        before: A line of the module; what comes later does not count.
    """
    path = find_source(module)
    if path is None:
        raise UnreadableError
    for node in reversed([node for node in parsed(path) if node.lineno < before]):
        if isinstance(node, ast.ClassDef) and node.name == cls:
            return module, node
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if cls == (alias.asname or alias.name):
                    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
                    relative = "." * node.level + (node.module or "")
                    return _definition(_resolve(relative, package), alias.name)
    raise UnreadableError


def _resolve(module: str, package: str) -> str:
    try:
        return importlib.util.resolve_name(module, package)
    except ImportError as error:
        raise UnreadableError from error


@functools.cache
def parsed(path: Path) -> list[ast.stmt]:
    """The statements of a source file."""
    try:
        return ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError) as error:  # importing it will say what is wrong
        raise UnreadableError from error


def find_source(module: str) -> Path | None:
    """The source file of a module, found without importing anything; None if there is none.

    Args:
        module: Its dotted name.
    """
    if module == "pebench" or module.startswith("pebench."):  # wherever that is: we are it
        place = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
        return place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
    origin = getattr(sys.modules.get(module), "__file__", None) or _origin(module)
    return Path(origin) if origin and origin.endswith(".py") else None


def _origin(module: str) -> str | None:
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for number in range(len(rest)):  # find_spec would import the packages on the way
            inside = spec and spec.submodule_search_locations
            name = ".".join([top, *rest[: number + 1]])
            spec = importlib.machinery.PathFinder.find_spec(name, inside) if inside else None
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec else None
