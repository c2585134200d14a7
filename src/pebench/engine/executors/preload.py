"""Imported once by the process that runs are forked from, so that each of them starts at once."""

import contextlib
import importlib
import threading

from pebench.runs.collector import paused_garbage_collection
from pebench.runs.parent import end_with_parent

_imported = threading.Event()
_watcher = end_with_parent(until=_imported)  # nobody waits for imports that nobody needs
with contextlib.suppress(Exception), paused_garbage_collection():  # the run itself reports what is wrong
    import torch.utils.tensorboard  # noqa: F401 - or every run would import it

    import pebench.data.text
    import pebench.training.runner  # noqa: F401 - every run needs it
    from pebench.encodings import registry
    from pebench.training import environment

    environment.commit()  # now: the checkout may have another one when a run ends
    environment.code()  # likewise
    for card in registry.encoding_cards().values():
        importlib.import_module(card.module)
_imported.set()
_watcher.join()  # a process is forked from one thread alone
