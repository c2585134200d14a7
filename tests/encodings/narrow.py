"""A device without 64-bit numbers, as Apple's GPU is one: tensors on the CPU that say they are elsewhere.

They say ``meta``, which every build of PyTorch knows, but have numbers.
"""

import contextlib
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

DEVICE = torch.device("meta")


class NarrowTensor(Tensor):
    """A tensor of the device; `held` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "NarrowTensor":
        if held.dtype == torch.float64:
            raise TypeError("this device doesn't support float64")
        made = Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=DEVICE
        )
        made.held = held
        return made

    def tolist(self) -> list[Any]:  # PyTorch asks no subclass for its numbers, nor what is ``meta``
        return self.held.tolist()

    def __bool__(self) -> bool:
        return bool(self.held)

    def __int__(self) -> int:
        return int(self.held)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *_: Any) -> "NarrowTensor":
        return NarrowTensor(inner["held"])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(function, args, kwargs or {})


class NarrowDevice(TorchDispatchMode):
    """Inside it, what is made on the device is a `NarrowTensor`."""

    def __enter__(self) -> "NarrowDevice":
        tensor = torch.tensor  # the one function that makes tensors unseen
        self.patches = contextlib.ExitStack()
        for name, stand_in in (
            ("tensor", lambda data, device="cpu", **given: tensor(data, **given).to(device)),
            ("autocast", lambda *_, **__: contextlib.nullcontext()),  # which ``meta`` has not
        ):
            self.patches.enter_context(mock.patch.object(torch, name, stand_in))
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.patches.close()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(function, args, kwargs or {})


def run(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation on the CPU, and return its result on the device on which it would be."""
    found: list[Tensor] = []

    def inner(x: Any) -> Any:
        if isinstance(x, Tensor):
            found.append(x)
        return x.held if isinstance(x, NarrowTensor) else x

    plain_args, plain_kwargs = tree_map(inner, args), tree_map(inner, kwargs)
    there = any(isinstance(x, NarrowTensor) for x in found)
    if there and any(x.ndim and not isinstance(x, NarrowTensor) for x in found) and "copy" not in str(function):
        raise RuntimeError(f"Expected all tensors to be on the same device, in {function}")
    if plain_kwargs.get("device") is not None:
        there = torch.device(plain_kwargs["device"]).type == DEVICE.type
        plain_kwargs["device"] = torch.device("cpu")
    result = function(*plain_args, **plain_kwargs)
    if function is torch.ops.aten.copy_.default:
        return args[0]
    return tree_map(lambda x: NarrowTensor(x) if there and isinstance(x, Tensor) else x, result)
