"""What a run was made with: versions, commit, device."""

import contextlib
import functools
import hashlib
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGE = Path(__file__).parents[1]
"""The folder of pebench itself, all of whose files decide how a run ends."""

PACKAGES = ("pebench", "torch", "torchvision", "lightning", "torchmetrics", "datasets", "tokenizers", "numpy")


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found | {"torch": str(torch.__version__)}  # which is a class of its own, that no checkpoint may hold


@functools.cache
def commit() -> str | None:
    """The commit of pebench's own checkout; where its code is another, that code's digest too. None outside one."""
    root = PACKAGE.parents[1]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "--short=10", "HEAD")
        changes = _git(root, "status", "--porcelain", "--", "src")  # new files too: one file adds an encoding
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + (f"+changes-{code()[:10]}" if changes else "")


@functools.cache
def code() -> str:
    """SHA-256 of pebench's own source files: which code runs, whatever the checkout's history says of it.

    The suites that lie among them in an installed package are no code: runs are the same from a checkout.
    """
    root, found = PACKAGE, hashlib.sha256()
    for path in sorted({*root.rglob("*.py")} - {*root.glob("benchmarks/**/*")}):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def device_name(device: torch.device) -> str:
    """What computes: the model of the processor or accelerator."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type != "cpu":
        return device.type
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def device_text(device: torch.device) -> str:
    """A device as records name it: ``cpu: AMD EPYC 9754``."""
    return f"{device.type}: {device_name(device)}"


def reset_peak_memory() -> None:
    """Have `peak_memory_gib` count from here on, where that can be had: on CUDA, and of processes on Linux."""
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_gib(device: torch.device) -> float | None:
    """Largest memory so far: of the accelerator if one is used, else resident memory of this process, if known."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    with contextlib.suppress(OSError):  # Linux; getrusage would count the parent's memory before exec, too
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**20
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def describe(devices: Sequence[str], precision: str, compiled: bool, attention: str) -> dict[str, Any]:
    """What a record says of the circumstances.

    Args:
        devices: What computed, one after the other, by `device_text`.
        precision: A Lightning precision.
        compiled: Whether the trunk was.
        attention: The kernel that attention took.
    """
    return {
        "versions": versions(), "commit": commit(), "device": ", then ".join(devices),
        "threads": torch.get_num_threads(), "precision": precision, "compiled": compiled, "attention": attention,
    }  # fmt: skip
