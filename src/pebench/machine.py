"""What this machine has. Nothing here imports torch."""

import math
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Processors that this process may use: those it may run on, but no more than a container's quota amounts to."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, _quota())))


def _quota() -> float:
    """Processors' time that a container has, by cgroup v2 or v1; infinity where nothing limits it."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            time, period = " ".join((CGROUPS / file).read_text() for file in files).split()
        except (OSError, ValueError):
            continue
        if time.isdigit():  # not "max", nor -1
            return int(time) / int(period)
    return math.inf
