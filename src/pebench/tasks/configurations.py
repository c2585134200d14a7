"""Configurations of runs, made of a task's budgets and of what a user changes. No torch here."""

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pebench.config import SECTIONS, RunConfig, override, setting_names, typed
from pebench.config.names import PLACE
from pebench.encodings.registry import normal_options
from pebench.errors import UserError, unknown_name
from pebench.formatting import quoted
from pebench.tasks.base import Task
from pebench.tasks.registry import find_task


def default_tier(task: Task) -> str:
    """Return the tier of a user who names none: minute or quick where the task is embedded, else core."""
    usual = [tier for tier in (("minute", "quick") if task.embedded else ("core",)) if tier in task.budgets]
    # A task of a user may have none. Budgets are listed from small to large, so the last one is its largest.
    return usual[0] if usual else list(task.budgets)[-1]


def configure(
    task: str,
    encoding: str,
    seed: int = 0,
    tier: str | None = None,
    settings: Mapping[str, Any] | None = None,
    encoding_args: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Return the configuration of one run: the task's budget at a tier, with some fields replaced.

    Args:
        task: Name of a task; one with options is written in its normal form in the configuration.
        encoding: Name of an encoding.
        seed: Seed, from 0.
        tier: One of the task's tiers; ``None`` takes the default.
        settings: Dotted names to values: ``{"train.max_steps": 10}``.
        encoding_args: Options of the encoding.

    Raises:
        UserError: For anything that does not exist or cannot work.
    """
    card = find_task(task)
    tier = tier or default_tier(card)
    if tier not in card.budgets:
        # Valid are the tiers of this task, not all of them: embedded tasks have no core, and the others no quick.
        valid = ", ".join(card.budgets)
        raise UserError(f"task {task!r} has no tier {quoted(tier)}. Valid for it: {valid}.")
    encoding_args = normal_options(encoding, encoding_args or {})
    budget = card.budgets[tier]
    config = RunConfig(
        task=card.name, encoding=encoding, seed=seed, tier=tier, encoding_args=encoding_args,
        model=budget.model, data=budget.data, train=budget.train,
    )  # fmt: skip
    # Last, so that a setting is checked against what this task has: patches do not apply to texts, nor vocabularies to
    # images.
    return override(config, settings or {})


def reconfigure(values: Mapping[str, Any]) -> RunConfig:
    """Return the configuration that `RunConfig.to_dict` wrote, checked as `configure` does: a hand may have changed it.

    Args:
        values: Plain JSON values.

    Raises:
        UserError: For anything that is missing, does not exist or cannot work.
    """
    kinds: dict[str, Any] = {f.name: f.type for f in fields(RunConfig)}
    # These have no single type to convert to: below, each of their settings is checked by its own name.
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
            raise UserError(f"{name} expects a mapping, got {quoted(value)}.")
    if missing := [name for name in ("task", "encoding", *SECTIONS) if name not in values]:
        raise UserError(f"{missing[0]} is missing.")
    names = given.pop("task"), given.pop("encoding"), given.pop("seed", 0), given.pop("tier", "core")
    # From the task's budget, not from the values alone, so that names and options are checked as on a command line.
    config = configure(*names, encoding_args=parts.get("encoding_args"))
    for part, kind in SECTIONS.items():
        usual = vars(getattr(config, part))
        asked = vars(kind()) | parts[part]  # a setting that an older pebench did not have is as it was then
        # Only what differs from the budget is set: `override` refuses what does not apply to a task, which records hold
        # as null.
        settings |= {f"{part}.{name}": value for name, value in asked.items() if (name, value) not in usual.items()}
    config = replace(override(config, settings), **given)
    if strangers := sorted({*config.selected} - {*setting_names(config)}):
        raise unknown_name("selected setting", strangers[0], setting_names(config))
    return config


def recorded_task(name: str) -> Task:
    """Return the task that a record names, as `find_task` does, but import no module that a record alone names.

    Raises:
        UserError: If its module is not imported yet, with what to do; and where `find_task` raises it.
    """
    base = name.partition("(")[0]
    module = base.partition(":")[0]
    # Without `plugins.at_place`, which has Python search the current folder.
    if PLACE.fullmatch(base) and module not in sys.modules:
        raise UserError(
            f"these are records of the task {name!r}, whose metric is in code of yours, and a record imports no code "
            f"by itself. Name the task in the command: --task {base}; in Python, import {module} before."
        )
    return find_task(name)


def metric_text(task: str, metrics: Mapping[str, float], split: str) -> str:
    """Format the headline metric of a split, or return nothing if it is not known yet.

    Args:
        task: The task's name, or the name of its folder; without its task here the loss stands in for the metric.
        metrics: Metrics by name, such as ``val/accuracy``.
        split: ``val`` or ``test``.

    Example:
        >>> metric_text("vit-digits", {"val/accuracy": 0.5}, "val")
        'val accuracy 50.00 %'
    """
    try:
        found = find_task(task)
    except UserError:  # its module is not here, or a folder's name leaves out its options
        loss = metrics.get(f"{split}/loss")
        return "" if loss is None else f"{split} loss {loss:.4f}"
    value = metrics.get(f"{split}/{found.metric}")
    if value is None:
        return ""
    return f"{split} {found.metric.replace('_', ' ')} {found.shown(value)}"
