"""Running text for language models: WikiText-2, IMDB, Tiny Shakespeare, and a small grammar."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pebench.data.base import SPLITS, Prepared, TensorDataModule, every_tenth
from pebench.data.batches import Windows
from pebench.data.checks import check_numbers, check_parts
from pebench.data.hub import load_hub
from pebench.data.tables import Columns
from pebench.data.tokens import byte_pairs, characters
from pebench.errors import UserError
from pebench.tasks import sources
from pebench.tasks.own.files import text_of


class RunningText(TensorDataModule):
    """One running text per split. Training windows start anywhere; evaluation windows cover the text once.

    Args:
        batch_size: Windows in a training batch.
        seed: Decides the order.
        max_len: Tokens in a window.
        vocab_size: Vocabulary; tokens of it stay unused where the text has fewer.
        data_dir: Local folder with a copy of the source.
    """

    def __init__(
        self,
        batch_size: int = 16,
        seed: int = 0,
        max_len: int = 128,
        vocab_size: int = 2048,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(batch_size, seed, data_dir, vocab_size=vocab_size)
        self.max_len, self.vocab_size = max_len, vocab_size

    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return windows of a split's text."""
        stride = 1 if name == "train" else self.max_len
        return Windows(self.prepared.tensors[name], self.max_len, stride), None

    def check(self) -> None:
        """Refuse texts without a token to predict, and tokens that a model does not have."""
        check_parts(self.title, self.prepared.tensors, SPLITS)
        check_parts(self.title, self.prepared.meta, ("token_bytes",), "meta values")
        for name in SPLITS:  # not their windows: texts of one file serve windows of any length
            text = self.prepared.tensors[name]
            if len(text) < 2:
                raise UserError(f"{self.title}: the split {name} has {len(text)} tokens, expected two at least.")
            check_numbers(text, len(self.prepared.meta["token_bytes"]), f"{self.title}: tokens of the split {name}")

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield longer windows, with as many tokens in a batch, and windows that overlap by half, ``sliding``."""
        text = self.prepared.tensors["test"]
        if self.max_len > 3:  # a stride of 1 is something else
            yield "sliding", self._all_of(Windows(text, self.max_len, self.max_len // 2))
        refused = self.untestable(factors)
        for factor in factors:
            if factor in refused:
                continue
            length = round(factor * self.max_len)
            yield f"{factor:g}x", self._all_of(Windows(text, length, length), size=factor)

    def untestable(self, factors: Sequence[float]) -> dict[float, str]:
        """Return the sizes whose windows are longer than the whole test text."""
        count = len(self.prepared.tensors["test"])
        lengths = {factor: round(factor * self.max_len) for factor in factors}
        return {
            factor: f"the test text has {count} tokens, and a window would have {length}"
            for factor, length in lengths.items()
            if self.too_long(length, count)
        }

    def too_long(self, length: int, count: int) -> bool:
        """Return whether a window has too many tokens for a text of `count`, whose last token is only predicted."""
        return length >= count > self.max_len

    @property
    def text_vocabulary(self) -> int:
        """Vocabulary of the text itself, without tokens that stand for none of it."""
        return self.vocab_size

    def shares(self) -> Tensor:
        """Return the share of each token in the training text; none is 0, as if all had occurred once more."""
        counts = self.prepared.tensors["train"].long().bincount(minlength=self.text_vocabulary) + 1
        return counts / counts.sum(dtype=torch.float64)

    def chance(self) -> dict[str, float]:
        """Return the bits per byte of the test text by the frequencies of its tokens in training."""
        targets = self.prepared.tensors["test"][1:].long()
        size = torch.tensor(self.describe()["token_bytes"])[targets].sum()
        return {"bits_per_byte": (-self.shares().log2()[targets].sum() / size).item()}

    def describe(self) -> dict[str, Any]:
        """Return vocabulary, context, and the bytes that each token stands for."""
        used: list[int] = self.prepared.meta["token_bytes"]
        token_bytes = used + [0] * (self.vocab_size - len(used))
        return {"vocab_size": self.vocab_size, "max_len": self.max_len, "token_bytes": token_bytes}


class WikiText2(RunningText):
    """WikiText-2 in byte-pair tokens of a vocabulary made from the training split."""

    title, source = "wikitext2", sources.WIKITEXT2

    def read(self) -> Prepared:
        """Load, make the vocabulary and encode the three splits."""
        data = load_hub(self.source, self.data_dir, {"train", "validation", "test"}, Columns(blank=True))
        keys = (("train", "train"), ("val", "validation"), ("test", "test"))
        return byte_pairs({name: data[key].texts for name, key in keys}, self.vocab_size)


class ReviewText(RunningText):
    """IMDB's reviews as running text, in byte-pair tokens of a vocabulary made from those that train.

    Without labels both published splits are one corpus: every tenth review of the training split validates, every tenth
    of the test split tests, and all others train, but for copies of those two. A review ends with a line break.
    """

    title, source = "imdb-text", sources.IMDB_TEXT

    def read(self) -> Prepared:
        """Load, split, make the vocabulary and encode the three splits."""
        data = load_hub(self.source, self.data_dir, {"train", "test"}, Columns(classes=2))
        parts: dict[str, list[str]] = {"train": []}
        for name, split in (("val", "train"), ("test", "test")):
            reviews = [text.replace("<br />", " ") + "\n" for text in data[split].texts]
            kept, parts[name] = ([reviews[i] for i in index.tolist()] for index in every_tenth(len(reviews)))
            parts["train"] += kept
        held_out = {*parts["val"], *parts["test"]}  # the source has some reviews more than once
        parts["train"] = [review for review in parts["train"] if review not in held_out]
        return byte_pairs(parts, self.vocab_size)


class Shakespeare(RunningText):
    """Tiny Shakespeare by characters; a byte of a character that the training part lacks is token 0."""

    title, source = "tiny_shakespeare", sources.SHAKESPEARE

    def read(self) -> Prepared:
        """Load, download if there is no local copy, and cut 90 : 5 : 5."""
        path = self._text_file()
        text = text_of(path)
        sources.check_contents(self.source, path.name, hashlib.sha256(text.encode()).hexdigest(), str(path))
        first, second = int(0.9 * len(text)), int(0.95 * len(text))
        parts = {"train": text[:first], "val": text[first:second], "test": text[second:]}
        return characters(parts, self.vocab_size)

    def _text_file(self) -> Path:
        sources.check_available(self.source, self.data_dir)
        path = sources.files_folder(self.data_dir) / self.source.local
        if not path.is_file():
            try:
                with sources.writing(path.parent):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    # It checks the SHA-256, and moves the file to `path` only when it is whole.
                    torch.hub.download_url_to_file(
                        self.source.url, str(path), hash_prefix=self.source.pin, progress=False
                    )
            except (OSError, HTTPException, RuntimeError) as error:
                raise UserError(f"{self.source.url} could not be downloaded: {error}") from error
        return path


class Grammar(RunningText):
    """Sentences of a small grammar of English, where verbs agree with subjects across clauses.

    A subject may carry a clause ("the cats that the dog sees"), whose own noun stands nearer to the verb
    that must agree with the subject. Predicting that verb's number takes structure, hence order.
    """

    title = "grammar"
    SIZES = (("train", 200_000), ("val", 10_000), ("test", 20_000))
    NOUNS = (("cat", "cats"), ("dog", "dogs"), ("bird", "birds"), ("child", "children"), ("poet", "poets"))
    TRANSITIVE = (("sees", "see"), ("hears", "hear"), ("follows", "follow"), ("likes", "like"))
    INTRANSITIVE = (("sleeps", "sleep"), ("sings", "sing"), ("waits", "wait"), ("smiles", "smile"))
    ADJECTIVES = ("old", "small", "happy", "quiet")
    FUNCTION_WORDS = ("the", "that", "near", "and", ".")

    def read(self) -> Prepared:
        """Generate the three splits, each from a seed of its own."""
        forms = [form for pair in (*self.NOUNS, *self.TRANSITIVE, *self.INTRANSITIVE) for form in pair]
        words = [*self.FUNCTION_WORDS, *self.ADJECTIVES, *forms]
        if len(words) > self.vocab_size:
            raise UserError(f"data.vocab_size must be at least {len(words)} here, got {self.vocab_size}.")
        number = {word: index for index, word in enumerate(words)}
        tensors = {}
        for seed, (name, count) in enumerate(self.SIZES):
            noise, text = random.Random(seed), list[str]()
            while len(text) < count:
                text += self.sentence(noise)
            tensors[name] = torch.tensor([number[word] for word in text[:count]], dtype=torch.int32)
        return Prepared(tensors, {"token_bytes": [len(word) + 1 for word in words]})  # and the space after each

    def sentence(self, noise: random.Random) -> list[str]:
        """Return one sentence, its full stop included."""
        # Depth bounds how far clauses nest: without it sentences could outgrow any window.
        subject, plural = self._noun_phrase(noise, depth=2)
        words = subject + self._verb_phrase(noise, plural, depth=1)
        if noise.random() < 0.2:
            words += ["and", *self._verb_phrase(noise, plural, depth=1)]
        return [*words, "."]

    def _noun_phrase(self, noise: random.Random, depth: int) -> tuple[list[str], bool]:
        plural = noise.random() < 0.5
        adjective = [_pick(noise, self.ADJECTIVES)] if noise.random() < 0.3 else []
        words = ["the", *adjective, _pick(noise, self.NOUNS)[plural]]
        kind = noise.random()
        if depth and kind < 0.2:  # the cats that see the dog
            words += ["that", *self._verb_phrase(noise, plural, depth - 1)]
        elif depth and kind < 0.4:  # the cats that the dog sees
            inner, inner_plural = self._noun_phrase(noise, depth - 1)
            words += ["that", *inner, _pick(noise, self.TRANSITIVE)[inner_plural]]
        elif depth and kind < 0.55:  # the cats near the dog
            words += ["near", *self._noun_phrase(noise, depth - 1)[0]]
        return words, plural

    def _verb_phrase(self, noise: random.Random, plural: bool, depth: int) -> list[str]:
        if noise.random() < 0.5:
            return [_pick(noise, self.INTRANSITIVE)[plural]]
        return [_pick(noise, self.TRANSITIVE)[plural], *self._noun_phrase(noise, depth)[0]]


def _pick(noise: random.Random, choices: tuple[Any, ...]) -> Any:
    return choices[int(noise.random() * len(choices))]  # random() alone is promised to stay the same
