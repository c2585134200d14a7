"""Data of a user's own, read where `pebench.tasks.own.places` knows them to be."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from pebench.data.base import SPLITS, Prepared
from pebench.data.images import Images
from pebench.data.language import RunningText
from pebench.data.tables import Rows
from pebench.data.text import LabelledTexts
from pebench.data.tokens import byte_pairs, characters, single_bytes
from pebench.errors import UserError
from pebench.tasks.own import image_folder, labelled_texts, running_text
from pebench.tasks.own.places import Place, find_place


class OwnTexts(LabelledTexts):
    """Labelled texts of a user, in lower-case words of a vocabulary made from the training split.

    Args:
        own: Name and checksum of the data.
        num_classes: Number of classes.
        origin: Options of reading data of the hub; empty for files.
        settings: As for `LabelledTexts`.
    """

    def __init__(
        self, own: str, num_classes: int, origin: Mapping[str, str], data_dir: Path | None = None, **settings: int
    ) -> None:
        super().__init__(data_dir=None, **settings)
        self.origin = origin
        self.title, self.num_classes = own, num_classes  # type: ignore[misc]
        self.settings["own"] = own  # type: ignore[assignment]

    def read(self) -> Prepared:
        """Read the tables, hold them to the checksum, make the vocabulary and look every word up."""
        place = find_place(self.title, self.origin)
        found, classes, splits, sha256, _ = labelled_texts.load(place)
        check_contents(self.title, place, sha256)
        number = {name: index for index, name in enumerate(classes)}
        rows = {}
        for index, name in enumerate(SPLITS):
            chosen = np.flatnonzero(splits == index)
            rows[name] = Rows([found.texts[i] for i in chosen], [number[found.labels[i]] for i in chosen])
        del found
        return self.encoded(rows)


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
            return byte_pairs(lines, self.vocab_size)
        return (single_bytes if self.tokens == "bytes" else characters)(texts, self.vocab_size)


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
        self, own: str, num_classes: int, channels: int, image_size: int, data_dir: Path | None = None, **settings: int
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
