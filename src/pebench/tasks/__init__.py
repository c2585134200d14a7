"""The tasks: what each one is, where its data comes from, and how long it trains at each tier. No torch here."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pebench.config import SECTIONS, RunConfig, override, setting_names, typed
from pebench.encodings.registry import normal_options
from pebench.errors import UserError, unknown_name
from pebench.tasks import language, text, vision
from pebench.tasks.base import ROUNDING, Budget, Task

__all__ = [
    "ROUNDING",
    "TASKS",
    "Budget",
    "Task",
    "configure",
    "default_tier",
    "find_task",
    "metric_text",
    "reconfigure",
]

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


def reconfigure(values: Mapping[str, Any]) -> RunConfig:
    """The configuration that `RunConfig.to_dict` wrote, checked as `configure` does: a hand may have changed it.

    Args:
        values: Plain JSON values.

    Raises:
        UserError: For anything that is missing, does not exist or cannot work.
    """
    kinds: dict[str, Any] = {f.name: f.type for f in fields(RunConfig)}
    for part in (*SECTIONS, "encoding_args"):
        del kinds[part]
    given, parts, settings = dict[str, Any](), dict[str, Mapping[str, Any]](), dict[str, Any]()
    for name, value in values.items():
        if name in kinds:
            given[name] = typed(name, value, kinds[name])
        elif name not in SECTIONS and name != "encoding_args":
            raise unknown_name("part of a configuration", name, [*kinds, *SECTIONS, "encoding_args"])
        elif isinstance(value, Mapping):
            parts[name] = value
        else:
            raise UserError(f"{name} expects a mapping, got {value!r}.")
    if missing := [name for name in ("task", "encoding", *SECTIONS) if name not in values]:
        raise UserError(f"{missing[0]} is missing.")
    names = given.pop("task"), given.pop("encoding"), given.pop("seed", 0), given.pop("tier", "core")
    config = configure(*names, encoding_args=parts.get("encoding_args"))
    for part, kind in SECTIONS.items():
        usual = vars(getattr(config, part))
        asked = vars(kind()) | parts[part]  # what an older pebench did not know is as it was then
        settings |= {f"{part}.{name}": value for name, value in asked.items() if (name, value) not in usual.items()}
    config = replace(override(config, settings), **given)
    if strangers := sorted({*config.selected} - {*setting_names(config)}):
        raise unknown_name("selected setting", strangers[0], setting_names(config))
    return config


def metric_text(task: str, metrics: Mapping[str, float], split: str) -> str:
    """The headline metric of a split in words, or nothing if it is not known yet.

    Example:
        >>> metric_text("vit-digits", {"val/accuracy": 0.5}, "val")
        'val accuracy 50.00 %'
    """
    found = find_task(task)
    value = metrics.get(f"{split}/{found.metric}")
    if value is None:
        return ""
    return f"{split} {found.metric.replace('_', ' ')} {found.scale * value:.{found.digits}f}{' %' * found.is_share}"
