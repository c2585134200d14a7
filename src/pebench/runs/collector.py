"""When Python may spare itself the search for garbage."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """Around what makes very many objects and keeps them, as imports and reading do: up to a quarter of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
