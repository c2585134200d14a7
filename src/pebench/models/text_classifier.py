"""Text classification by a bidirectional transformer."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor

from pebench.encodings.build import EncodingLike
from pebench.layers import Linear
from pebench.models.base import Classifier
from pebench.models.text import TextModule, TextOptions


class TextClassifier(TextModule, Classifier):
    """Text classifier, bidirectional, from the mean of the tokens that are not padding.

    A batch is a triple: tokens (B, L), lengths (B,) from 1 to L, and labels (B,).

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        num_classes: Classes.
        options: Vocabulary and length, ``vocab_size`` and ``max_len``, and what else `TextModule` and `SequenceModule`
            take.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, the encoding cannot serve it, or there are segments and no separator.
    """

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        num_classes: int = 2,
        **options: Unpack[TextOptions],
    ) -> None:
        super().__init__(encoding, encoding_args, **options)
        # From zero: with every encoding training begins at the loss of a uniform guess, log(num_classes).
        self.head = Linear(self.trunk.d_model, num_classes, gain=0.0)
        self.finish_classes(num_classes)

    def forward(self, tokens: Tensor, lengths: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the class logits (B, num_classes) of texts.

        Args:
            tokens: (B, L).
            lengths: (B,), tokens that are not padding.
            positions: (L, 1), or (B, L, 1) with each text's own; by default 0, 1, 2, ...
        """
        logits: Tensor = self.head(self.pooled(tokens, lengths, positions))
        return logits
