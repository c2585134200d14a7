"""Texts without the places of a machine: a record is published, and its log names folders, a user and a host."""

import contextlib
import os
import re
import socket
import sys
import tempfile
from pathlib import Path

ABSOLUTE = re.compile(r"""
    (?<![\w.~/:\\])                              # no part of a relative path or of an address of the web
    (?:file://)?
    (?: (?<=") / [^"\n]* / (?=[^"\n/]+")         # in quotes, where a folder's name may have blanks
      | (?<=') / [^'\n]* / (?=[^'\n/]+')
      | (?:/|[A-Za-z]:[\\/]) (?:[^\s/\\'"<>|:,;()]+[\\/])+ )
""", re.VERBOSE)  # fmt: skip
"""The folders of an absolute path, of POSIX or of Windows, before its last name."""


def without_places(text: str) -> str:
    """Return a text without absolute paths and the name of this machine.

    A path below a folder that Python imports from, the current one or that of temporary files becomes a relative one,
    and one below the user's own begins with ``~``; of another the last name stays.

    Example:
        >>> without_places('File "/home/me/my code/model.py", line 3: no /data/imdb/train.txt; see https://x.org/a/b')
        'File "model.py", line 3: no train.txt; see https://x.org/a/b'
    """
    for folder in _folders():
        text = text.replace(f"{folder}{os.sep}", "")
    if len(Path(home := os.path.expanduser("~")).parts) > 1:
        text = text.replace(home, "~")
    text = ABSOLUTE.sub("", text)
    host = socket.gethostname()
    return re.sub(rf"\b{re.escape(host)}\b", "host", text) if len(host) > 3 and host != "localhost" else text


def _folders() -> list[str]:
    """Return the folders that paths are shortened by, the longest first."""
    known = {*sys.path, str(Path(__file__).parents[3])}
    with contextlib.suppress(OSError):  # the current folder may be gone, and none may be there for temporary files
        known |= {os.getcwd(), tempfile.gettempdir()}
    # Not the root, nor a folder right below it.
    found = {folder.rstrip(os.sep) for folder in known if os.path.isabs(folder) and len(Path(folder).parts) > 2}
    return sorted(found, key=len, reverse=True)
