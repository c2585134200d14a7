"""Event files of TensorBoard without the name of this machine, as people share them."""

import contextlib
import socket
from collections.abc import Iterator
from types import SimpleNamespace

HOST = "host"
"""Stand-in for the name of the machine in the names of event files."""


@contextlib.contextmanager
def nameless_host() -> Iterator[None]:
    """Have TensorBoard name the files that it begins here without the name of this machine."""
    from tensorboard.summary.writer import event_file_writer

    # It asks by its own reference to the module, which nothing else sees.
    event_file_writer.socket = SimpleNamespace(gethostname=lambda: HOST)
    try:
        yield
    finally:
        event_file_writer.socket = socket
