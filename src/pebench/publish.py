"""Pages written to files, in every format there is."""

from collections.abc import Callable
from pathlib import Path

from pebench import figures
from pebench.errors import UserError
from pebench.export import to_csv, to_json
from pebench.latex import latex
from pebench.page import Page
from pebench.records import Record, write_jsonl
from pebench.report import markdown
from pebench.web import html

WRITERS: dict[str, Callable[[Page], str]] = {
    ".md": markdown, ".html": html, ".tex": latex, ".csv": to_csv, ".json": to_json,
}  # fmt: skip
"""Ending of a file to what makes its text. A new format is a line here."""


def publish(page: Page, records: list[Record], prefix: Path, source: Path | None = None) -> list[Path]:
    """Write a page in every format, its pictures, and the records that it is made of.

    Args:
        page: What to write.
        records: All of them, those that selected settings too.
        prefix: The files' path without its ending: ``results/core``.
        source: What the records were read from; it is left as it is.

    Returns:
        The files.

    Raises:
        UserError: If the prefix is no beginning of a file's name.
    """
    if prefix.is_dir():
        raise UserError(f"--output expects how files' names begin, such as {prefix / 'page'}, got a folder: {prefix}.")
    texts = {_with_ending(prefix, ending): write(page) for ending, write in WRITERS.items()}
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    collection = _with_ending(prefix, ".jsonl")
    if source is None or not collection.exists() or not collection.samefile(source):
        write_jsonl(records, collection)
    return [*texts, collection, *figures.write(page, _with_ending(prefix, "-figures"))]


def _with_ending(prefix: Path, ending: str) -> Path:
    return prefix.with_name(prefix.name + ending)
