"""pebench: a benchmark of positional encodings for transformers.

The names below are loaded on first use, so that importing pebench costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pebench.adapters.swap import swap
    from pebench.config import Augmentation
    from pebench.data import datamodule
    from pebench.encodings.base import EncodingSpec, PositionalEncoding
    from pebench.encodings.registry import register
    from pebench.engine.observer import Observer
    from pebench.engine.preview import preview_suite
    from pebench.engine.run import run, run_suite
    from pebench.engine.suite import Suite, load_suite
    from pebench.errors import UserError
    from pebench.models import (
        LanguageModel,
        MaskedLanguageModel,
        SequenceSolver,
        TextClassifier,
        TextRegressor,
        TokenTagger,
        ViT,
    )
    from pebench.results.frame import Results, load_results
    from pebench.tasks import Task, TaskKind, register_task
    from pebench.training.analysis import Analysis, analyze

__version__ = "0.4.0"

_WHERE = {
    "EncodingSpec": "pebench.encodings.base",
    "PositionalEncoding": "pebench.encodings.base",
    "register": "pebench.encodings.registry",
    "Task": "pebench.tasks",
    "TaskKind": "pebench.tasks",
    "register_task": "pebench.tasks",
    "TextClassifier": "pebench.models",
    "TextRegressor": "pebench.models",
    "TokenTagger": "pebench.models",
    "LanguageModel": "pebench.models",
    "MaskedLanguageModel": "pebench.models",
    "SequenceSolver": "pebench.models",
    "ViT": "pebench.models",
    "datamodule": "pebench.data",
    "Analysis": "pebench.training.analysis",
    "analyze": "pebench.training.analysis",
    "Suite": "pebench.engine.suite",
    "load_suite": "pebench.engine.suite",
    "run": "pebench.engine.run",
    "run_suite": "pebench.engine.run",
    "preview_suite": "pebench.engine.preview",
    "Observer": "pebench.engine.observer",
    "Results": "pebench.results.frame",
    "load_results": "pebench.results.frame",
    "UserError": "pebench.errors",
    "swap": "pebench.adapters.swap",
    "Augmentation": "pebench.config",
}
"""Public names, and the modules that define them."""

__all__ = [
    "Analysis", "Augmentation", "EncodingSpec", "LanguageModel", "MaskedLanguageModel", "Observer",
    "PositionalEncoding", "Results", "SequenceSolver", "Suite", "Task", "TaskKind", "TextClassifier", "TextRegressor",
    "TokenTagger", "UserError", "ViT", "__version__", "analyze", "datamodule", "load_results", "load_suite",
    "preview_suite", "register", "register_task", "run", "run_suite", "swap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'pebench' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
