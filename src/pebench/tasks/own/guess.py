"""The task that a path means: its kind is guessed from files' endings. No torch here."""

from pathlib import Path

from pebench.errors import UserError
from pebench.tasks.own import image_folder, running_text
from pebench.tasks.own.readers import READERS

KINDS = {"images": image_folder.ENDINGS, "texts": tuple(READERS), "corpus": running_text.ENDINGS}
"""Endings of files by the task that takes them."""


def task_of_path(path: str) -> str:
    """Return the name of the task on data at a path, as ``--task`` takes it.

    Args:
        path: A file or folder.

    Raises:
        UserError: If nothing is there, or its kind is not plain.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise UserError(f"--data expects a file or folder, but there is no {path!r}.")
    found = {file.suffix.lower() for file in ([place] if place.is_file() else place.rglob("*")) if file.is_file()}
    # A folder of images may hold a table about them, and one of tables a text that explains them.
    for kind, endings in KINDS.items():
        if found & {*endings}:
            return f"{kind}(path={path!r})"
    known = "; ".join(f"{kind}: {', '.join(endings)}" for kind, endings in KINDS.items())
    raise UserError(f"--data {path}: expected {known}; got {', '.join(sorted(found)) or 'no files'}.")
