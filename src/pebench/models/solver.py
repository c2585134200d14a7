"""Sequence tasks by a causal transformer, which answers where it is asked."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor
from torch.nn import functional as F
from torchmetrics import MeanMetric

from pebench.encodings.base import EncodingLike
from pebench.models.base import SequenceModule, TrunkOptions
from pebench.models.language_model import LanguageModel


class SequenceSolver(LanguageModel):
    """Causal model that gives an answer, a token, at some tokens of a sequence.

    A batch is a pair: tokens (B, L) and the answers (B, L), -100 where none is asked. Padding comes behind a sequence,
    where causal attention does not see it.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        vocab_size: Number of tokens.
        max_len: Tokens of the longest sequence in training.
        tied: Answer with the token table.
        token_pace: How many times as fast as other weights the token table moves under Adam; ``None`` takes the square
            root of its width.
        options: Size, learning rate and seed; see `SequenceModule`.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, or the encoding cannot serve it.
    """

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        vocab_size: int,
        max_len: int,
        tied: bool = False,
        token_pace: float | None = None,
        **options: Unpack[TrunkOptions],
    ) -> None:
        super().__init__(
            encoding, encoding_args, vocab_size=vocab_size, max_len=max_len, tied=tied, token_pace=token_pace, **options
        )
        for stage in ("val", "test"):
            for name in ("accuracy", "exact_match"):
                self.metrics[f"{stage}/{name}"] = MeanMetric(nan_strategy="error")

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        """Update the loss and the share of right answers, and the share of sequences without a wrong one."""
        tokens, answers = batch
        logits = self(tokens).float()
        asked = answers >= 0
        right = logits.argmax(2) == answers
        loss = F.cross_entropy(logits[asked], answers[asked])
        # By answers, of which batches have unequal numbers.
        self.metric(f"{stage}/loss").update(loss, weight=asked.sum())
        self.metric(f"{stage}/accuracy").update(right[asked].float())
        self.metric(f"{stage}/exact_match").update((right | ~asked).all(1).float())

    def _log_metrics(self, stage: str) -> None:
        SequenceModule._log_metrics(self, stage)  # no perplexity, which is of text
