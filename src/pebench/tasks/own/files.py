"""Files of a user: found by split, and read as text in UTF-8. No torch here."""

import codecs
import re
from pathlib import Path

from pebench.errors import UserError

SPLITS = ("train", "val", "test")

SPLIT_NAMES = {
    "train": "train", "training": "train",
    "val": "val", "valid": "val", "validation": "val", "dev": "val", "eval": "val",
    "test": "test", "testing": "test",
}  # fmt: skip
"""Names of splits in files, folders and columns, in lower case, and what they are here."""

WORDS = re.compile(r"[a-z]+")


def split_of(name: str) -> str | None:
    """Return the split that the name of a file or folder says, None if it says none.

    Example:
        >>> split_of("train-00000-of-00001"), split_of("reviews.dev"), split_of("trained")
        ('train', 'val', None)
    """
    return next((SPLIT_NAMES[word] for word in WORDS.findall(name.lower()) if word in SPLIT_NAMES), None)


def text_of(path: Path) -> str:
    """Return the text of a file in UTF-8, whichever its ends of lines, without a byte order mark.

    Raises:
        UserError: If it is not such a text, with the first byte that is none.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{path} is not text in UTF-8, but in UTF-16: convert it, with iconv -f UTF-16 -t UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path} is not text in UTF-8: {error} (line {line}). In Latin-1, as old tables of Excel: convert it, "
            "with iconv -f LATIN1 -t UTF-8."
        ) from error
    if "\0" in text:
        raise UserError(f"{path} has a NUL character at character {text.index(chr(0))}: expected text in UTF-8.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def files_by_split(path: Path, endings: tuple[str, ...], what: str) -> dict[str, list[Path]]:
    """Return the files of each split; those of no split under the name ``""``.

    Args:
        path: A file, or a folder with a file for each split (``train.csv``, ``test.csv``), or with others alone.
        endings: Endings of file names, in lower case.
        what: The kind of data, for messages.

    Raises:
        UserError: If nothing is there, or only some files say their split.
    """
    if path.is_file():
        return {"": [path]}
    if not path.is_dir():
        raise UserError(f"{what}: there is no file or folder {str(path)!r}.")
    found: dict[str, list[Path]] = {}
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        if file.suffix.lower() in endings and not file.name.startswith("."):
            # A folder may say it, too: train/part-1.csv
            parts = file.relative_to(path).with_suffix("").parts
            found.setdefault(next(filter(None, map(split_of, parts)), ""), []).append(file)
    if not found:
        raise UserError(f"{what}: the folder {str(path)!r} has no file that ends in {', '.join(endings)}.")
    if "" in found and len(found) > 1:
        raise UserError(
            f"{what}: of the files in {str(path)!r} some name a split ({', '.join(sorted(set(found) - {''}))}), but "
            f"{found[''][0].name} names none: expected train, val or test in each name, or in none."
        )
    return found


def require_train(found: set[str], place: str) -> None:
    """Refuse given splits without one to train on.

    Raises:
        UserError: With the splits that are there.
    """
    if "" not in found and "train" not in found:
        raise UserError(f"{place} has the splits {', '.join(sorted(found))} alone: expected train, too.")
