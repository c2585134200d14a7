"""Labelled texts from CSV, TSV, JSONL and Parquet: columns are chosen, and every row is checked. No torch here."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pebench.errors import UserError
from pebench.formatting import counted, first_line, quoted
from pebench.tasks.own.files import SPLIT_NAMES, files_by_split, require_train, text_of

TEXT_NAMES = ("text", "texts", "sentence", "review", "content", "document", "comment", "message", "body", "tweet")
LABEL_NAMES = ("label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "stars", "rating", "y")
SPLIT_COLUMN = "split"

Rows = Iterator[tuple[int, Sequence[Any]]]
"""Number of each row for messages, and its values in the order of the columns."""


@dataclass
class Texts:
    """Labelled texts, each with the name of its class.

    Args:
        texts: The texts.
        labels: The class of each, as text.
        splits: The split of each, where splits are given: ``train``, ``val`` or ``test``.
        remarks: Sentences on what was guessed.
    """

    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read_texts(path: Path, options: Mapping[str, str]) -> Texts:
    """Return the labelled texts of a file, or of a folder with a file for each split.

    Args:
        path: The file or folder.
        options: Names of the columns: ``text``, ``label`` and ``split``; those that are empty are guessed.

    Raises:
        UserError: If it cannot be read, lacks a column, or holds rows that cannot be.
    """
    files = files_by_split(path, tuple(READERS), "labelled texts")
    require_train({*files}, str(path))
    found = Texts()
    for split, paths in sorted(files.items()):
        for file in paths:
            add_rows(found, *columns_of(file), options, str(file), split)
    if found.splits:
        require_train({*found.splits}, str(path))
    return found


def add_rows(
    found: Texts, names: Sequence[str], rows: Rows, options: Mapping[str, str], place: str, split: str = ""
) -> None:
    """Add the rows of one table, each of them checked.

    Args:
        found: Takes the rows.
        names: Names of the columns.
        rows: The rows.
        options: Names of the columns to take, as in `read_texts`.
        place: The table's name in messages.
        split: The split that all of its rows are of; empty where a column says it, or nothing.

    Raises:
        UserError: For a missing column, and for rows that cannot be, with the first of them and their number.
    """
    chosen = chosen_columns(names, options, place, found.remarks)
    text_at, label_at = names.index(chosen["text"]), names.index(chosen["label"])
    split_at = names.index(chosen["split"]) if "split" in chosen and not split else None
    odd = _Odd(place)
    for line, row in rows:
        if len(row) != len(names):
            raise UserError(f"{place}, line {line}: expected {len(names)} columns, got {len(row)}.")
        text, label = row[text_at], row[label_at]
        if not isinstance(text, str) or not text.strip(" \t\n\ufeff") or "\0" in text:
            odd.add(line, chosen["text"], "a text with a word in it", text)
        if (name := class_name(label)) is None:
            odd.add(line, chosen["label"], "a label (a word, or a whole number)", label)
        found.texts.append(text)
        found.labels.append(name or "")
        if split_at is not None and (said := SPLIT_NAMES.get(str(row[split_at]).strip().lower())) is None:
            odd.add(line, chosen["split"], "train, validation or test", row[split_at])
        elif split or split_at is not None:
            found.splits.append(split or said or "")
    odd.refuse()


class _Odd:
    """Rows that cannot be: the first one of each column, and how many they are."""

    def __init__(self, place: str) -> None:
        self.place, self.first, self.count = place, dict[str, str](), dict[str, int]()

    def add(self, line: int, column: str, expected: str, value: object) -> None:
        got = f"{self.place}, line {line}, column {column!r}: expected {expected}, got {quoted(value)}."
        self.first.setdefault(column, got)
        self.count[column] = self.count.get(column, 0) + 1

    def refuse(self) -> None:
        for column, text in self.first.items():
            more = self.count[column] - 1
            raise UserError(text + (f" So are {more:,} more rows." if more else ""))


def class_name(label: Any) -> str | None:
    """Return the name of a label's class; None for what is no label: nothing, a fraction, or a list.

    Example:
        >>> class_name(3), class_name(" good "), class_name(True), class_name(2.0), class_name(0.5), class_name("")
        ('3', 'good', 'true', '2', None, None)
    """
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():  # as pandas writes whole numbers beside missing ones
        return str(int(label))
    if isinstance(label, int):
        return str(label)
    return (label.strip() or None) if isinstance(label, str) else None


def chosen_columns(names: Sequence[str], options: Mapping[str, str], place: str, remarks: list[str]) -> dict[str, str]:
    """Return the columns of text, label and split: those that are named, or those that their names suggest.

    Args:
        names: The columns that there are.
        options: The columns that were asked for; empty ones are guessed.
        place: The table's name in messages.
        remarks: Takes a sentence on what was guessed.

    Raises:
        UserError: If one is missing, or cannot be guessed.
    """
    listed = ", ".join(names) or "none"
    if len({*names}) < len(names):
        raise UserError(f"{place} has two columns of one name: {listed}.")
    chosen = {part: column for part in ("text", "label", "split") if (column := options.get(part))}
    for part, column in chosen.items():
        if column not in names:
            raise UserError(f"{place} has no column {column!r} (option {part}). It has: {listed}.")
    guessed = _guessed(names, chosen)
    for part in ("text", "label"):
        if part not in chosen | guessed:
            raise UserError(f"{place}: which column is the {part}? Say it, as {part}=NAME. It has: {listed}.")
    if guessed:
        remarks.append(f"columns by their names: {', '.join(f'{part}={name}' for part, name in guessed.items())}")
    return chosen | guessed


def _guessed(names: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that names suggest, of those that are not chosen."""
    lower = {name.lower(): name for name in reversed(names) if name not in chosen.values()}
    found, chosen = dict[str, str](), dict(chosen)
    for part, known in (("text", TEXT_NAMES), ("label", LABEL_NAMES), ("split", (SPLIT_COLUMN,))):
        if part not in chosen and (free := [lower[name] for name in known if name in lower]):
            found[part] = free[0]
    rest = [name for name in names if name not in (chosen | found).values()]
    lacking = [part for part in ("text", "label") if part not in chosen | found]
    # Of two columns where one is known, the other is plain.
    return found | {lacking[0]: rest[0]} if len(rest) == len(lacking) == 1 else found


