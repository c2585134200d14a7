"""Readers of tables: the names of their columns, and their rows. No torch here."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pebench.errors import UserError
from pebench.formatting import first_line
from pebench.tasks.own.files import text_of

Rows = Iterator[tuple[int, Sequence[Any]]]
"""Number of each row for messages, and its values in the order of the columns."""


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
                raise UserError(f"{path}, line {number} is not JSON: {first_line(error)}.") from error
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


def _words_by_line(path: Path) -> tuple[list[str], Rows]:
    """Read a word and its tag from each line, the first and the last of its columns; an empty line ends a sentence."""
    universal = path.suffix.lower() == ".conllu"  # ten columns: the word is the second, its part of speech the fourth
    word_at, tag_at, least = (1, 3, 10) if universal else (0, -1, 2)

    def rows() -> Rows:
        words, tags, start = list[str](), list[str](), 0
        for number, line in enumerate([*text_of(path).split("\n"), ""], 1):
            parts = line.split("\t") if universal else line.split()
            if not line.strip():
                if words:
                    yield start, (words, tags)
                words, tags = [], []
            elif line.startswith("-DOCSTART-") or (universal and (line.startswith("#") or not parts[0].isdecimal())):
                continue  # the start of a document, a comment, or a contraction whose words follow
            elif len(parts) < least:
                raise UserError(f"{path}, line {number}: expected a word and its tag, got {first_line(line)!r}.")
            else:
                start = start if words else number
                words.append(parts[word_at])
                tags.append(parts[tag_at])

    return ["tokens", "tags"], rows()


READERS: Mapping[str, Callable[[Path], tuple[list[str], Rows]]] = {
    ".csv": _delimited, ".tsv": _delimited, ".tab": _delimited, ".jsonl": _json_lines, ".ndjson": _json_lines,
    ".parquet": _parquet, ".conll": _words_by_line, ".bio": _words_by_line, ".iob": _words_by_line,
    ".conllu": _words_by_line,
}  # fmt: skip
"""Readers of tables by the ending of a file's name."""
