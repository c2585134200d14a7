"""Batches of tensors: the examples of each, and the gathers that fetch them. No Python per example."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, DistributedSampler, SequentialSampler, TensorDataset

from pebench.seeding import stream

IGNORE = -100
"""Target of a token that is left out of the loss; the default of torch's cross-entropy."""


# It inherits so that a Trainer takes it for a distributed sampler, and does not wrap it in one that deals out again,
# and for a sequential one, in whose place it would put single examples where it is to overfit.
class Batches(DistributedSampler[Tensor], SequentialSampler):
    """Indices of one epoch, a batch at a time, to be given to a data set as they are.

    With a seed, an epoch's order is a function of seed and epoch alone. With lengths, a batch holds
    examples of about equal length: pools of `POOL` batches are sorted, then the batches are shuffled.

    Args:
        count: Number of examples.
        batch_size: Examples in a batch; when shuffling, the examples left over at an epoch's end are dropped.
        seed: Shuffles; ``None`` keeps the order (by length, if there are lengths).
        lengths: (count,) length of every example.
        start: For training without end: the batch to begin with, counted over all epochs. ``None``: one epoch.
        share: Index of this process and number of processes: each gets its part of every shuffled batch, or of
            the batches in order.

    Attributes:
        still: Keep to the batches of the first epoch, in every epoch, as a Trainer that overfits them needs.
    """

    POOL = 64
    still = False

    def __init__(
        self,
        count: int,
        batch_size: int,
        seed: int | None = None,
        lengths: Tensor | None = None,
        start: int | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        if seed is not None and count < batch_size:
            raise ValueError(
                f"expected at least batch_size = {batch_size} training examples, got {count}: lower train.batch_size"
            )
        self.count, self.batch_size, self._seed, self.lengths = count, batch_size, seed, lengths
        self.start, self.epoch, self.share = start, 0, share

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration yields; Lightning calls this."""
        if not self.still:
            self.epoch = epoch

    def __len__(self) -> int:
        if self.start is not None:
            raise TypeError("a stream without end has no length")
        return self._per_epoch

    @property
    def _per_epoch(self) -> int:
        if self._seed is not None:
            return self.count // self.batch_size
        rank, processes = self.share
        # Rounded up, as the last batch may be short; dealt out in turn, so that processes may differ by one.
        return len(range(rank, -(-self.count // self.batch_size), processes))

    def __iter__(self) -> Iterator[Tensor]:  # type: ignore[override]  # indices of whole batches
        if self.start is None:
            yield from self._batches(self.epoch)
            return
        # Only indices are drawn for what is skipped: to resume takes no time.
        epoch, skip = divmod(self.start, self._per_epoch)
        while True:
            yield from itertools.islice(self._batches(epoch), skip, None)
            epoch, skip = epoch + 1, 0

    def _batches(self, epoch: int) -> Iterator[Tensor]:
        if self._seed is None:
            order = torch.arange(self.count) if self.lengths is None else self.lengths.argsort(stable=True)
            rank, processes = self.share
            yield from order.split(self.batch_size)[rank::processes]
            return
        generator = torch.Generator().manual_seed(stream(self._seed, "order", epoch))
        # Other examples are left over in every epoch.
        order = torch.randperm(self.count, generator=generator)[: self._per_epoch * self.batch_size]
        batches = torch.arange(self._per_epoch)
        if self.lengths is not None:
            pool = torch.arange(len(order)) // (self.POOL * self.batch_size)
            span = int(self.lengths.max()) + 1
            # `span` exceeds every length, so one sort goes by pool, then by length; equal lengths stay in random order.
            order = order[(pool * span + self.lengths[order]).argsort(stable=True)]
            # Otherwise texts would grow longer throughout each pool.
            batches = torch.randperm(self._per_epoch, generator=generator)
        for batch in batches.tolist():
            # In strides, as a batch is sorted by length: every process has short and long texts.
            yield order[batch * self.batch_size : (batch + 1) * self.batch_size][self.share[0] :: self.share[1]]


class Texts(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Texts of unequal length, stored end to end and padded per batch.

    Args:
        tokens: (total,) all tokens.
        lengths: (count,) tokens of every text.
        labels: (count,), numbers of classes, or floats.

    Raises:
        ValueError: If these do not fit together.
    """

    def __init__(self, tokens: Tensor, lengths: Tensor, labels: Tensor) -> None:
        if len(lengths) != len(labels) or int(lengths.sum()) != len(tokens):
            raise ValueError(
                f"expected as many lengths as labels, that add up to all tokens; got {len(lengths)} of "
                f"{int(lengths.sum())} tokens, {len(labels)} labels and {len(tokens)} tokens"
            )
        self.tokens, self.lengths = tokens, lengths.long()
        self.labels = labels if labels.is_floating_point() else labels.long()
        self.starts = self.lengths.cumsum(0) - self.lengths  # where each text begins: the sum of those before

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self._padded(self.tokens, index, 0), self.lengths[index], self.labels[index]

    def _padded(self, values: Tensor, index: Tensor, padding: int) -> Tensor:
        """Return a value of every token of some texts: (B, L)."""
        lengths = self.lengths[index]
        offsets = torch.arange(int(lengths.max()))  # as wide as this batch's longest text, not the data's
        # Padding reads the next text, or at the end of the data the last token; the line below overwrites it.
        where = (self.starts[index, None] + offsets).clamp_(max=len(values) - 1)
        return values[where].long().masked_fill_(offsets >= lengths[:, None], padding)

    def shuffled(self) -> "Texts":
        """Return the same texts, the tokens of each in a random order, which is the same every time."""
        return Texts(self.tokens[self._order()], self.lengths, self.labels)

    def _order(self) -> Tensor:
        """Return an order of all tokens in which each stays in its text."""
        # Noise in [0, 1) on top of the text's number sorts tokens within their text. In 32 bit a number in the ten
        # thousands would leave the noise few digits, and many ties.
        noise = torch.rand(len(self.tokens), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        owners = torch.arange(len(self)).repeat_interleave(self.lengths)
        return (owners + noise).argsort()

    def cut(self, length: int) -> "Texts":
        """Return the same texts, the first tokens of each, this many at most."""
        return Texts(self.tokens[self._first(length)], self.lengths.clamp(max=length), self.labels)

    def _first(self, length: int) -> Tensor:
        """Return whether each token is one of the first of its text."""
        places = torch.arange(len(self.tokens)) - self.starts.repeat_interleave(self.lengths)
        return places < length

    def padding(self, batches: Batches) -> float:
        """Return the share of padding among the tokens of an epoch."""
        longest = [(int(self.lengths[index].max()), self.lengths[index]) for index in batches]
        full = sum(length * len(lengths) for length, lengths in longest)
        return 1 - sum(int(lengths.sum()) for _, lengths in longest) / full


class TaggedTexts(Texts):
    """Texts with a label for every token, which is `IGNORE` at padding.

    Args:
        tokens: (total,) all tokens.
        lengths: (count,) tokens of every text.
        tags: (total,) the label of each token.

    Raises:
        ValueError: If these do not fit together.
    """

    def __init__(self, tokens: Tensor, lengths: Tensor, tags: Tensor) -> None:
        super().__init__(tokens, lengths, torch.zeros_like(lengths))
        if tags.shape != tokens.shape:
            raise ValueError(f"expected a tag for each of {len(tokens)} tokens, got {len(tags)} tags")
        self.tags = tags

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens, lengths, _ = super().__getitem__(index)
        return tokens, lengths, self._padded(self.tags, index, IGNORE)

    def shuffled(self) -> "TaggedTexts":
        """Return the same texts, the tokens of each in a random order, each with its tag."""
        order = self._order()
        return TaggedTexts(self.tokens[order], self.lengths, self.tags[order])

    def cut(self, length: int) -> "TaggedTexts":
        """Return the same texts, the first tokens of each with their tags, this many at most."""
        first = self._first(length)
        return TaggedTexts(self.tokens[first], self.lengths.clamp(max=length), self.tags[first])


class Windows(Dataset[tuple[Tensor, Tensor]]):
    """Windows of a running text, each token with its successor.

    Args:
        tokens: (total,) the text.
        length: Tokens in a window.
        stride: From one window's start to the next: 1 makes every start an example, `length` covers the
            text once. With anything between, windows overlap and each target counts once, in the window that
            gives it most context. A target that does not count, or is after the end, is `IGNORE`.

    Raises:
        ValueError: If a text to train on is not longer than a window.
    """

    def __init__(self, tokens: Tensor, length: int, stride: int) -> None:
        if stride == 1 and len(tokens) <= length:
            raise ValueError(f"expected a text longer than a window of max_len = {length} tokens, got {len(tokens)}")
        self.tokens, self.length, self.stride = tokens, length, stride

    def __len__(self) -> int:
        last = len(self.tokens) - 1  # the last token has no successor
        return last - self.length + 1 if self.stride == 1 else 1 + max(0, -(-(last - self.length) // self.stride))

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Tensor]:
        device = self.tokens.device
        index, offsets = index.to(device), torch.arange(self.length + 1, device=device)
        # (B, length + 1): inputs and targets are the same tokens, shifted by one
        where = index[:, None] * self.stride + offsets
        window = self.tokens[where.clamp(max=len(self.tokens) - 1)].long()
        ignored = where[:, 1:] >= len(self.tokens)
        if self.stride > 1:  # what the window before has counted
            ignored |= (index[:, None] > 0) & (offsets[:-1] < self.length - self.stride)
        targets = window[:, 1:].masked_fill(ignored, IGNORE)
        return window[:, :-1], targets


def on_device(data: Dataset[Any], device: torch.device) -> Dataset[Any]:
    """Return a data set whose tensors lie on a device and are gathered there; the same one if it is of another kind.

    Texts of unequal length stay where they are: how wide a batch of them is must be known before it is gathered.
    """
    if isinstance(data, TensorDataset):
        return TensorDataset(*(tensor.to(device) for tensor in data.tensors))
    if isinstance(data, Windows):
        moved = copy.copy(data)
        moved.tokens = data.tokens.to(device)
        return moved
    return data
