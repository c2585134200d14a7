"""Tasks: what a model is trained on and judged by, where its data comes from, and how long it trains. No torch here."""

from pebench.tasks.base import ROUNDING, Budget, Task, with_smoke
from pebench.tasks.configurations import configure, default_tier, metric_text, reconfigure, recorded_task
from pebench.tasks.kinds import (
    IMAGE_CLASSIFICATION,
    LANGUAGE_MODELLING,
    MASKED_LANGUAGE_MODELLING,
    REGRESSION,
    SEQUENCE_TASK,
    TEXT_CLASSIFICATION,
    TOKEN_TAGGING,
    TaskKind,
)
from pebench.tasks.registry import TASKS, find_task, register_task

__all__ = [
    "IMAGE_CLASSIFICATION",
    "LANGUAGE_MODELLING",
    "MASKED_LANGUAGE_MODELLING",
    "REGRESSION",
    "ROUNDING",
    "SEQUENCE_TASK",
    "TASKS",
    "TEXT_CLASSIFICATION",
    "TOKEN_TAGGING",
    "Budget",
    "Task",
    "TaskKind",
    "configure",
    "default_tier",
    "find_task",
    "metric_text",
    "reconfigure",
    "recorded_task",
    "register_task",
    "with_smoke",
]
