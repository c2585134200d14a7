"""The transformer that all tasks share, and the LightningModules around it. Nothing here knows which encoding it holds.

The names below are loaded on first use: the transformer alone needs no Lightning.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pebench.models.language_model import LanguageModel
    from pebench.models.masked_language_model import MaskedLanguageModel
    from pebench.models.solver import SequenceSolver
    from pebench.models.text_classifier import TextClassifier
    from pebench.models.text_regressor import TextRegressor
    from pebench.models.token_tagger import TokenTagger
    from pebench.models.vit import ViT

__all__ = [
    "LanguageModel",
    "MaskedLanguageModel",
    "SequenceSolver",
    "TextClassifier",
    "TextRegressor",
    "TokenTagger",
    "ViT",
]
_FILES = {
    "LanguageModel": "language_model", "MaskedLanguageModel": "masked_language_model",
    "SequenceSolver": "solver",
    "TextClassifier": "text_classifier", "TextRegressor": "text_regressor", "TokenTagger": "token_tagger", "ViT": "vit",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
