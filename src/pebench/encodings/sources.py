"""Source files of classes, found and parsed without importing them (or torch)."""

import ast
import functools
import importlib.machinery
import importlib.util
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = ("pebench.encodings.base", "PositionalEncoding")
"""Module and name of the class that every encoding inherits from."""


UNTOLD = {"*", "__getattr__", "globals", "vars", "exec", "setattr"}
"""Names in a source file by which a module may have names that do not stand there."""


class UnreadableError(Exception):
    """The source alone is not enough: the module must be imported."""


def find_source(module: str) -> Path | None:
    """Find the source file of a module without importing anything; None if there is none.

    Args:
        module: The module's dotted name.
    """
    if module == "pebench" or module.startswith("pebench."):  # this package itself, wherever it is installed
        place = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
        return place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
    # what is imported already counts, as it may come from where no search would find it
    origin = getattr(sys.modules.get(module), "__file__", None) or _search(module)
    # extension modules and bytecode have nothing to read
    return Path(origin) if origin and origin.endswith(".py") else None


def _search(module: str) -> str | None:
    """Search Python's path for a module, package by package."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for number in range(len(rest)):  # one find_spec of the whole name would import the packages on the way
            inside = spec and spec.submodule_search_locations
            name = ".".join([top, *rest[: number + 1]])
            spec = importlib.machinery.PathFinder.find_spec(name, inside) if inside else None
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec else None


def hidden_file(module: str, place: str) -> str:
    """Return a sentence on a file here that is not imported, as another module has its name; empty if none is.

    Args:
        module: The module's dotted name.
        place: The file that is imported.
    """
    file = Path(f"{module}.py")
    if not file.is_file() or file.resolve() == Path(place).resolve():
        return ""
    return f" The file {file} here is not imported, as another module has its name: give it another name."


@functools.cache
def parse_source(path: Path) -> list[ast.stmt]:
    """Return the statements of a source file.

    Raises:
        UnreadableError: If it cannot be read or parsed; importing it gives the reason.
    """
    try:
        return ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError) as error:
        raise UnreadableError from error


def bound_names(module: str) -> list[str] | None:
    """Return every name that a module may have by its source; None if that cannot be told, or it is imported already.

    These are more than it has, as names inside of functions count too.

    Args:
        module: The module's dotted name.
    """
    path = None if module in sys.modules else find_source(module)
    if path is None:
        return None
    try:
        nodes = [node for statement in parse_source(path) for node in ast.walk(statement)]
    except UnreadableError:
        return None
    found = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.Name):
            found.append(node.id)
    return None if UNTOLD & {*found} else found


def written_names(module: str) -> dict[str, bool | None]:
    """Return the names that a module's source gives to objects of its own: True for a class, False for others.

    What a module imports is not its own, but a package's ``__init__.py`` offers it: None, as its kind is not known.

    Args:
        module: The module's dotted name.
    """
    path = find_source(module)
    try:
        statements = parse_source(path) if path else []
    except UnreadableError:
        return {}
    found = dict[str, bool | None]()
    for node in statements:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = isinstance(node, ast.ClassDef)
        elif isinstance(node, ast.Assign):
            found |= {target.id: False for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = False
        elif isinstance(node, ast.ImportFrom) and path and path.name == "__init__.py":
            found |= {alias.asname or alias.name: None for alias in node.names}
    return {name: is_class for name, is_class in found.items() if not name.startswith("_")}


def class_family(module: str, cls: str) -> list[ast.ClassDef]:
    """Return the definition of a class and of all it inherits from, down to `ROOT`, in the order of attribute lookup.

    Args:
        module: Dotted name of the module that defines the class, or imports it from another.
        cls: The class's name there.

    Raises:
        UnreadableError: If one of them cannot be found without importing.
    """
    found = list(_family(module, cls))
    # a class that is reached twice counts where it comes last, as in Python's own order for all usual families
    return list(dict.fromkeys(reversed(found)))[::-1]


def _family(module: str, cls: str, before: float = math.inf) -> Iterator[ast.ClassDef]:
    where, node = _definition(module, cls, before)
    yield node
    if (where, cls) == ROOT:
        return
    if not node.bases:
        raise UnreadableError  # no encoding, or a mixin
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
    """Return the module that defines a class, and the definition, following imports.

    Args:
        module: Dotted name of the module in which the class has this name.
        cls: The name; where several statements bind it, the last one counts.
        before: A line of the module; later statements do not count, as for ``class Rows(Rows)``.
    """
    path = find_source(module)
    if path is None:
        raise UnreadableError
    # from the end, as the last binding is the one that an importer sees
    for node in reversed([node for node in parse_source(path) if node.lineno < before]):
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


def assigned_values(node: ast.ClassDef) -> dict[str, ast.expr]:
    """Return the expressions that the body of a class assigns, by attribute."""
    found: dict[str, ast.expr] = {}
    for item in node.body:
        if isinstance(item, ast.Assign):
            found |= {target.id: item.value for target in item.targets if isinstance(target, ast.Name)}
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value:
            found[item.target.id] = item.value
    return found


def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Return the methods that the body of a class defines, by name."""
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


def literal(node: ast.expr | None) -> Any:
    """Return the value of a literal.

    Raises:
        UnreadableError: If the expression is none.
    """
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except ValueError as error:
        raise UnreadableError from error
