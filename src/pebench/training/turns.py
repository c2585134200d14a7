"""Runs that share a process take turns: each finds the process's settings and random numbers as it left them.

A GPU works on what a run has launched while the next ones launch theirs, each run on a stream of its own.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from pebench.training.guests import SETTINGS, now

_thread = threading.local()


class Turns:
    """Has one of several threads go on at a time, in the order in which they ask.

    Args:
        device: ``cuda`` to give each run a stream of its own there; else ``cpu``.
    """

    def __init__(self, device: str) -> None:
        self._cuda, self._start = device == "cuda", _state()
        self._changed, self._waiting = threading.Condition(), deque[object]()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn, and have it until the context ends, but for the times at which a callback passes it on."""
        self._take()
        try:
            _restore(self._start)
            stream = torch.cuda.stream(torch.cuda.Stream()) if self._cuda else nullcontext()
            with stream:
                _thread.turns = self
                yield
        finally:
            _thread.turns = None
            self._give()

    def pass_on(self) -> None:
        """Let the others go on, and wait for the next turn."""
        state = _state()
        launched = torch.cuda.current_stream().record_event() if self._cuda else None
        self._give()
        if launched:
            launched.synchronize()  # now, or this run's next turn would begin with waiting
        self._take()
        _restore(state)

    def _take(self) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket)

    def _give(self) -> None:
        with self._changed:
            self._waiting.popleft()
            self._changed.notify_all()


class PassesTurns(Callback):
    """Passes a run's turn on before each step that Lightning makes, and after each batch that is evaluated.

    Args:
        turns: The turns that the run takes.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return False: a turn is as long as the steps between two that Lightning makes."""
        return False

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Pass the turn on."""
        self._turns.pass_on()

    def on_validation_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Pass the turn on."""
        self._turns.pass_on()

    def on_test_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Pass the turn on."""
        self._turns.pass_on()


def turn_callbacks() -> list[Callback]:
    """Return the callback by which the run of this thread takes turns; none if it has the process to itself."""
    turns = turns_of_this_run()
    return [PassesTurns(turns)] if turns else []


def turns_of_this_run() -> Turns | None:
    """Return the turns that the run of this thread takes; None if it has the process to itself."""
    return getattr(_thread, "turns", None)


def _random() -> tuple[torch.Tensor, torch.Tensor | None]:
    on_card = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), on_card


def _set_random(state: tuple[torch.Tensor, torch.Tensor | None]) -> None:
    ours, on_card = state
    torch.set_rng_state(ours)
    if on_card is not None:
        torch.cuda.set_rng_state(on_card)


def _state() -> list[Any]:
    """Return what a run finds in the process and may change: settings, and random numbers."""
    return [*(now(read) for read, _ in SETTINGS.values()), _random()]


def _restore(state: list[Any]) -> None:
    *settings, random = state
    for (read, write), value in zip(SETTINGS.values(), settings, strict=True):
        if now(read) != value:
            write(value)
    _set_random(random)
