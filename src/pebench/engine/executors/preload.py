"""Imported once by the process that runs are forked from, so that each of them starts at once."""

import contextlib
import importlib
import os
import threading

from pebench.runs.collector import paused_garbage_collection


def _watch(parent: int, imported: threading.Event) -> None:
    """End with the command that this is for: nobody waits for imports that nobody needs."""
    while not imported.wait(0.1):
        if os.getppid() != parent:
            os._exit(0)


_imported = threading.Event()
_watcher = threading.Thread(target=_watch, args=(os.getppid(), _imported), daemon=True)
_watcher.start()
with contextlib.suppress(Exception), paused_garbage_collection():  # whatever is wrong, the run itself will say
    import torch.utils.tensorboard  # noqa: F401 - or every run would import it

    import pebench.data.text
    import pebench.training.runner  # noqa: F401 - what every run needs
    from pebench.encodings import registry
    from pebench.training import environment

    environment.commit()  # of what is imported here, whatever the checkout has when a run ends
    environment.code()  # likewise
    for card in registry.encoding_cards().values():
        importlib.import_module(card.module)
_imported.set()
_watcher.join()  # a process is forked from one thread alone
