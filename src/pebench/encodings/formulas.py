"""Arithmetic in text: the number of an encoding's parameters, as ``"2 * max_len * d_model"``."""

import ast
import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

FUNCTIONS: Mapping[str, Callable[..., Any]] = {"sum": sum, "prod": prod, "min": min, "max": max, "range": range}

OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def evaluate(formula: str, values: Mapping[str, Any]) -> int:
    """Return the value of a formula.

    Args:
        formula: A Python expression of numbers, names, `OPERATORS`, `FUNCTIONS` and generators.
        values: Values of the names.

    Raises:
        ValueError: For anything else in the formula.

    Example:
        >>> evaluate("num_heads * prod(2 * n - 1 for n in extent)", {"num_heads": 4, "extent": (2, 3)})
        60
    """
    return int(_value(ast.parse(formula, mode="eval").body, values))


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    # a whitelist instead of `eval`, as formulas are read from other people's source without running it
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, values) else orelse, values)
        case ast.Subscript(value=sequence, slice=index):
            return _value(sequence, values)[_value(index, values)]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(argument, values) for argument in arguments))
        case ast.GeneratorExp(elt=element, generators=[ast.comprehension(target=ast.Name(id=name)) as loop]):
            # the loop's name hides an outer one, as in Python
            rounds = [{**values, name: item} for item in _value(loop.iter, values)]
            return [_value(element, inner) for inner in rounds if all(_value(test, inner) for test in loop.ifs)]
    raise ValueError(f"a formula of parameters may have numbers, names and arithmetic, got {ast.unparse(node)!r}")
