"""Encodings that do not leave their process as it was: plug-ins of the tests beside this file."""

import multiprocessing
import os
import sys
import threading
import time

import torch
from torch import Tensor

from pebench.encodings import EncodingSpec, PositionalEncoding


class Guest(PositionalEncoding):
    """Gives no position, and does something once."""

    blind = True
    done = False

    def prepare(self, positions: Tensor) -> Tensor:
        if not type(self).done:
            type(self).done = True
            self.act()
        return positions

    def act(self) -> None:
        """Do it."""


class Sets(Guest):
    """Sets what torch is asked for when it is built, as it is the simplest way to other numbers."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        torch.set_default_dtype(torch.float64)


class Patches(Guest):
    """Replaces functions of torch."""

    def act(self) -> None:
        torch.nn.functional.gelu = lambda x, *_, **__: x  # type: ignore[assignment]
        torch.nn.LayerNorm.forward = lambda _, x: x  # type: ignore[method-assign]


class LeavesThread(Guest):
    """Leaves a thread that never ends."""

    def act(self) -> None:
        threading.Thread(target=threading.Event().wait, name="left behind").start()


class LeavesChild(Guest):
    """Leaves a process that multiprocessing would wait for."""

    def act(self) -> None:
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)).start()


class LeavesSession(Guest):
    """Leaves a process that no signal to its parent's group reaches, with every file of its parent open."""

    def act(self) -> None:
        if not os.fork():
            os.setsid()
            time.sleep(60)
            os._exit(0)


class Exits(Guest):
    """Ends its process in the middle."""

    def act(self) -> None:
        os._exit(75)


class ExitsAtOnce(Guest):
    """Ends its process when it is built."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        os._exit(75)


class Leaves(Guest):
    """Ends the program when it is built, as a script would."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        sys.exit(75)
