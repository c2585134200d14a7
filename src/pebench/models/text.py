"""Base of the models of texts: tokens of one text or two to vectors that see both directions."""

from collections.abc import Mapping
from typing import Any, Required, Unpack

import torch
from torch import Tensor

from pebench.encodings.build import EncodingLike
from pebench.layers import SegmentedEmbedding, TokenEmbedding
from pebench.models.base import SequenceModule, TrunkOptions, masked_mean


class TextOptions(TrunkOptions, total=False):
    """Keyword arguments that every module of texts passes on to `TextModule`, which documents them."""

    vocab_size: Required[int]
    max_len: Required[int]
    token_pace: float | None
    segments: str | None
    separator: int | None


class TextModule(SequenceModule):
    """Base of the modules that read whole texts: a subclass adds the output layer, a loss and metrics.

    A batch begins with tokens (B, L) and lengths (B,) from 1 to L. Tokens after a text's length have no influence on
    it, but for encodings that stretch with texts longer than `max_len` (``yarn``, say); a text of no token has no mean,
    and gives NaN.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        vocab_size: Number of tokens.
        max_len: Longest text in tokens.
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

    def mixed(self, tokens: Tensor, lengths: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the vectors (B, L, D) of all tokens, and which of them are no padding (B, L).

        Args:
            tokens: (B, L).
            lengths: (B,), tokens that are not padding.
            positions: (L, 1), or (B, L, 1) with each text's own; by default 0, 1, 2, ...
        """
        valid = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]  # (B, L)
        return self.trunk(self.input(tokens), positions, valid), valid

    def pooled(self, tokens: Tensor, lengths: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the mean (B, D) over the tokens of each text; arguments as for `mixed`."""
        return masked_mean(*self.mixed(tokens, lengths, positions))
