"""Checks of what a data module has read, or describes: a mistake in it is told before anything trains."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from pebench.errors import UserError
from pebench.tasks.base import Task


def check_parts(title: str, found: Mapping[str, Any], needed: Iterable[str], what: str = "tensors") -> None:
    """Refuse tensors, or other values, of which some are lacking.

    Args:
        title: Name of the data in messages.
        found: The values by name.
        needed: The names that must be there.
        what: The kind of values, in the plural.

    Raises:
        UserError: With those that are lacking, and those that are there.
    """
    names = [*needed]
    if lacking := [name for name in names if name not in found]:
        given = ", ".join(map(str, found)) or "none"
        raise UserError(
            f"{title}: read() must return the {what} {', '.join(names)}. It lacks {', '.join(lacking)}. "
            f"It gave: {given}."
        )


def check_numbers(numbers: Tensor, count: int | None, what: str) -> None:
    """Refuse labels or tokens that are no whole numbers from 0 to `count` - 1.

    Args:
        numbers: The labels or tokens.
        count: How many different ones a model has; None accepts any, and 1 any floats, as for a regression.
        what: Their name in messages.

    Raises:
        UserError: With the first that is not.
    """
    if count is None or (count == 1 and numbers.is_floating_point()):
        return
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise UserError(f"{what}: expected whole numbers from 0 to {count - 1}, got a tensor of {numbers.dtype}.")
    if len(odd := ((numbers < 0) | (numbers >= count)).nonzero()):
        place = odd[0].tolist()
        raise UserError(
            f"{what}: expected whole numbers from 0 to {count - 1}, got {numbers[*place]} at {place}: "
            "mend them, or the number of them that the data describe."
        )


def check_classes(task: Task, described: Mapping[str, Any]) -> None:
    """Refuse a task that declares another number of classes than its data describe, which is what a model gets.

    Args:
        task: The task.
        described: Arguments of a model, as the data describe them.

    Raises:
        UserError: With both numbers.
    """
    told = described.get("num_classes")
    if None not in (told, task.num_classes) and told != task.num_classes:
        raise UserError(
            f"the task declares num_classes={task.num_classes}, but its data describe num_classes={told}: "
            "set both to the number of labels."
        )
