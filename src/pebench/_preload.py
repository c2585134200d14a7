"""Imported once by the process that runs are forked from, so that each of them starts at once."""

import contextlib
import os
import signal

from pebench.garbage import no_search_for_garbage

signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # Ctrl-C while importing: no traceback of ours

with contextlib.suppress(Exception), no_search_for_garbage():  # whatever is wrong, the run itself will say
    import torch.utils.tensorboard  # noqa: F401 - or every run would import it

    import pebench.data.text
    import pebench.runner  # noqa: F401
