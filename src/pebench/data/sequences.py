"""The base of generated sequences, of whose tokens a model answers some."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pebench.data.base import SPLITS, Prepared, TensorDataModule
from pebench.data.batches import IGNORE
from pebench.data.checks import check_numbers, check_parts
from pebench.errors import UserError

PADDING, END = 0, 1
"""Tokens of every vocabulary: after a sequence, and between what is given and what is asked."""

SPECIAL = 2
"""Tokens of every vocabulary before a task's own."""


class Sequences(TensorDataModule):
    """Generated sequences, and for some of their tokens the answer that a model is to give there.

    Sequences of training and validation have from half of `max_len` to `max_len` tokens, those of the test split
    `max_len`. All are different. Longer ones, which `beyond` gives, have the same vocabulary.

    Args:
        batch_size: Sequences in a training batch.
        seed: Decides the order.
        max_len: Tokens of the longest sequence.
        vocab_size: Tokens of the vocabulary; what a task does not need otherwise are letters.
        data_dir: Not used, as nothing is read.
    """

    SIZES: ClassVar[Mapping[str, int]] = {"train": 20_000, "val": 1_000, "test": 2_000}

    def __init__(
        self,
        batch_size: int = 64,
        seed: int = 0,
        max_len: int = 32,
        vocab_size: int = 20,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(batch_size, seed, data_dir, max_len=max_len, vocab_size=vocab_size)
        self.max_len, self.vocab_size = max_len, vocab_size
        if max_len < 32 or max_len % 8:
            raise UserError(f"{self.title}: data.max_len must be a multiple of 8, from 32 on, got {max_len}.")
        self.asked = max_len // 8
        """Questions at the end of a sequence, where a task asks there; as many in longer ones."""
        self.letters = vocab_size - SPECIAL - self.words()
        if self.letters < self.fewest_letters:
            raise UserError(
                f"{self.title}: data.vocab_size must be at least {vocab_size + self.fewest_letters - self.letters} "
                f"with data.max_len of {max_len}, got {vocab_size}."
            )

    fewest_letters: ClassVar[int] = 0

    def words(self) -> int:
        """Return how many tokens of the vocabulary are neither special nor letters; letters come after them."""
        return 0

    @abstractmethod
    def draw(self, count: int, length: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Return `count` sequences of `length` tokens (of one less where it must be even), and their answers.

        Args:
            count: Number of sequences.
            length: Number of tokens.
            noise: Source of all randomness.

        Returns:
            Tokens and answers, both (count, length) integers; answers are `IGNORE` where a token is not asked.
        """

    def read(self) -> Prepared:
        """Draw sequences of every length, all different, and deal them out to the splits."""
        noise = Generator().manual_seed(0)
        lengths, spare = range(self.max_len // 2, self.max_len + 1), 300  # for those drawn twice
        each = (self.SIZES["train"] + self.SIZES["val"]) // len(lengths) + spare
        counts = dict.fromkeys(lengths, each)
        counts[self.max_len] += self.SIZES["test"] + spare
        rows = torch.cat([self._padded(count, length, noise) for length, count in counts.items()]).unique(dim=0)
        rows = rows[torch.randperm(len(rows), generator=noise)]
        whole = rows[:, self.max_len - 1] != PADDING
        test = whole.nonzero().flatten()[: self.SIZES["test"]]
        rest = torch.ones(len(rows), dtype=torch.bool).index_fill_(0, test, False).nonzero().flatten()
        rest = rest[torch.randperm(len(rest), generator=noise)]  # or the whole ones would all come last
        val, train = rest[: self.SIZES["val"]], rest[self.SIZES["val"] :][: self.SIZES["train"]]
        if len(train) < self.SIZES["train"]:
            raise UserError(f"{self.title} has too few different sequences at this size; enlarge data.max_len.")
        return Prepared(
            {f"{name}_rows": rows[part].clone() for name, part in zip(SPLITS, (train, val, test), strict=True)}, {}
        )

    def _padded(self, count: int, length: int, noise: Generator) -> Tensor:
        """Draw sequences and return them one after another, tokens then answers: (count, 2 max_len)."""
        tokens, answers = self.draw(count, length, noise)
        missing = self.max_len - tokens.shape[1]
        tokens = torch.nn.functional.pad(tokens, (0, missing), value=PADDING)
        answers = torch.nn.functional.pad(answers, (0, missing), value=IGNORE)
        return torch.cat((tokens, answers), dim=1).to(torch.int32)

    def check(self) -> None:
        """Refuse tokens and answers that a model does not have."""
        check_parts(self.title, self.prepared.tensors, (f"{name}_rows" for name in SPLITS))
        super().check()
        for name in SPLITS:
            tokens, answers = self.prepared.tensors[f"{name}_rows"].chunk(2, dim=1)
            check_numbers(tokens, self.vocab_size, f"{self.title}: tokens of the split {name}")
            check_numbers(answers[answers != IGNORE], self.vocab_size, f"{self.title}: answers of the split {name}")

    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return the sequences of a split."""
        return _examples(self.prepared.tensors[f"{name}_rows"]), None

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield as many longer sequences as the test split has."""
        for factor in factors:
            noise = Generator().manual_seed(1)
            rows = torch.cat(self.draw(self.SIZES["test"], round(factor * self.max_len), noise), dim=1)
            yield f"{factor:g}x", self._all_of(_examples(rows), size=factor)

    def describe(self) -> dict[str, Any]:
        """Return vocabulary and length."""
        return {"vocab_size": self.vocab_size, "max_len": self.max_len}

    def draw_letters(self, shape: tuple[int, ...], noise: Generator) -> Tensor:
        """Return random letters."""
        first = SPECIAL + self.words()
        return torch.randint(first, first + self.letters, shape, generator=noise)


def _examples(rows: Tensor) -> TensorDataset:
    tokens, answers = rows.long().chunk(2, dim=1)
    return TensorDataset(tokens, answers)
