"""pebench: a benchmark of positional encodings for transformers.

The names below are loaded on first use, so that importing pebench costs nothing.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "EncodingSpec": "pebench.encodings",
    "PositionalEncoding": "pebench.encodings",
    "register": "pebench.registry",
    "TextClassifier": "pebench.modules",
    "LanguageModel": "pebench.modules",
    "ViT": "pebench.modules",
    "datamodule": "pebench.data",
    "Suite": "pebench.suites",
    "UserError": "pebench.errors",
}
__all__ = sorted([*_WHERE, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'pebench' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
