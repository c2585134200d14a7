"""Files that are written whole or not at all."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

PART = ".*.part"
"""Pattern of the files that a process leaves when it is killed while it writes."""


FULL = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the errors that say that a disk, or a user's share of it, is full."""


def full_disk(error: OSError, path: Path) -> OSError:
    """Return the same error, with the path and what is free there if it says that a disk is full.

    Args:
        error: The error, which may name no file, as those of writing do.
        path: File that was being written; its folder need not be there.
    """
    if error.errno not in FULL:
        return error
    there = next(folder for folder in path.absolute().parents if folder.is_dir())
    space = shutil.disk_usage(there)
    text = f"{os.strerror(error.errno)} ({space.free:,} of {space.total:,} bytes"
    if hasattr(os, "statvfs"):  # a disk is full, too, without room for the names of further files
        nodes = os.statvfs(there)
        text += f" and {nodes.f_favail:,} of {nodes.f_files:,} files" * bool(nodes.f_files)
    return OSError(error.errno, f"{text} are free)", str(path))


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
    # Its name is unique, as two containers that share the folder may have processes of one number. It lies beside
    # `path`, on the same file system, where a rename is atomic.
    temporary = path.with_name(f".{path.name}-{uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno in FULL:
            raise full_disk(error, path) from error
        if error.filename == str(temporary):
            error.filename, error.filename2 = str(path), None  # the name that the caller knows
        raise
    finally:
        with contextlib.suppress(OSError):  # where its folder is none, that is the error to tell
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
