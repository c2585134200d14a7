"""LightningModules: text classification, language modelling, image classification."""

from pebench.compat import import_torchvision

import_torchvision()  # before lightning and torchmetrics, which import it

from pebench.modules.language_model import LanguageModel  # noqa: E402
from pebench.modules.text_classifier import TextClassifier  # noqa: E402
from pebench.modules.vit import ViT  # noqa: E402

__all__ = ["LanguageModel", "TextClassifier", "ViT"]
