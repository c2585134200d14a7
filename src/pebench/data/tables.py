"""Tables of texts, with or without labels: read from parquet files, and held to what their data set promises."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from pebench.errors import UserError
from pebench.formatting import first_line, quoted

LABEL = "label"
"""The column of labels."""


@dataclass(frozen=True)
class Columns:
    """The columns that a table must have.

    Args:
        text: Name of the column of texts.
        classes: Number of labels, which are the whole numbers from 0; ``None`` where texts have none.
        blank: True if texts without a word belong to the data set.
    """

    text: str = "text"
    classes: int | None = None
    blank: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [self.text] if self.classes is None else [self.text, LABEL]


class Rows(NamedTuple):
    """The rows of a table: texts, and as many labels, or none."""

    texts: list[str]
    labels: list[int]

    def select(self, index: Tensor) -> "Rows":
        """Return some rows in the order of their indices."""
        chosen = index.tolist()
        return Rows([self.texts[i] for i in chosen], [self.labels[i] for i in chosen] if self.labels else [])

    @property
    def sha256(self) -> str:
        """SHA-256 of all texts and labels, however a file packs them, in 64 hex digits."""
        digest = hashlib.sha256()
        for row in itertools.zip_longest(self.texts, self.labels):
            digest.update(json.dumps(row).encode())
        return digest.hexdigest()


def joined(parts: Iterable[Rows]) -> Rows:
    """Return the rows of several tables, one after the other."""
    texts, labels = list[str](), list[int]()
    for part in parts:
        texts += part.texts
        labels += part.labels
    return Rows(texts, labels)


def read_table(path: Path, columns: Columns) -> Rows:
    """Return the rows of a parquet file.

    Raises:
        UserError: If the file cannot be read, lacks a column, or holds a row that cannot be.
    """
    import pyarrow.parquet

    try:
        # Opened here: pyarrow takes some names for addresses.
        with path.open("rb") as file:
            table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True).read()
        # Of a damaged file, a text may not even be UTF-8.
        values = {name: table[name].to_pylist() for name in columns.names if name in table.column_names}
    except Exception as error:  # of many kinds
        raise UserError(f"{path} cannot be read as a table: {first_line(error)}. Is it damaged? Replace it.") from error
    return checked_rows(values, columns, str(path))


def checked_rows(values: Mapping[str, Sequence[Any]], columns: Columns, place: str) -> Rows:
    """Return the rows of a table, each of them checked; a text that begins with a byte order mark loses that.

    Args:
        values: The columns, by name.
        columns: The columns that it must have.
        place: The table's name in messages.

    Raises:
        UserError: For the first row that cannot be, which it names; rows count from 0.
    """
    if lacking := [name for name in columns.names if name not in values]:
        raise UserError(f"{place} lacks a column: expected {', '.join(columns.names)}, but {lacking[0]!r} is missing.")
    texts = [text.removeprefix("\ufeff") if isinstance(text, str) else text for text in values[columns.text]]
    labels = list(values[LABEL]) if columns.classes is not None else []
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise _odd(place, columns.text, row, "a text", text)
        if "\0" in text:
            raise _odd(place, columns.text, row, "a text without NUL characters", text)
        if not columns.blank and not text.strip():
            raise _odd(place, columns.text, row, "a text with a word in it", text)
    for row, label in enumerate(labels):
        # True and 1.0 equal 1, but a column of them is not one of labels.
        if type(label) is not int or not 0 <= label < (columns.classes or 0):
            raise _odd(place, LABEL, row, f"a whole number from 0 to {(columns.classes or 0) - 1}", label)
    return Rows(texts, labels)


def _odd(place: str, column: str, row: int, expected: str, value: object) -> UserError:
    return UserError(f"{place}, column {column!r}, row {row}: expected {expected}, got {quoted(value)}.")
