"""The values of a suite's fields: their types, lists to choose from, values by task, and dates."""

import itertools
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import UnionType
from typing import Any, get_args, get_origin

from pebench.config import python_value


def is_list(value: Any) -> bool:
    """Return whether a value is a list or another sequence, but not text."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return each combination of the values of some settings, as a mapping.

    Example:
        >>> combinations({"b": [1, 2], "a": ["x"]})
        [{'a': 'x', 'b': 1}, {'a': 'x', 'b': 2}]
    """
    names = sorted(grid)  # so that the order of the settings changes nothing
    lists = [grid[name] for name in names]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*lists)]


def can_go_on(values: Any) -> bool:
    """Return whether a grid has steps by which it can go on: two positive numbers or more."""
    numbers = [python_value(value) for value in values] if is_list(values) else []
    numeric = all(isinstance(number, int | float) and number > 0 for number in numbers)
    return numeric and len(set(numbers)) > 1


def further_values(values: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    """Return the values that follow a grid below and above, the nearest first.

    Each is to the one before as the last two at that end are to each other, to three digits. A grid that cannot go on
    has none.

    Example:
        >>> further_values([1e-3, 2e-3, 4e-3], 2)
        ([0.0005, 0.00025], [0.008, 0.016])
    """
    if not can_go_on(values):
        return [], []
    numbers = sorted({python_value(value) for value in values})
    return _steps(numbers[1], numbers[0], count), _steps(numbers[-2], numbers[-1], count)


def _steps(before: Any, last: Any, count: int) -> list[Any]:
    """Return the numbers that go on from two; whole ones if both are."""
    whole, ratio = isinstance(before, int) and isinstance(last, int), last / before
    exact = [last * ratio**step for step in range(1, count + 1)]
    return [round(number) if whole else float(f"{number:.3g}") for number in exact]


def only_for(tasks: Sequence[str], value: Any) -> Any:
    """Return a value that may be given by task, without the tasks that are not among these."""
    if not isinstance(value, Mapping):
        return value
    return {task: value[task] for task in tasks if task in value}


def settings_for(task: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one task: those for all tasks, and its own of those that are given by task.

    Example:
        >>> settings_for("lm", {"train.clip": 2.0, "train.max_steps": {"lm": 7}, "train.warmup": {"vit": 0.2}})
        {'train.clip': 2.0, 'train.max_steps': 7}
    """
    found = {}
    for name, value in settings.items():
        if not isinstance(value, Mapping):
            found[name] = value
        elif task in value:
            found[name] = value[task]
    return found


def utc(text: str) -> datetime | None:
    """Return a date and time in UTC, which it is taken to be in unless it has a time zone; None for no text.

    Raises:
        ValueError: If the text is no date.
    """
    if not text:
        return None
    when = datetime.fromisoformat(text)
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def type_text(kind: Any) -> str:
    """Return a type's name as the author of a suite thinks of it.

    Example:
        >>> type_text(int | Sequence[int]), type_text(str)
        ('int | list[int]', 'str')
    """
    short = re.sub(r"<class '(\w+)'>|[\w.]+\.", r"\1", str(kind))
    return short.replace("Sequence", "list").replace("Mapping", "dict")  # a text is no list here, and a tuple is one


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value has a type, which is one that the fields of a suite are annotated with.

    Example:
        >>> fits([1, 2], int | Sequence[int]), fits("12", Sequence[int]), fits(True, int), fits(1, float)
        (True, False, False, True)
    """
    whole, parts = get_origin(kind) or kind, get_args(kind)
    if whole is Any:
        return True
    if whole is UnionType:
        return any(fits(value, part) for part in parts)
    if whole is Mapping:
        return isinstance(value, Mapping) and all(
            fits(name, parts[0]) and fits(item, parts[1]) for name, item in value.items()
        )
    # A pair may also be given as a list.
    if whole is tuple:
        return isinstance(value, tuple | list) and len(value) == len(parts) and all(map(fits, value, parts))
    if whole is Sequence:
        return is_list(value) and all(fits(item, parts[0]) for item in value)
    if isinstance(value, bool):  # Python counts it among the integers
        return whole is bool
    return isinstance(value, float | int if whole is float else whole)
