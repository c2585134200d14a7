"""Data of a user's own, read where `pebench.tasks.own.places` knows them to be."""

from pathlib import Path

import numpy as np

from pebench.data.base import SPLITS, Prepared
from pebench.data.tables import Rows
from pebench.data.text import LabelledTexts
from pebench.errors import UserError
from pebench.tasks.own.texts import load
from pebench.tasks.own.places import find_place


class OwnTexts(LabelledTexts):
    """Labelled texts of a user, in lower-case words of a vocabulary made from the training split.

    Args:
        own: Name and checksum of the data.
        num_classes: Number of classes.
        settings: As for `LabelledTexts`.
    """

    def __init__(self, own: str, num_classes: int, data_dir: Path | None = None, **settings: int) -> None:
        super().__init__(data_dir=None, **settings)
        self.title, self.num_classes = own, num_classes  # type: ignore[misc]
        self.settings["own"] = own  # type: ignore[assignment]

    def read(self) -> Prepared:
        """Read the tables, hold them to the checksum, make the vocabulary and look every word up."""
        found, classes, splits, sha256, _ = load(find_place(self.title))
        check_contents(self.title, sha256)
        number = {name: index for index, name in enumerate(classes)}
        rows = {}
        for index, name in enumerate(SPLITS):
            chosen = np.flatnonzero(splits == index)
            rows[name] = Rows([found.texts[i] for i in chosen], [number[found.labels[i]] for i in chosen])
        del found
        return self.encoded(rows)


def check_contents(own: str, sha256: str) -> None:
    """Hold data to the checksum in their name.

    Raises:
        UserError: If they have changed since.
    """
    if not own.endswith(f"-{sha256[:12]}"):
        raise UserError(
            f"the data at {find_place(own).path} are not {own} any more: they have changed, to SHA-256 {sha256[:12]}. "
            "Put the former ones back, or ask for these by their path."
        )