def columns_of(path: Path) -> tuple[list[str], Rows]:
    """Return the names of a table's columns, and its rows.

    Raises:
        UserError: If it is no table.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: expected a table that ends in {', '.join(READERS)}.")
    return reader(path)


def _delimited(path: Path) -> tuple[list[str], Rows]:
    text = text_of(path)
    first = text.partition("\n")[0]
    # A table for Excel in countries whose decimal sign is the comma has semicolons.
    mark = "\t" if path.suffix.lower() in (".tsv", ".tab") else ";" if ";" in first and "," not in first else ","
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)

    def rows() -> Rows:
        try:
            for row in reader:
                if row:  # not an empty line
                    yield reader.line_num, row
        except csv.Error as error:
            raise UserError(
                f"{path}, line {reader.line_num}: {error}. Look for a quotation mark that is missing or doubled."
            ) from error

    found = rows()
    _, names = next(found, (0, []))
    return [name.strip() for name in names], found


def _json_lines(path: Path) -> tuple[list[str], Rows]:
    lines = text_of(path).split("\n")

    def parsed() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{path}, line {number} is no JSON: {first_line(error)}.") from error
            if not isinstance(value, dict):
                raise UserError(f"{path}, line {number}: expected an object with the columns, got {first_line(line)}.")
            yield number, value

    first = next(parsed(), (0, {}))[1]
    names = list(first)
    return names, ((number, [value.get(name) for name in names]) for number, value in parsed())


def _parquet(path: Path) -> tuple[list[str], Rows]:
    import pyarrow.parquet

    try:
        with path.open("rb") as file:  # opened here: pyarrow takes some names for addresses
            table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True).read()
    except Exception as error:  # of many kinds
        raise UserError(f"{path} cannot be read as a table: {first_line(error)}. Is it damaged? Replace it.") from error

    def rows() -> Rows:
        try:
            for batch in table.to_batches(max_chunksize=10_000):
                start = counter[0]
                values = [column.to_pylist() for column in batch.columns]
                counter[0] += batch.num_rows
                yield from enumerate(zip(*values, strict=True), start + 1)
        except (UnicodeDecodeError, ValueError) as error:  # of a damaged file, a text may not even be UTF-8
            raise UserError(f"{path} has a text that is not in UTF-8: {first_line(error)}.") from error

    counter = [0]
    return list(table.column_names), rows()


READERS: Mapping[str, Callable[[Path], tuple[list[str], Rows]]] = {
    ".csv": _delimited, ".tsv": _delimited, ".tab": _delimited, ".jsonl": _json_lines, ".ndjson": _json_lines,
    ".parquet": _parquet,
}  # fmt: skip
"""Readers of tables by the ending of a file's name."""


def check_classes(found: Texts, place: str) -> list[str]:
    """Return the names of the classes in their order; numbers in that of numbers.

    Raises:
        UserError: If there is one class alone, or labels that are no classes.
    """
    classes = sorted({*found.labels}, key=class_order)
    if not found.texts:
        raise UserError(f"{place} has no rows.")
    if len(classes) < 2:
        raise UserError(f"{place} has one class alone, {classes[0]!r}: expected two at least.")
    if len(classes) > max(2, len(found.labels) // 2):
        raise UserError(
            f"{place}: the column of labels has {len(classes):,} different values in "
            f"{counted(len(found.labels), 'row')}, as {classes[0]!r} and {classes[1]!r}: these are no classes. "
            "Name another column, as label=NAME."
        )
    return classes


def class_order(name: str) -> tuple[int, str]:
    """Return the key that sorts names of classes: whole numbers by size, then words."""
    return (int(name), "") if name.lstrip("-").isdecimal() and name.isascii() else (sys.maxsize, name)
