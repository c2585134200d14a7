"""pebench: a benchmark of positional encodings for transformers.

The names below are loaded on first use, so that importing pebench costs nothing.
"""

import importlib
from typing import Any

from pebench import moved

__version__ = "0.1.0"

_WHERE = {
    "EncodingSpec": "pebench.encodings.base",
    "PositionalEncoding": "pebench.encodings.base",
    "register": "pebench.encodings.registry",
    "Task": "pebench.tasks",
    "TaskKind": "pebench.tasks",
    "register_task": "pebench.tasks",
    "TextClassifier": "pebench.models",
    "LanguageModel": "pebench.models",
    "ViT": "pebench.models",
    "datamodule": "pebench.data",
    "Suite": "pebench.runs.suite",
    "UserError": "pebench.errors",
}
__all__ = sorted([*_WHERE, "__version__"])


moved.install()


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'pebench' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
