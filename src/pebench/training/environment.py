"""The environment of a run: versions, commit, device, memory."""

import contextlib
import ctypes
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

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_ORDINARY = {_MMAP_THRESHOLD: 2**25, _TRIM_THRESHOLD: 2**26}  # up to which glibc learns, and twice that
PACKAGES = ("pebench", "torch", "torchvision", "lightning", "torchmetrics", "datasets", "tokenizers", "numpy")


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found | {"torch": str(torch.__version__)}  # a class of torch's own, which no checkpoint may hold


@functools.cache
def commit() -> str | None:
    """Return the commit of pebench's checkout, with the digest of uncommitted code; None outside a checkout."""
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
    """Return the SHA-256 of pebench's own source files, which identifies the code whatever the checkout's history.

    The suites that lie among them in an installed package are left out: runs are the same from a checkout.
    """
    root, found = PACKAGE, hashlib.sha256()
    for path in sorted({*root.rglob("*.py")} - {*root.glob("benchmarks/**/*")}):
        # Zero bytes keep names and contents apart: text that moves to the next file changes the digest.
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def device_name(device: torch.device) -> str:
    """Return the model of the processor or accelerator."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type != "cpu":
        return device.type
    try:
        # On Linux platform.processor() is empty, or names the architecture alone.
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def device_text(device: torch.device) -> str:
    """Return a device as records name it: ``cpu: AMD EPYC 9754``."""
    return f"{device.type}: {device_name(device)}"


def keep_freed_memory(keep: bool) -> None:
    """Have glibc keep the memory of freed tensors for the next ones, or use its ordinary limits; else do nothing.

    Ordinarily it returns blocks above 32 MB to the system, which hands them out anew in every step, page by page.

    Args:
        keep: True where all batches have the same size. Where sizes differ, what is kept seldom fits, and adds up.
    """
    limits = {_MMAP_THRESHOLD: 2**30, _TRIM_THRESHOLD: 2**31 - 1} if keep else _ORDINARY
    for name, value in limits.items():
        _ask_glibc("mallopt", name, value)


def _ask_glibc(function: str, *values: int) -> None:
    """Call a function of glibc; do nothing with another C library."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        getattr(ctypes.CDLL(None), function)(*values)


def allow_tf32(allow: bool) -> None:
    """Have products of 32-bit matrices on CUDA be rounded to TF32, or not."""
    torch.set_float32_matmul_precision("high" if allow else "highest")


def reset_peak_memory() -> None:
    """Make `peak_memory_gib` count from here on, where the system can: on CUDA, and for processes on Linux."""
    _ask_glibc("malloc_trim", 0)  # to give back what an earlier run in this process has left, and glibc has kept
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM back to the present memory; see proc(5)


def peak_memory_gib(device: torch.device) -> float | None:
    """Return the peak memory in GiB: the accelerator's, or this process's resident memory; None if unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    with contextlib.suppress(OSError):  # Linux; getrusage would count the parent's memory before exec, too
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**20  # its kB are KiB
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts in bytes, others in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def describe(devices: Sequence[str], precision: str, compiled: bool, attention: str) -> dict[str, Any]:
    """Return the environment as records hold it.

    Args:
        devices: Devices used one after the other, as `device_text` names them.
        precision: A Lightning precision.
        compiled: True if the trunk was compiled.
        attention: Attention kernel that was taken.
    """
    if torch.get_float32_matmul_precision() != "highest":
        precision += " with TF32"
    return {
        "versions": versions(), "commit": commit(), "source": code(), "device": ", then ".join(devices),
        "threads": torch.get_num_threads(), "precision": precision, "compiled": compiled, "attention": attention,
    }  # fmt: skip
