"""Data of a user's own, read where `pebench.tasks.own.places` knows them to be."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from pebench.data.base import SPLITS, Prepared
from pebench.data.batches import TaggedTexts
from pebench.data.images import Images
from pebench.data.language import RunningText
from pebench.data.masked import MaskedText
from pebench.data.pairs import SEPARATOR, joined_pairs
from pebench.data.tables import Rows
from pebench.data.text import LabelledTexts
from pebench.data.tokens import byte_pairs, characters, single_bytes
from pebench.data.words import SPECIAL, token_ids
from pebench.errors import UserError
from pebench.tasks.own import image_folder, labelled_texts, running_text
from pebench.tasks.own.places import Place, find_place
from pebench.tasks.own.targets import spread


class OwnTexts(LabelledTexts):
    """Labelled texts of a user, or pairs of texts, in lower-case words of a vocabulary made from the training split.

    Args:
        own: Name and checksum of the data.
        num_classes: Number of classes.
        origin: Options of reading data of the hub; empty for files.
        paired: True if an example is two texts.
        settings: As for `LabelledTexts`.
    """

    def __init__(
        self,
        own: str,
        num_classes: int,
        origin: Mapping[str, str],
        paired: bool = False,
        data_dir: Path | None = None,
        **settings: int,
    ) -> None:
        super().__init__(data_dir=None, **settings)
        self.origin, self.paired = origin, paired
        self.keeps_beginning = not paired  # type: ignore[misc]  # more room cuts both texts elsewhere
        self.title, self.num_classes = own, num_classes  # type: ignore[misc]
        self.special = (*SPECIAL, SEPARATOR) if paired else SPECIAL  # type: ignore[misc]
        self.settings["own"] = own  # type: ignore[assignment]

    def read(self) -> Prepared:
        """Read the tables, hold them to the checksum, make the vocabulary and look every word up."""
        place = find_place(self.title, self.origin)
        found, classes, splits, sha256, _ = labelled_texts.load(place)
        check_contents(self.title, place, sha256)
        texts: Sequence[Any] = [*zip(found.texts, found.seconds, strict=True)] if self.paired else found.texts
        labels, rows = self.numbers(found.labels, classes), {}
        del found
        for index, name in enumerate(SPLITS):
            chosen = np.flatnonzero(splits == index).tolist()
            rows[name] = Rows([texts[i] for i in chosen], [labels[i] for i in chosen])
        del texts
        return self.encoded(rows)

    def numbers(self, labels: Sequence[Any], classes: Sequence[str]) -> list[Any]:
        """Return the labels as numbers."""
        number = {name: index for index, name in enumerate(classes)}
        return [number[label] for label in labels]

    def vocabulary(self, texts: Sequence[Any]) -> Any:
        """Return a `tokenizers.Tokenizer` with a vocabulary made from the training texts."""
        return super().vocabulary([*chain.from_iterable(texts)] if self.paired else texts)

    def numbered(self, tokenizer: Any, texts: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """Return the tokens of texts, end to end, and the length of each."""
        if not self.paired:
            return super().numbered(tokenizer, texts)
        if self.max_len < 3:
            raise UserError(f"data.max_len must be at least 3 for pairs of texts, got {self.max_len}.")
        first, second = ([*chain.from_iterable(token_ids(tokenizer, part))] for part in zip(*texts, strict=True))
        found = joined_pairs(first, second, self.max_len)
        lengths = torch.tensor([len(pair) for pair in found], dtype=torch.int32)
        return torch.from_numpy(np.concatenate(found)), lengths

    def describe(self) -> dict[str, Any]:
        """Return the sizes of vocabulary, text and label set, and the token that separates the texts of a pair."""
        return super().describe() | ({"separator": len(SPECIAL)} if self.paired else {})


class OwnNumbers(OwnTexts):
    """Texts of a user, or pairs of texts, with a number each, in standard deviations from the mean of training."""

    def numbers(self, labels: Sequence[Any], classes: Sequence[str]) -> list[Any]:
        """Return the labels, which are numbers already."""
        return [*labels]

    def encoded(self, rows: dict[str, Rows]) -> Prepared:
        """Return the splits with standardized numbers; their mean and deviation are kept."""
        mean, deviation = spread(rows["train"].labels)  # type: ignore[arg-type]  # numbers
        standard = {name: [(label - mean) / deviation for label in part.labels] for name, part in rows.items()}
        found = super().encoded({name: Rows(rows.pop(name).texts, [0] * len(standard[name])) for name in SPLITS})
        labels = {f"{name}_labels": torch.tensor(part, dtype=torch.float32) for name, part in standard.items()}
        return Prepared({**found.tensors, **labels}, {**found.meta, "mean": mean, "deviation": deviation})

    def chance(self) -> dict[str, float]:
        """Return the squared error of the mean of the training numbers, which is 0."""
        return {"squared_error": self.prepared.tensors["test_labels"].double().square().mean().item()}

    def describe(self) -> dict[str, Any]:
        """Return the sizes of vocabulary and text, and the token that separates the texts of a pair."""
        return {name: value for name, value in super().describe().items() if name != "num_classes"}


class OwnTags(OwnTexts):
    """Texts of a user as words with a tag each. Words are as they are written: of a name, that says something."""

    def numbers(self, labels: Sequence[Any], classes: Sequence[str]) -> list[Any]:
        """Return the number of each tag."""
        number = {name: index for index, name in enumerate(classes)}
        return [[number[tag] for tag in tags] for tags in labels]

    def encoded(self, rows: dict[str, Rows]) -> Prepared:
        """Return the splits in the words that are the most frequent ones in training."""
        self.check_room()
        counts = Counter(chain.from_iterable(rows["train"].texts))
        words = sorted(counts, key=lambda word: (-counts[word], word))[: self.vocab_size - len(SPECIAL)]
        number = {word: index for index, word in enumerate(words, len(SPECIAL))}
        tensors: dict[str, Tensor] = {}
        for name in SPLITS:
            part = rows.pop(name)
            texts = [[number.get(word, 1) for word in text[: self.max_len]] for text in part.texts]
            tags: list[list[int]] = [tags[: self.max_len] for tags in part.labels]  # type: ignore[index]  # lists
            tensors |= {
                f"{name}_tokens": torch.tensor([*chain.from_iterable(texts)], dtype=torch.int32),
                f"{name}_lengths": torch.tensor([len(text) for text in texts], dtype=torch.int32),
                f"{name}_labels": torch.tensor([*chain.from_iterable(tags)]),
            }
        return Prepared(tensors, {"vocab_size": len(words) + len(SPECIAL)})

    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return the texts of a split with their tags, and their lengths."""
        tensors = self.prepared.tensors
        texts = TaggedTexts(*(tensors[f"{name}_{part}"] for part in ("tokens", "lengths", "labels")))
        return texts, texts.lengths


