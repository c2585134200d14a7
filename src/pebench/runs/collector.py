"""A pause of Python's garbage collector."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Pause the search for garbage while very many objects are made and kept, as imports and reading do.

    It saves up to a quarter of their time. A context manager, and a decorator of functions.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
