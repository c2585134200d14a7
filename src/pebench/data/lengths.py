"""Labelled texts at other lengths than in training: the same texts with more of their tokens."""

import copy
from collections.abc import Iterator, Sequence
from typing import ClassVar

from pebench.data.base import TensorDataModule
from pebench.data.batches import Texts
from pebench.errors import UserError


class OtherLengths(TensorDataModule):
    """Data of texts that are cut at `max_len` tokens, and are cut at others to be tested there."""

    max_len: int
    keeps_beginning: ClassVar[bool] = True
    """True if a text that is too long keeps its beginning, so that more of it is the same example."""

    def prepare_data(self) -> None:
        """Prepare the texts, and once more at the largest length that is to be tested."""
        super().prepare_data()
        if self.factors:
            self._longer(self.factors).prepare_data()

    def at_lengths(self, factors: Sequence[float]) -> Iterator[tuple[str, float, Texts]]:
        """Yield a label such as ``2x``, the factor, and all test texts cut at so many times the trained length."""
        if not factors:
            return
        whole = self._whole(factors)  # once, as opening it reads all of it
        refused = self._too_long(factors, whole)
        for factor in factors:
            if factor not in refused:
                yield f"{factor:g}x", factor, whole.cut(round(factor * self.max_len))

    def untestable(self, factors: Sequence[float]) -> dict[float, str]:
        """Return the sizes that no test text has."""
        return self._too_long(factors, self._whole(factors)) if factors else {}

    def _too_long(self, factors: Sequence[float], whole: Texts) -> dict[float, str]:
        longest = int(whole.lengths.max())
        return {
            factor: f"no test text has {round(factor * self.max_len)} tokens; the longest has {longest}"
            for factor in factors
            if round(factor * self.max_len) > longest
        }

    def _whole(self, factors: Sequence[float]) -> Texts:
        """Return the test texts with as many tokens as the largest of some sizes has."""
        longer = self._longer(factors)
        longer.model_arguments()  # prepares them if need be
        texts, _ = longer.split("test")
        assert isinstance(texts, Texts)
        return texts

    def _longer(self, factors: Sequence[float]) -> "OtherLengths":
        """Return the same data at the largest of some sizes; the vocabulary is the same, as it is of whole texts.

        Raises:
            UserError: If a longer text would be another example.
        """
        if not self.keeps_beginning:
            raise UserError(f"{self.title}: no other lengths can be tested, as longer texts would be other examples.")
        other, length = copy.copy(self), round(max(factors) * self.max_len)
        other.max_len, other.settings, other.factors = length, {**self.settings, "max_len": length}, ()
        other._prepared = None
        return other
