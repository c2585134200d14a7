"""Plug-ins as guests: what one of them changes in this process is put back before another run begins.

A run that has a process of its own needs none of this. The sequential executor, the checks before a suite and the
preparation of data share a process with code of anyone's.
"""

import contextlib
import logging
import multiprocessing
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from pebench.exits import without_exits

log = logging.getLogger(__name__)

WATCHED = ("torch", "torch.nn", "torch.optim", "torch.linalg", "torch.fft", "torch.special", "torch.functional",
           "torch._tensor", "lightning.pytorch", "torchmetrics", "pebench", "math")  # fmt: skip
"""Modules whose functions and classes no plug-in may replace; of all but ``torch`` those below them, too."""

CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, type,
        classmethod, staticmethod, property)  # fmt: skip
"""Kinds of attributes that are code: other attributes, such as caches, change while everything is well."""


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _flushes_denormals() -> bool:
    # torch has no question for it; the smallest number of 64 bit is one that would be flushed
    return float(torch.tensor(5e-324, dtype=torch.float64) * 1.0) == 0.0


def _set_default_device(device: torch.device) -> None:
    # none is the usual state: a device of its own, the CPU too, would slow every call down
    torch.set_default_device(None if device == torch.device("cpu") else device)


def _set_environment(values: dict[str, str]) -> None:
    if dict(os.environ) != values:
        os.environ.clear()
        os.environ.update(values)


def _attribute(owner: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return (lambda: getattr(owner, name)), (lambda value: setattr(owner, name, value))


SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's default device": (torch.get_default_device, _set_default_device),
    "torch's grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch's deterministic algorithms": (
        _deterministic, lambda flags: torch.use_deterministic_algorithms(flags[0], warn_only=flags[1])
    ),
    "torch's precision of matrix products": (
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    ),
    "torch's denormal numbers": (_flushes_denormals, torch.set_flush_denormal),
    "torch's flash attention": (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
    "torch's efficient attention": (
        torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp
    ),
    "cuDNN's benchmark": _attribute(torch.backends.cudnn, "benchmark"),
    "cuDNN's determinism": _attribute(torch.backends.cudnn, "deterministic"),
    "cuDNN's TF32": _attribute(torch.backends.cudnn, "allow_tf32"),
    "the current folder": (os.getcwd, os.chdir),
}  # fmt: skip
"""State of the process that decides numbers: how it is read, and how it is set."""

OWN: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_rng_state, torch.set_rng_state),
    (lambda: dict(os.environ), _set_environment),
)
"""State that every run changes, so that a change is nothing to report."""


@contextlib.contextmanager
def contained(what: str) -> Iterator[None]:
    """Put everything back at the end that code of others may have changed in this process, and warn of it.

    It restores torch's settings, random numbers and hooks of all modules, and functions and methods of torch, Lightning
    and pebench that were replaced; it ends child processes. A thread cannot be ended from outside. `os._exit` raises an
    error meanwhile.

    Args:
        what: Name of what is done within the context, for the warning.
    """
    changed: list[str] = []
    settings = {name: read() for name, (read, _) in SETTINGS.items()}
    own = [read() for read, _ in OWN]
    hooks = [(found, dict(found)) for found in _hooks()]
    code = _code()
    children, threads = {*multiprocessing.active_children()}, {*threading.enumerate()}
    try:
        with without_exits():
            yield
    finally:
        for child in {*multiprocessing.active_children()} - children:
            changed.append(f"child process {child.pid}, which was ended")
            child.kill()
            child.join()
        left = {*threading.enumerate()} - threads
        changed += [f"thread {thread.name}, which goes on" for thread in left if not thread.daemon]
        for name, (read, write) in SETTINGS.items():
            if now(read) != settings[name]:
                changed.append(name)
                write(settings[name])
        for (_, restore), value in zip(OWN, own, strict=True):
            restore(value)
        for found, before in hooks:
            if found != before:
                changed.append("torch's hooks of all modules")
                found.clear()
                found.update(before)
        changed += _put_back(code)
        if changed:
            log.warning("%s left something behind, which was put back: %s", what, ", ".join(changed))


def now(read: Callable[[], Any]) -> Any:
    """Return a setting; None where it cannot be read any more, as the current folder once it is deleted."""
    with contextlib.suppress(OSError):
        return read()
    return None


def _hooks() -> list[dict[Any, Any]]:
    """Return torch's hooks that are called for every module."""
    known = vars(torch.nn.modules.module)
    return [found for name, found in known.items() if name.startswith("_global_") and isinstance(found, dict)]


def _code() -> dict[Any, dict[str, Any]]:
    """Return the functions, classes and methods of the watched modules, by module or class, and then by name."""
    found: dict[Any, dict[str, Any]] = {}
    for name, module in [*sys.modules.items()]:
        if module is None or not (name in WATCHED or name.startswith(_BELOW)):
            continue
        found[module] = held = {key: value for key, value in vars(module).items() if isinstance(value, CODE)}
        for value in held.values():
            if isinstance(value, type) and value.__module__.startswith(_OWNERS) and value not in found:
                found[value] = {key: part for key, part in vars(value).items() if isinstance(part, CODE)}
    return found


_BELOW = tuple(f"{name}." for name in WATCHED if name != "torch")
_OWNERS = tuple({name.partition(".")[0] for name in WATCHED})


def _put_back(code: dict[Any, dict[str, Any]]) -> list[str]:
    """Set replaced functions, classes and methods to what they were, and return their names."""
    changed = []
    for owner, before in code.items():
        now, label = vars(owner), getattr(owner, "__module__", "") if isinstance(owner, type) else ""
        label = f"{label}.{owner.__qualname__}" if label else owner.__name__
        for name, value in before.items():
            if now.get(name) is value or _by_torch(now.get(name)):
                continue
            changed.append(f"{label}.{name}")
            setattr(owner, name, value)
        if isinstance(owner, type):  # what a base class has may be hidden by a name that is new here
            added = [
                name for name, value in now.items() if isinstance(value, types.FunctionType) and name not in before
            ]
            for name in added:
                if _by_torch(now[name]):
                    continue
                changed.append(f"{label}.{name}")
                delattr(owner, name)
    return changed


def _by_torch(found: Any) -> bool:
    """Return True for the `step` of an optimizer that torch wraps once it is used, and marks so."""
    return getattr(found, "hooked", False) is True
