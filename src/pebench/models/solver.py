"""Sequence tasks by a causal transformer, which answers where it is asked."""

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional as F
from torchmetrics import MeanMetric, Metric

from pebench.models.base import SequenceModule
from pebench.models.language_model import LanguageModel


class SequenceSolver(LanguageModel):
    """Causal model that gives an answer, a token, at some tokens of a sequence.

    A batch is a pair: tokens (B, L) and the answers (B, L), -100 where none is asked. Padding comes after a sequence,
    where causal attention does not see it.

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        options: As for `LanguageModel`.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, or the encoding cannot serve it.
    """

    def finish(self, metrics: Mapping[str, Metric]) -> None:
        """Add the shares of right answers, and of sequences without a wrong one, to the metrics."""
        shares = {name: MeanMetric(nan_strategy="error") for name in ("accuracy", "exact_match")}
        super().finish({**metrics, **shares})

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