def check_contents(own: str, place: Place, sha256: str) -> None:
    """Hold data to the checksum in their name.

    Raises:
        UserError: If they have changed since.
    """
    if not own.endswith(f"-{sha256[:12]}"):
        where = place.path or place.read["hub"]
        raise UserError(
            f"the data at {where} are not {own} any more: they have changed, to SHA-256 {sha256[:12]}. "
            "Put the former ones back, or ask for these by their path."
        )


class OwnCorpus(RunningText):
    """Running text of a user, in bytes, characters or byte pairs.

    Args:
        own: Name and checksum of the data.
        tokens: ``bytes``, ``chars`` or ``bpe``.
        settings: As for `RunningText`.
    """

    def __init__(self, own: str, tokens: str, data_dir: Path | None = None, **settings: int) -> None:
        super().__init__(data_dir=None, **settings)
        self.title, self.tokens = own, tokens  # type: ignore[misc]
        self.settings |= {"own": own, "tokens": tokens}  # type: ignore[dict-item]

    def read(self) -> Prepared:
        """Read the text, hold it to the checksum, and cut it into tokens."""
        texts, sha256, _ = running_text.load(place := find_place(self.title))
        check_contents(self.title, place, sha256)
        if self.tokens == "bpe":  # by lines, as a text at once would take gigabytes
            lines = {name: text.splitlines(keepends=True) for name, text in texts.items()}
            return byte_pairs(lines, self.text_vocabulary)
        return (single_bytes if self.tokens == "bytes" else characters)(texts, self.text_vocabulary)


class OwnMaskedCorpus(MaskedText, OwnCorpus):
    """Running text of a user, of which tokens are masked.

    Args:
        masked: True, which tells its prepared tensors from those of a vocabulary without a mask.
        settings: As for `OwnCorpus`.
    """

    def __init__(self, masked: bool, **settings: Any) -> None:
        super().__init__(**settings)
        self.settings["masked"] = masked


class OwnImages(Images):
    """Images of a user, at one size.

    Args:
        own: Name and checksum of the data.
        num_classes: Number of classes.
        channels: 1 for grey, 3 for colour.
        image_size: Side of the images in pixels.
        settings: As for `Images`.
    """

    def __init__(
        self, own: str, num_classes: int, channels: int, image_size: int, data_dir: Path | None = None, **settings: Any
    ) -> None:
        super().__init__(data_dir=None, **settings)
        self.title, self.num_classes = own, num_classes  # type: ignore[misc]
        self.shape = (channels, image_size)
        self.settings |= {"own": own, "channels": channels, "image_size": image_size}  # type: ignore[dict-item]

    def read(self) -> Prepared:
        """Decode every image, held to the checksum of their files."""
        files, labels, splits, sha256, _ = image_folder.load(place := find_place(self.title))
        check_contents(self.title, place, sha256)
        channels, side = self.shape
        tensors: dict[str, torch.Tensor] = {}
        for index, name in enumerate(SPLITS):
            chosen = np.flatnonzero(splits == index)
            pixels = np.empty((len(chosen), channels, side, side), dtype=np.uint8)
            for row, number in enumerate(chosen):
                pixels[row] = image_folder.decoded(files[number], channels, side)
            tensors |= {
                f"{name}_images": torch.from_numpy(pixels), f"{name}_labels": torch.from_numpy(labels[chosen])
            }  # fmt: skip
        return Prepared(tensors, self.normalisation(tensors["train_images"]))
