"""Files that are written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

PART = ".*.part"
"""Pattern of the files that a process leaves when it is killed while it writes."""


@contextlib.contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a new file to write, and move it to `path` when it is complete.

    Until then, and after an error, the file that was at `path` stays.

    Args:
        path: Where the file goes; its folder is made if it is not there.
        durable: Wait until the disk has the file, so that a power cut leaves either the new one or the old one.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "runs" / "greeting.txt"
        >>> with replacing(place) as file:
        ...     _ = file.write(b"hello")
        >>> place.read_text(), [*place.parent.glob(PART)]
        ('hello', [])
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Its name is unique, as two containers that share the folder may have processes of one number. It lies beside
    # `path`, on the same file system, where a rename is atomic.
    temporary = path.with_name(f".{path.name}-{uuid4().hex}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # a file that is half written must not keep a full disk full


def write_text(path: Path, text: str, durable: bool = False) -> None:
    """Write a text in UTF-8 to a file, whole or not at all; see `replacing`.

    Args:
        path: Where the file goes; its folder is made if it is not there.
        text: Contents of the file.
        durable: Wait until the disk has the file.
    """
    with replacing(path, durable) as file:
        file.write(text.encode())
