"""Text classification by a bidirectional transformer."""

from collections.abc import Mapping
from typing import Any, Unpack

import torch
from torch import Tensor

from pebench.encodings.base import EncodingLike
from pebench.layers import Linear, SegmentedEmbedding, TokenEmbedding
from pebench.models.base import Classifier, TrunkOptions, masked_mean


class TextClassifier(Classifier):
    """Text classifier, bidirectional, from the mean of the tokens that are not padding.

    A batch is a triple: tokens (B, L), lengths (B,) from 1 to L, and labels (B,). Tokens behind a text's
    length have no influence on it, but for encodings that stretch with texts longer than `max_len` (``yarn``, say);
    a text of no token has no mean, and gives NaN.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        vocab_size: Number of tokens.
        max_len: Longest text in tokens.
        num_classes: Classes.
        token_pace: How many times as fast as other weights the token table moves under Adam; ``None`` takes the square
            root of its width.
        segments: How the model is given which text of a pair a token is of; see `pebench.layers.SegmentedEmbedding`.
        separator: Token that ends the first text of a pair; ``None`` where an example is one text.
        options: Size, learning rate and seed; see `SequenceModule`.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, the encoding cannot serve it, or there are segments and no separator.
    """

    inputs = 2

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        vocab_size: int,
        max_len: int,
        num_classes: int = 2,
        token_pace: float | None = None,
        segments: str | None = None,
        separator: int | None = None,
        **options: Unpack[TrunkOptions],
    ) -> None:
        super().__init__(encoding, encoding_args, extent=(max_len,), causal=False, **options)
        width = self.trunk.encoding.content_width
        if segments is None:
            self.input = TokenEmbedding(vocab_size, width, token_pace)
        elif separator is None:
            raise ValueError("segments are of pairs of texts: expected the token that separates them, got None")
        else:
            self.input = SegmentedEmbedding(vocab_size, width, segments, separator, token_pace)
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
        valid = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]  # (B, L)
        logits: Tensor = self.head(masked_mean(self.trunk(self.input(tokens), positions, valid), valid))
        return logits
