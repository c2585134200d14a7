"""The tasks: what each one is, where its data comes from, and how long it trains at each tier. No torch here."""

from collections.abc import Mapping
from typing import Any

from pebench.config import RunConfig
from pebench.errors import UserError, unknown_name
from pebench.registry import normal_options
from pebench.settings import override
from pebench.tasks import language, text, vision
from pebench.tasks.base import Budget, Task

__all__ = ["TASKS", "Budget", "Task", "configure", "default_tier", "find_task"]

TASKS: dict[str, Task] = {task.name: task for task in (*vision.TASKS, *text.TASKS, *language.TASKS)}


def find_task(name: str) -> Task:
    """The task called `name`.

    Raises:
        UserError: Where there is none, with the nearest name.
    """
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]


def default_tier(task: Task) -> str:
    """What a user means who names no tier: quick where the task is embedded, else core."""
    return "quick" if task.embedded else "core"


def configure(
    task: str,
    encoding: str,
    seed: int = 0,
    tier: str | None = None,
    settings: Mapping[str, Any] | None = None,
    encoding_args: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The configuration of one run: the task's budget at a tier, with some fields replaced.

    Args:
        task: Name of a task.
        encoding: Name of an encoding.
        seed: From 0.
        tier: One of the task's tiers; ``None`` takes the default.
        settings: Dotted names to values: ``{"train.max_steps": 10}``.
        encoding_args: Options of the encoding.

    Raises:
        UserError: For anything that does not exist or cannot work.
    """
    card = find_task(task)
    tier = tier or default_tier(card)
    if tier not in card.budgets:
        valid = ", ".join(card.budgets)
        raise UserError(f"task {task!r} has no tier {tier!r}. Valid for it: {valid}.")
    encoding_args = normal_options(encoding, encoding_args or {})
    budget = card.budgets[tier]
    config = RunConfig(
        task=task, encoding=encoding, seed=seed, tier=tier, encoding_args=encoding_args,
        model=budget.model, data=budget.data, train=budget.train,
    )  # fmt: skip
    return override(config, settings or {})
