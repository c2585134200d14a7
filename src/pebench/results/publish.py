"""Writes pages to files, in every format."""

from collections.abc import Callable
from pathlib import Path

from pebench.errors import UserError
from pebench.results import figures
from pebench.results.page import Page
from pebench.results.writers.csv import to_csv
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record, write_jsonl

FORMATS: dict[str, Callable[[Page], str]] = {
    "markdown": markdown, "html": html, "latex": latex, "csv": to_csv, "json": to_json,
}  # fmt: skip
"""Writer of each format. A new format is a line here."""
ENDINGS = {"markdown": ".md", "latex": ".tex"}
"""Endings of file names where they are not the name of the format."""


def publish(page: Page, records: list[Record], prefix: Path, source: Path | None = None) -> list[Path]:
    """Write a page in every format, its pictures, and the records that it is made of.

    Args:
        page: The page to write.
        records: All its records, those of runs that select too.
        prefix: The files' path without its ending: ``results/core``.
        source: File that the records were read from; it is left as it is.

    Returns:
        The files that were written.

    Raises:
        UserError: If the prefix cannot begin a file's name.
    """
    if prefix.is_dir():
        raise UserError(f"--output expects how files' names begin, such as {prefix / 'page'}, got a folder: {prefix}.")
    if prefix.suffix in (*map(_ending, FORMATS), ".jsonl"):
        raise UserError(
            f"--output expects how files' names begin, {prefix.with_suffix('')}, got one of them: {prefix}."
        )
    texts = {_with_ending(prefix, ending): text for ending, text in written(page, prefix.name).items()}
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    collection = _with_ending(prefix, ".jsonl")
    if source is None or not collection.exists() or not collection.samefile(source):
        write_jsonl(records, collection)
    return [*texts, collection, *figures.write(page, _with_ending(prefix, "-figures"))]


def written(page: Page, name: str) -> dict[str, str]:
    """Return the text of every format by its ending.

    Args:
        page: The page to write.
        name: Name of the files without ending, and beginning of that of the folder of their pictures.
    """
    writers = FORMATS | {"markdown": lambda page: markdown(page, f"{name}-figures")}  # it links to them
    return {_ending(form): write(page) for form, write in writers.items()}


def _ending(form: str) -> str:
    return ENDINGS.get(form, f".{form}")


def _with_ending(prefix: Path, ending: str) -> Path:
    return prefix.with_name(prefix.name + ending)
