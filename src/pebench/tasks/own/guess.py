"""The task that a path means: its kind is guessed from files' endings. No torch here."""

from pathlib import Path

from pebench.errors import UserError
from pebench.tasks.own.tables import READERS

TABLES = tuple(READERS)


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
    kinds = {"texts": TABLES}
    for kind, endings in kinds.items():
        if found & {*endings}:
            return f"{kind}(path={path!r})"
    raise UserError(f"--data {path}: expected {', '.join(TABLES)}; got {', '.join(sorted(found)) or 'no files'}.")
