"""The transformer that all tasks share, and the LightningModules around it. Nothing here knows which encoding it holds.

The names below are loaded on first use: the transformer alone needs no Lightning.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pebench.models.language_model import LanguageModel
    from pebench.models.text_classifier import TextClassifier
    from pebench.models.vit import ViT

__all__ = ["LanguageModel", "TextClassifier", "ViT"]
_FILES = {"LanguageModel": "language_model", "TextClassifier": "text_classifier", "ViT": "vit"}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
