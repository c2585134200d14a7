"""Files that are there whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

PART = ".*.part"
"""Matches what a process that was killed while it wrote has left."""


@contextlib.contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which takes its place when it is complete: until then, and after an error, the old one stays.

    Args:
        path: Its place; the folder is made if it is not there.
        durable: Wait until the disk has it, so that a power cut leaves the new one or the old one too.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "runs" / "greeting.txt"
        >>> with replacing(place) as file:
        ...     _ = file.write(b"hello")
        >>> place.read_text(), [*place.parent.glob(PART)]
        ('hello', [])
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{uuid4().hex}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # half of one would keep a full disk full
