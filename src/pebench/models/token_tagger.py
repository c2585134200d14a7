"""Tags of tokens by a bidirectional transformer."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.build import EncodingLike
from pebench.layers import Linear
from pebench.models.text import TextModule, TextOptions


class TokenTagger(TextModule):
    """Tagger of tokens, bidirectional: a class for each, as for parts of speech and names.

    A batch is a triple: tokens (B, L), lengths (B,) from 1 to L, and tags (B, L), -100 at padding.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        num_classes: Tags.
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
        """Return the logits (B, L, num_classes) of each token's tag; those of padding mean nothing.

        Args:
            tokens: (B, L).
            lengths: (B,), tokens that are not padding.
            positions: (L, 1), or (B, L, 1) with each text's own; by default 0, 1, 2, ...
        """
        logits: Tensor = self.head(self.mixed(tokens, lengths, positions)[0])
        return logits

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Return the cross-entropy in nats per token."""
        return F.cross_entropy(*self._counted(batch))

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        """Update loss and accuracy, both over tokens, with a batch."""
        logits, tags = self._counted(batch)
        # Weighted by its tokens, batches add up to the mean over all of them.
        self.metric(f"{stage}/loss").update(F.cross_entropy(logits, tags), weight=len(tags))
        self.metric(f"{stage}/accuracy").update(logits, tags)

    def _counted(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Return the logits (tokens, num_classes) and tags (tokens,) of all tokens but padding."""
        tokens, lengths, tags = batch
        counted = tags >= 0
        return self(tokens, lengths)[counted].float(), tags[counted]
