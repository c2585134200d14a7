"""The limits of a device, by measurement: how fast it multiplies large matrices, and how fast it copies memory."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from pebench.benchmarks.studies.timing import now

SIDE = {"cpu": 1024, "cuda": 8192}
"""Side of the matrices that are multiplied: large enough that more brings nothing."""

COPIED = {"cpu": 2**26, "cuda": 2**30}
"""Bytes that are copied: far more than caches hold."""

REPEATS = 5


@dataclass(frozen=True)
class Limits:
    """The best rates that a device reached.

    Args:
        wide: Floating-point operations a second of a product of 32-bit matrices, with PyTorch's usual precision.
        half: The same of bfloat16 matrices.
        bandwidth: Bytes a second that a copy reads and writes.
    """

    wide: float
    half: float
    bandwidth: float


def measure_limits(device: torch.device, side: int | None = None) -> Limits:
    """Measure a device's limits, each as the best of a few repeats.

    Args:
        device: Device to measure; on a CPU with PyTorch's current threads.
        side: Side of the matrices; by default one that fits the kind of device.
    """
    side = side or SIDE[device.type]
    return Limits(product(torch.float32, side, device), product(torch.bfloat16, side, device), copies(device))


def product(dtype: torch.dtype, side: int, device: torch.device) -> float:
    """Return the floating-point operations a second of a product of two square matrices: 2 n^3 each."""
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    return 2 * side**3 / _fastest(lambda: left @ right, device)


def copies(device: torch.device) -> float:
    """Return the bytes a second that a copy of a large tensor reads and writes."""
    source = torch.zeros(COPIED[device.type] // 4, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * len(source) / _fastest(lambda: target.copy_(source), device)


def _fastest(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of the fastest of a few calls, after one that is not timed."""
    work()
    found = []
    for _ in range(REPEATS):
        start = now(device)
        work()
        found.append(now(device) - start)
    return min(found)
