"""Masked language modelling by a bidirectional transformer."""

import math
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F
from torchmetrics import MeanMetric, Metric

from pebench.models.language_model import LanguageModel


class MaskedLanguageModel(LanguageModel):
    """Bidirectional model of language, which predicts tokens that are masked: BERT's.

    A batch is a pair: tokens (B, L), some of them replaced by a mask, and the tokens to predict (B, L), -100 where none
    is. A third tensor may tell texts of a row apart. `pebench.data.masked.mask_tokens` masks.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        options: As for `LanguageModel`.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, or the encoding cannot serve it.
    """

    causal: ClassVar[bool] = False

    def finish(self, metrics: Mapping[str, Metric]) -> None:
        """Add the bits of a masked token to the metrics."""
        super().finish({**metrics, "bits_per_token": MeanMetric(nan_strategy="error")})

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Return the cross-entropy in nats per masked token; 0 for a batch without any."""
        tokens, targets, *documents = batch
        logits = self(tokens, documents=documents[0] if documents else None).float()
        whole = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
        return whole / (targets >= 0).sum().clamp(min=1)

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        """Update loss and bits over masked tokens."""
        loss, counted = self.loss(batch), (batch[1] >= 0).sum()
        self.metric(f"{stage}/loss").update(loss, weight=counted)
        self.metric(f"{stage}/bits_per_token").update(loss / math.log(2), weight=counted)
