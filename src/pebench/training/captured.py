"""Captured steps: the arithmetic of a training step as one CUDA graph for each shape of batch, launched at once.

A small model's step is a few hundred kernels, each of which takes a GPU less time than its launch takes the host. A
graph launches all of them by one call. What it holds is the work between a batch and the new weights: forward,
backward, clipping and the optimizer; a batch is gathered and augmented before, as ever.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

log = logging.getLogger(__name__)

WARM_UP = 3
"""Steps with a shape before its capture: they choose kernels and make what is made on first use."""

SHAPES = 4
"""Shapes that are captured at most: each keeps the memory of a step. Batches of texts have hundreds."""

Step = Callable[[tuple[Tensor, ...]], None]


class Recorder(Protocol):
    """Records the work that a function gives to a device; see `CudaRecorder`."""

    def side(self) -> AbstractContextManager[Any]:
        """Return a context in which steps warm up."""

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a function that repeats the work of another, which is not done yet."""


class CudaRecorder:
    """Records CUDA graphs.

    Steps warm up on a stream of their own: what backward keeps of a parameter belongs to the stream that made it, and
    one of the ordinary stream cannot be captured.
    """

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()

    @contextmanager
    def side(self) -> Iterator[None]:
        """Use the stream of its own, which waits for the ordinary one, and is waited for."""
        self._stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            torch.cuda.current_stream().wait_stream(self._stream)

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Capture; errors of what cannot be captured are PyTorch's."""
        graph = torch.cuda.CUDAGraph()
        # Other runs of the process may wait for the card meanwhile, which by default would end the capture.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            function()
        return graph.replay


def recorder_of(device: torch.device) -> Recorder | None:
    """Return a recorder for a device; None where there is none of its kind."""
    return CudaRecorder() if device.type == "cuda" else None


class CapturedStep:
    """A step that is repeated from a recording, once a shape has warmed up.

    Args:
        step: Makes a whole step with a batch: forward, backward of new gradients, clipping, optimizer.
        recorder: Records steps.
        host: Returns what the processor keeps beside the device, such as its random numbers' state. A step that changes
            it is not recorded: a recording would repeat the numbers that it drew.

    Attributes:
        replayed: Steps that were repeated from a recording.
        reason: Why some steps were not; empty while there is nothing but warm-ups to tell.
    """

    def __init__(self, step: Step, recorder: Recorder, host: Callable[[], Any] = lambda: None) -> None:
        self.replayed, self.reason = 0, ""
        self._step, self._recorder, self._host = step, recorder, host
        self._warm: dict[Any, int] = {}
        self._recorded: dict[Any, tuple[tuple[Tensor, ...], Callable[[], None]]] = {}
        self._failed = False

    def __call__(self, batch: Any) -> None:
        """Make a step with a batch."""
        if self._failed or not (isinstance(batch, (tuple, list)) and all(isinstance(part, Tensor) for part in batch)):
            self._fall_back("a batch is no tuple of tensors")
            self._step(batch)
            return
        shape = tuple((part.shape, part.dtype) for part in batch)
        if shape not in self._recorded and not self._record(shape, tuple(batch)):
            return
        inputs, replay = self._recorded[shape]
        for ours, given in zip(inputs, batch, strict=True):
            ours.copy_(given, non_blocking=True)
        replay()
        self.replayed += 1

    def _record(self, shape: Any, batch: tuple[Tensor, ...]) -> bool:
        """Record a shape; where it is too early, or cannot be, make the step and return False."""
        warm = self._warm[shape] = self._warm.get(shape, 0) + 1
        if warm <= WARM_UP:
            before = self._host()
            with self._recorder.side():
                self._step(batch)
            if self._host() != before:
                self._failed = True
                self._fall_back("a step draws or counts where a recording does not")
            return False
        if len(self._recorded) == SHAPES:
            self._fall_back(f"batches have more than {SHAPES} shapes")
            self._step(batch)
            return False
        inputs = tuple(part.clone() for part in batch)
        try:
            self._recorded[shape] = inputs, self._recorder.record(lambda: self._step(inputs))
        except RuntimeError as error:  # nothing was computed
            self._failed = True
            self._fall_back(f"the step cannot be captured: {str(error).partition(chr(10))[0]}")
            self._step(batch)
            return False
        return True

    def _fall_back(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
            log.warning("not every step is captured: %s", reason)


def make_capturable(optimizer: torch.optim.Optimizer) -> None:
    """Have an optimizer read its rates from tensors beside its parameters, as a graph repeats the numbers it was given.

    A schedule of PyTorch's fills such a tensor anew.

    Args:
        optimizer: One that takes ``capturable``, such as AdamW.
    """
    for group in optimizer.param_groups:
        rate = torch.as_tensor(group["lr"], dtype=torch.float32)
        group["lr"] = rate.to(group["params"][0].device, copy=True)
        group["capturable"] = True
