"""Language modelling by a causal transformer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics import MeanMetric, Metric

from pebench.encodings.build import EncodingLike
from pebench.layers import Linear, TokenEmbedding, tied_logits
from pebench.models.base import SequenceModule, TrunkOptions


class LanguageModel(SequenceModule):
    """Causal language model, with an output layer of its own or one that is the token table.

    A batch is a pair: tokens (B, L) and the tokens that follow them (B, L), -100 where none is predicted. A third
    tensor (B, L) may say which text of its row each token is of, negative at padding; see `forward`.

    Tied, the logits are ``norm(h)[..., :content_width] @ table.T``, with the table as it is stored: no weights besides
    and no bias. Where an encoding gives content fewer channels than the model has, as concatenation does, the output
    reads those alone, which come first; position's channels reach it through the blocks. The weight of the last norm
    begins at content_width^-0.5 in place of 1 (with a pace of the table's own, pace / content_width), so that logits
    begin with a root mean square of content_width^-0.5 and training near the loss of a uniform guess, log(vocab_size),
    where an output layer of its own begins exactly. The weight is trained without decay, as every norm's is, so that
    logits can grow quickly.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        vocab_size: Number of tokens.
        max_len: Context in tokens.
        token_bytes: Bytes of text that each token stands for; with them bits per byte are measured too.
        tied: Predict with the token table.
        token_pace: How many times as fast as other weights the token table moves under Adam; ``None`` takes the square
            root of its width.
        token_scale: Root mean square of the tokens' vectors at the start; ``None`` is 1. With an output layer that is
            the table the last norm makes up for it, so that logits begin as they do.
        options: Size, learning rate and seed; see `SequenceModule`.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, or the encoding cannot serve it.
    """

    causal: ClassVar[bool] = True
    """True if a token sees only those before it."""

    token_bytes: Tensor

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        vocab_size: int,
        max_len: int,
        token_bytes: Sequence[int] | None = None,
        tied: bool = False,
        token_pace: float | None = None,
        token_scale: float | None = None,
        **options: Unpack[TrunkOptions],
    ) -> None:
        super().__init__(encoding, encoding_args, extent=(max_len,), causal=self.causal, **options)
        self.input = TokenEmbedding(vocab_size, self.trunk.encoding.content_width, token_pace, token_scale)
        # From zero: with every encoding training begins at the loss of a uniform guess, log(vocab_size).
        self.head = None if tied else Linear(self.trunk.d_model, vocab_size, gain=0.0)
        # By default NaN is left out of a mean, which would hide that a model diverged.
        metrics: dict[str, Metric] = {"loss": MeanMetric(nan_strategy="error")}
        if token_bytes is not None:
            # A checkpoint has them as a hyperparameter already.
            self.register_buffer("token_bytes", torch.tensor(token_bytes), persistent=False)
            metrics["bits_per_byte"] = MeanMetric(nan_strategy="error")
        self.finish(metrics)
        if tied:
            start = self.input.pace / self.trunk.encoding.content_width / self.input.scale
            nn.init.constant_(self.trunk.norm.weight, start)

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        valid: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Return the logits (B, L, vocab_size) of each next token.

        With `valid`, `documents` or positions of three dimensions every text is treated as if it were alone in its
        row: its tokens see no others, and its positions are 0, 1, 2, ... where none are given. Padding has logits that
        mean nothing, and may stand anywhere.

        Args:
            tokens: (B, L).
            positions: (L, 1), or (B, L, 1) with each row's own; by default 0, 1, 2, ...
            valid: (B, L), False or 0 at padding.
            documents: (B, L) integers, the text that each token of a row is of, negative at padding.
        """
        if valid is not None:
            valid = valid.bool()
            # Other than in the trunk, whose padding is after a text: positions begin with the text.
            documents = torch.zeros_like(tokens) if documents is None else documents
        x = self.trunk(self.input(tokens), positions, valid, documents)
        logits: Tensor = tied_logits(x, self.input.table) if self.head is None else self.head(x)
        return logits

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Return the cross-entropy in nats per token."""
        tokens, targets, *documents = batch
        logits = self(tokens, documents=documents[0] if documents else None).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # (B·L, vocab_size), (B·L,)

    def predict_step(self, batch: Tensor | tuple[Tensor, ...], batch_idx: int) -> Tensor:
        """Return the logits of a batch as training has it, or of tokens alone."""
        tokens, *rest = (batch,) if isinstance(batch, Tensor) else batch
        logits: Tensor = self(tokens, documents=rest[1] if len(rest) > 1 else None)
        return logits

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        """Update the loss over tokens and, where their bytes are known, over bytes."""
        targets = batch[1]
        counted = targets >= 0
        # The loss is a mean over the batch. Weighted by its tokens, batches add up to the mean over the text.
        loss, tokens = self.loss(batch), counted.sum()
        self.metric(f"{stage}/loss").update(loss, weight=tokens)
        if f"{stage}/bits_per_byte" in self.metrics:
            # The bytes of what is predicted; without `counted`, -100 would be an index.
            size = self.token_bytes[targets[counted]].sum()
            # Nats in all, by bytes, in bits; vocabularies of any size compare.
            self.metric(f"{stage}/bits_per_byte").update(loss * tokens / size / math.log(2), weight=size)

    def _log_metrics(self, stage: str) -> None:
        # Before the base class, which resets the metrics. Of the mean over all tokens: the mean of the batches'
        # perplexities would be larger, by Jensen's inequality.
        perplexity = self.metric(f"{stage}/loss").compute().exp()
        self.log(f"{stage}/perplexity", perplexity.clamp(max=torch.finfo(perplexity.dtype).max))  # JSON has no infinity
        super()._log_metrics(stage)
