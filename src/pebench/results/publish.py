"""Writes pages to files: in every format, or as results are published, one folder for each suite."""

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
from pebench.runs.records import COLLECTION, Record, write_jsonl

FORMATS: dict[str, Callable[[Page], str]] = {
    "markdown": markdown, "html": html, "latex": latex, "csv": to_csv, "json": to_json,
}  # fmt: skip
"""Writer of each format. A new format is a line here."""
ENDINGS = {"markdown": ".md", "latex": ".tex"}
"""Endings of file names where they are not the name of the format."""
PAGE, FIGURES, NOTES = "page.md", "figures", "notes.md"
"""Names in a published folder: the page, the folder of the pictures that it shows, and what was written by hand."""


def publish(page: Page, records: list[Record], prefix: Path, source: Path | None = None) -> list[Path]:
    """Write a page in every format, its pictures, and the records that it is made of.

    Args:
        page: The page to write.
        records: All its records, those of runs that select too.
        prefix: The files' path without its ending: ``exports/core``.
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
    # All made before the first is written: an error in one format leaves the old page whole.
    texts = {_with_ending(prefix, ending): text for ending, text in written(page, prefix.name).items()}
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    collection = _with_ending(prefix, ".jsonl")
    _write_records(records, collection, source)
    return [*texts, collection, *figures.write(page, _with_ending(prefix, "-figures"))]


def publish_folder(page: Page, records: list[Record], folder: Path, source: Path | None = None) -> list[Path]:
    """Write a page as results are published: ``page.md``, the pictures that it shows, and its records.

    Args:
        page: The page to write.
        records: All its records, those of runs that select too.
        folder: Folder to write to, ``results/core``; it is made if need be, and its ``notes.md`` is linked.
        source: File or folder that the records were read from; its file of records is left as it is.

    Returns:
        The files that were written.

    Raises:
        UserError: If the folder is a file.
    """
    if folder.is_file():
        raise UserError(f"--publish expects a folder, such as {folder.with_suffix('')}, got a file: {folder}.")
    text = published_text(page, folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(text, encoding="utf-8")
    _write_records(records, folder / COLLECTION, source)
    return [folder / PAGE, folder / COLLECTION, *figures.write(page, folder / FIGURES, png=False)]


def published_text(page: Page, folder: Path) -> str:
    """Return the text of a published folder's page, with links to what lies beside it.

    Args:
        page: The page to write.
        folder: The published folder.
    """
    notes = f"[Notes]({NOTES}) · " if (folder / NOTES).exists() else ""
    title, _, rest = markdown(page, FIGURES).partition("\n\n")
    return f"{title}\n\n{notes}[Records]({COLLECTION})\n\n{rest}"


def _write_records(records: list[Record], collection: Path, source: Path | None) -> None:
    """Write the records to a file, unless they were read from it, or from the folder that it is the records of."""
    # A page that is made again from its published records leaves them as they are, byte for byte.
    if source is not None and collection.exists():
        read = source / COLLECTION if source.is_dir() else source
        if read.exists() and read.samefile(collection):
            return
    write_jsonl(records, collection)


def written(page: Page, name: str) -> dict[str, str]:
    """Return the text of every format by its ending.

    Args:
        page: The page to write.
        name: Name of the files without ending, and beginning of that of the folder of their pictures.
    """
    writers = FORMATS | {"markdown": lambda page: markdown(page, f"{name}-figures")}  # it links to them
    return {_ending(form): write(page) for form, write in writers.items()}


def in_format(prefix: Path, form: str) -> Path:
    """Return the file of a page in a format, from the files' path without its ending."""
    return _with_ending(prefix, _ending(form))


def _ending(form: str) -> str:
    return ENDINGS.get(form, f".{form}")


def _with_ending(prefix: Path, ending: str) -> Path:
    return prefix.with_name(prefix.name + ending)
