"""Running text of which some tokens are masked, to be predicted from both sides."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pebench.data.base import SPLITS
from pebench.data.batches import IGNORE, Windows
from pebench.data.language import RunningText
from pebench.seeding import stream

PREDICTED = 0.15
"""Share of the tokens that are predicted. Of these, `MASKED` are hidden, `DRAWN` are another token, the rest stay."""
MASKED = 0.8
DRAWN = 0.1


def mask_tokens(
    tokens: Tensor, mask: int, noise: torch.Generator, share: tuple[int, int] = (0, 1)
) -> tuple[Tensor, Tensor]:
    """Return tokens of which some are hidden, and the tokens to predict, as Devlin et al. 2019, section 3.1, do.

    Args:
        tokens: (B, L), or (L,).
        mask: The token that hides others; those that are drawn are below it.
        noise: Generator on the CPU, so that a seed means the same on every device.
        share: Index of this process and number of processes: all draw for the whole batch, of which each has its part.

    Returns:
        Both of the shape of `tokens`; a token that is not predicted is `IGNORE` in the second.
    """
    rank, processes = share
    shape = (len(tokens) * processes, *tokens.shape[1:])
    turn, kind = torch.rand((2, *shape), generator=noise, dtype=torch.float32)[:, rank::processes].to(tokens.device)
    drawn = torch.randint(mask, shape, generator=noise)[rank::processes].to(tokens.device)
    predicted = turn < PREDICTED
    hidden = torch.where(kind < MASKED, mask, torch.where(kind < MASKED + DRAWN, drawn, tokens))
    return torch.where(predicted, hidden, tokens), torch.where(predicted, tokens, IGNORE)


class PlainWindows(Windows):
    """Windows of a running text, without anything to predict."""

    def __getitem__(self, index: Tensor) -> tuple[Tensor]:  # type: ignore[override]  # fewer tensors
        return super().__getitem__(index)[:1]


class MaskedWindows(Dataset[tuple[Tensor, Tensor]]):
    """Windows that cover a text whose tokens are masked once, so that windows of any length ask for the same tokens.

    Args:
        tokens: (total,) the text.
        length: Tokens in a window; the last one begins earlier so that it is as long, and counts no token twice.
        mask: The token that hides others.
        seed: Decides which tokens are hidden.
    """

    def __init__(self, tokens: Tensor, length: int, mask: int, seed: int) -> None:
        self.tokens, self.targets = mask_tokens(tokens.long(), mask, torch.Generator().manual_seed(seed))
        self.length = min(length, len(tokens))

    def __len__(self) -> int:
        return -(-len(self.tokens) // self.length)

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Tensor]:
        first = index[:, None] * self.length
        where = first.clamp(max=len(self.tokens) - self.length) + torch.arange(self.length)
        return self.tokens[where], self.targets[where].masked_fill(where < first, IGNORE)


class MaskedText(RunningText):
    """One running text per split, whose last token of the vocabulary hides others.

    Training draws other tokens to predict in every step; in validation and test they are drawn once, and are the same
    in every run.
    """

    @property
    def text_vocabulary(self) -> int:
        """Vocabulary of the text itself: all but the mask."""
        return self.vocab_size - 1

    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return windows of a split's text."""
        if name == "train":
            return PlainWindows(self.prepared.tensors[name], self.max_len, 1), None
        return self._windows(name, self.max_len), None

    def _windows(self, name: str, length: int) -> MaskedWindows:
        return MaskedWindows(self.prepared.tensors[name], length, self.text_vocabulary, SPLITS.index(name))

    def on_after_batch_transfer(self, batch: Sequence[Tensor], dataloader_idx: int) -> Any:
        """Mask the tokens of a training batch."""
        if len(batch) > 1:
            return batch
        # From the step, so that a run that is resumed masks as it would have.
        step = self.trainer.global_step if self.trainer else 0
        noise = torch.Generator().manual_seed(stream(self.seed, "mask", step))
        return mask_tokens(batch[0], self.text_vocabulary, noise, self.share)

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield longer windows, with as many tokens in a batch."""
        refused = self.untestable(factors)
        for factor in factors:
            if factor not in refused:
                windows = self._windows("test", round(factor * self.max_len))
                yield f"{factor:g}x", self._all_of(windows, size=factor)

    def too_long(self, length: int, count: int) -> bool:
        """Return whether a window has more tokens than a text of `count`; here the last token is asked for, too."""
        return length > count

    def chance(self) -> dict[str, float]:
        """Return the bits per masked token of the test text by the frequencies of tokens in training."""
        targets = self._windows("test", self.max_len).targets
        return {"bits_per_token": -self.shares().log2()[targets[targets >= 0]].mean().item()}

    def describe(self) -> dict[str, Any]:
        """Return vocabulary and context."""
        return {"vocab_size": self.vocab_size, "max_len": self.max_len}
