"""Regression on texts by a bidirectional transformer."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor
from torch.nn import functional as F
from torchmetrics import MeanMetric

from pebench.encodings.build import EncodingLike
from pebench.layers import Linear
from pebench.models.text import TextModule, TextOptions


class TextRegressor(TextModule):
    """Number that belongs to a text, from the mean of the tokens that are not padding.

    A batch is a triple: tokens (B, L), lengths (B,) from 1 to L, and targets (B,), floats of about zero mean and unit
    variance.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
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
        **options: Unpack[TextOptions],
    ) -> None:
        super().__init__(encoding, encoding_args, **options)
        # From zero: training begins at the prediction of the mean.
        self.head = Linear(self.trunk.d_model, 1, gain=0.0)
        # By default NaN is left out of a mean, which would hide that a model diverged.
        self.finish({name: MeanMetric(nan_strategy="error") for name in ("loss", "squared_error")})

    def forward(self, tokens: Tensor, lengths: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the predictions (B, 1) for texts.

        Args:
            tokens: (B, L).
            lengths: (B,), tokens that are not padding.
            positions: (L, 1), or (B, L, 1) with each text's own; by default 0, 1, 2, ...
        """
        predictions: Tensor = self.head(self.pooled(tokens, lengths, positions))
        return predictions

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Return the mean squared error."""
        tokens, lengths, targets = batch
        return F.mse_loss(self(tokens, lengths)[:, 0].float(), targets.float())

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        """Update the squared error, which is the loss, too, with a batch."""
        loss = self.loss(batch)
        for name in ("loss", "squared_error"):
            # By examples, as the last batch is smaller than the others.
            self.metric(f"{stage}/{name}").update(loss, weight=len(batch[2]))
