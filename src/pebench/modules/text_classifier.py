"""Text classification by a bidirectional transformer."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

from pebench.encodings.base import EncodingLike
from pebench.models.layers import Linear, TokenEmbedding
from pebench.modules.base import SequenceModule, masked_mean


class TextClassifier(SequenceModule):
    """Text classifier, bidirectional, from the mean of the tokens that are not padding.

    A batch is a triple: tokens (B, L), lengths (B,) and labels (B,). What stands behind a text's length
    has no influence on it.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        vocab_size: Number of tokens.
        max_len: Longest text in tokens.
        num_classes: Classes.
        d_model: See `SequenceModule`, as for all that follow.
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width of the feed-forward layer.
        dropout: Probability of dropping a channel.
        learning_rate: Peak learning rate.
        weight_decay: Of weight matrices.
        warmup: Share of the steps.
        seed: Decides the value of every parameter.
    """

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        vocab_size: int,
        max_len: int,
        num_classes: int = 2,
        d_model: int = 128,
        num_layers: int = 4,
        num_heads: int = 4,
        d_ff: int | None = None,
        dropout: float = 0.1,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.05,
        warmup: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(
            encoding=encoding, encoding_args=encoding_args, extent=(max_len,), causal=False,
            d_model=d_model, num_layers=num_layers, num_heads=num_heads, d_ff=d_ff, dropout=dropout,
            learning_rate=learning_rate, weight_decay=weight_decay, warmup=warmup, seed=seed,
        )  # fmt: skip
        self.input = TokenEmbedding(vocab_size, self.trunk.encoding.content_width)
        self.head = Linear(d_model, num_classes, gain=0.0)
        self.finish({
            "loss": MeanMetric(nan_strategy="error"),
            "accuracy": MulticlassAccuracy(num_classes, average="micro", validate_args=False),
        })  # fmt: skip

    def forward(self, tokens: Tensor, lengths: Tensor, positions: Tensor | None = None) -> Tensor:
        """Class logits (B, num_classes) of texts; `positions` (L, 1) stands in for 0, 1, 2, ..."""
        valid = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        logits: Tensor = self.head(masked_mean(self.trunk(self.input(tokens), positions, valid), valid))
        return logits

    def loss(self, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Cross-entropy in nats per text."""
        tokens, lengths, labels = batch
        return F.cross_entropy(self(tokens, lengths).float(), labels)

    def update(self, batch: tuple[Tensor, Tensor, Tensor], stage: str) -> None:
        """Count loss and accuracy."""
        tokens, lengths, labels = batch
        logits = self(tokens, lengths).float()
        self.metric(f"{stage}/loss").update(F.cross_entropy(logits, labels), weight=len(labels))
        self.metric(f"{stage}/accuracy").update(logits, labels)
