"""Faults of one place each in a Python file: another operator, constant or condition, a statement that is left out."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type, str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC: dict[type, str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*", ast.Pow: "*",
    ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
ENTRY = {"TYPE_CHECKING", "__name__"}
"""Names in conditions that no test decides."""


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Args:
        file: Place of the file in its package.
        line: Line at which the change begins, from 1.
        statement: First line of its statement.
        start: First byte of the file that is replaced.
        end: First byte after it.
        new: Text that replaces it.
        old: Text that is replaced.
        code: The line at which the change begins.
    """

    file: str
    line: int
    statement: int
    start: int
    end: int
    new: str
    old: str
    code: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """File and texts, by which a mutant is known wherever its line is moved."""
        return self.file, self.code, self.old, self.new

    def applied(self, content: bytes) -> bytes:
        """Return the file's content with the fault."""
        return content[: self.start] + self.new.encode() + content[self.end :]


def mutants_of(file: str, content: bytes) -> list[Mutant]:
    """Return every fault that can be made in a file, in its order.

    Texts, annotations and decorators stay as they are, as does what is raised: a message is words.

    Args:
        file: Place of the file in its package.
        content: Its content.
    """
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def text(node: ast.AST) -> str:
        return content[slice(*place(node))].decode()

    tree, lines = ast.parse(content), content.decode().splitlines()
    begins: dict[int, int] = {}
    for statement in ast.walk(tree):  # what is inside comes later
        if isinstance(statement, ast.stmt):
            begins |= dict.fromkeys(range(statement.lineno, (statement.end_lineno or 0) + 1), statement.lineno)
    found = []
    for node, new in faults(tree, text):
        code = lines[node.lineno - 1].strip()
        found.append(Mutant(file, node.lineno, begins[node.lineno], *place(node), new, text(node), code))
    return found


def faults(tree: ast.AST, text: Callable[[ast.AST], str]) -> Iterator[tuple[Any, str]]:
    """Yield nodes, each with the text that is to replace it.

    Args:
        tree: A file.
        text: Returns the text of a node.
    """
    for node in nodes(tree):
        if isinstance(node, ast.stmt):
            yield from statement_faults(node, text)
        elif isinstance(node, ast.IfExp):
            yield node.test, f"(not ({text(node.test)}))"
        elif isinstance(node, ast.expr) and (new := expression_fault(node, text)):
            yield node, new


def expression_fault(node: ast.expr, text: Callable[[ast.AST], str]) -> str:
    """Return what is to replace an expression, or nothing."""
    match node:
        case ast.Compare(left, [op], [right]):
            return f"({text(left)}) {COMPARISONS[type(op)]} ({text(right)})"
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC and not (is_text(left) or is_text(right)):
            return f"(({text(left)}) {ARITHMETIC[type(op)]} ({text(right)}))"
        case ast.BoolOp(op, values):
            other = " or " if isinstance(op, ast.And) else " and "
            return f"({other.join(f'({text(value)})' for value in values)})"
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return f"({text(operand)})"
        case ast.Constant(bool(value)):
            return str(not value)
        case ast.Constant(int(value) | float(value)):
            return str(value + 1)
    return ""


def statement_faults(node: ast.stmt, text: Callable[[ast.AST], str]) -> Iterator[tuple[Any, str]]:
    """Yield a part of a statement, or all of it, with the text that is to replace it."""
    match node:
        case ast.If(test) | ast.While(test) if not names(test) & ENTRY:
            yield test, f"(not ({text(test)}))"
        case ast.Return(value) if value and not is_constant(value, None, False):  # None is as good as False
            yield value, "None"
        case ast.Expr(ast.Call()) | ast.Raise():
            yield node, "pass"
        case ast.Continue():
            yield node, "break"
        case ast.Break():
            yield node, "continue"


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes at which faults are made."""
    yield tree
    children: list[ast.AST]
    match tree:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return
        case ast.AnnAssign(target=target, value=value):
            children = [child for child in (target, value) if child]
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            children = [*args.defaults, *filter(None, args.kw_defaults), *body]
        case ast.ClassDef(body=body):
            children = list(body)
        case _:
            children = list(ast.iter_child_nodes(tree))
    for child in children:
        yield from nodes(child)


def is_constant(node: ast.expr, *values: object) -> bool:
    """Return True for one of some constants."""
    return isinstance(node, ast.Constant) and any(node.value is value for value in values)


def is_text(node: ast.expr) -> bool:
    """Return True for a text, of which paths are made by ``/`` and messages by ``%``."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def names(tree: ast.AST) -> set[str]:
    """Return the names in an expression."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
