"""Failures of encodings: hooks that raise, or return something that they must not, are reported with their encoding."""

import inspect
import math
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import EncodingError, PositionalEncoding, name_of
from pebench.encodings.pairs import PairBias

INTERFACE = (
    "__init__", "reset_parameters", "content_width", "model_width",
    "place", "prepare", "forward", "padded", "embed", "residual", "query_key", "bias", "value", "output",
)  # fmt: skip
"""Methods of an encoding that the model calls."""


class Checked:
    """Stands in for an encoding in one forward pass and checks what its hooks return.

    Args:
        encoding: The encoding to check.

    Raises:
        EncodingError: From a hook whose result has another kind, shape or type than it must have, or has NaN though
            the hook was given none.
    """

    def __init__(self, encoding: PositionalEncoding) -> None:
        self.encoding = encoding
        self.positions: Tensor | None = None

    def __call__(self, state: Any) -> Any:
        """`PositionalEncoding.forward`; a state may be anything."""
        return self.encoding(state)

    def padded(self, state: Any, valid: Tensor) -> Any:
        """`PositionalEncoding.padded`; a state may be anything."""
        return self.encoding.padded(state, valid)

    def place(self, positions: Tensor) -> Tensor:
        """`PositionalEncoding.place`."""
        self.positions, clean = positions, self._clean(positions)
        placed = self.encoding.place(positions)
        self._check("place", placed, tuple(positions.shape), clean)
        return placed

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """`PositionalEncoding.embed`."""
        clean = self._clean(x)
        found = self.encoding.embed(x, state)
        self._check("embed", found, (*x.shape[:2], self.encoding.model_width), clean, x)
        return found

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.residual`."""
        clean = self._clean(x)
        found = self.encoding.residual(x, valid, state, layer)
        self._check("residual", found, tuple(x.shape), clean, x)
        return found

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """`PositionalEncoding.query_key`."""
        clean = self._clean(q, k, x)
        found = self.encoding.query_key(q, k, x, state, layer)
        if not isinstance(found, tuple) or len(found) != 2:
            self._refuse("query_key", _kind(found), "two tensors, queries and keys")
        # a hook may widen heads, but both alike: the first one's width is what both must have
        wide = found[0].shape[-1] if isinstance(found[0], Tensor) and found[0].ndim else q.shape[-1]
        for tensor in found:
            self._check("query_key", tensor, (*q.shape[:3], wide), clean, q)
        return found

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | PairBias | None:
        """`PositionalEncoding.bias`."""
        clean, length = self._clean(q, k, x), k.shape[2]
        found = self.encoding.bias(q, k, x, state, layer)
        if isinstance(found, PairBias):  # of a long text: its last query alone, which sees all keys
            last = found.block(slice(length - 1, length), length)
            self._check("bias", last, (*q.shape[:2], 1, length), clean, broadcast=True)
        elif found is not None:
            self._check("bias", found, (*q.shape[:3], length), clean, broadcast=True)
        return found

    def value(self, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.value`."""
        clean = self._clean(v, x)
        found = self.encoding.value(v, x, state, layer)
        self._check("value", found, tuple(v.shape), clean, v)
        return found

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.output`."""
        clean = self._clean(o, v, x)
        found = self.encoding.output(o, v, x, state, layer)
        self._check("output", found, tuple(o.shape), clean, o)
        return found

    def _clean(self, *given: Tensor) -> bool:
        """Return True if a hook is given numbers; to be called before the hook, which may write into its arguments."""
        return not any(_fault(tensor) for tensor in (self.positions, *given))

    def _check(
        self,
        hook: str,
        found: Any,
        shape: tuple[int, ...],
        clean: bool,
        given: Tensor | None = None,
        broadcast: bool = False,
    ) -> None:
        expected = f"one {'that broadcasts to' if broadcast else 'of'} shape {shape}"
        if not isinstance(found, Tensor):
            self._refuse(hook, _kind(found), f"a tensor, {expected}")
        fits = _broadcasts(tuple(found.shape), shape) if broadcast else tuple(found.shape) == shape
        if not fits or not found.is_floating_point():
            self._refuse(hook, _kind(found), expected + " of floating-point numbers" * fits)
        # under autocast operations choose their types themselves
        if given is not None and found.dtype != given.dtype and not torch.is_autocast_enabled(given.device.type):
            name = {"query_key": "q", "value": "v", "output": "o"}.get(hook, "x")
            self._refuse(hook, _type(found), f"{_type(given)}, as it was given: end with .to({name}.dtype)")
        # a bias hides a key by minus infinity
        if clean and (fault := _fault(found, hidden=hook == "bias")):
            self._refuse(hook, fault, "numbers")

    def _refuse(self, hook: str, got: str, expected: str) -> None:
        raise EncodingError(f"{self.named(hook)} returned from {hook} {got}, expected {expected}")

    def named(self, hook: str) -> str:
        """Return the encoding's name, with file and line of a hook, for an error."""
        # unwrapped: a decorated hook is reported where it is written
        code = getattr(inspect.unwrap(getattr(type(self.encoding), hook)), "__code__", None)
        where = f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else ""
        return f"encoding {name_of(self.encoding)!r}{where}"


def _kind(found: Any) -> str:
    if isinstance(found, Tensor):
        return f"a tensor of shape {tuple(found.shape)} and {_type(found)}"
    return f"{type(found).__name__}" if found is not None else "nothing"


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _fault(tensor: Tensor | None, hidden: bool = False) -> str:
    """Return which of NaN and infinity a tensor has, "" if none, without a mask of its size in memory.

    Args:
        tensor: The tensor; None has none.
        hidden: Minus infinity is no fault.
    """
    if tensor is None or not tensor.numel():
        return ""
    least, most = (float(value) for value in tensor.detach().aminmax())
    if math.isnan(least):  # with a NaN in it either is NaN
        return "NaN"
    return "infinity" if most == math.inf or (least == -math.inf and not hidden) else ""


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, target) for size, target in pairs)


def blame(error: BaseException) -> str:
    """Return an exception in one line; raised by an encoding, with the encoding's name, file, line and method."""
    if isinstance(error, EncodingError):
        return str(error)
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    frames = list(traceback.walk_tb(error.__traceback__))
    calls = [number for number, (frame, _) in enumerate(frames) if _encoding_in(frame)]
    if not calls:
        last = frames[-1][0] if frames else None
        if last and isinstance(caller := last.f_locals.get("self"), Checked):  # the hook takes other arguments
            return f"{caller.named(last.f_code.co_name)}: {reason}"
        return reason
    innermost = calls[-1]  # of encodings within others, the one that raised
    frame = frames[innermost][0]
    file, method = frame.f_code.co_filename, frame.f_code.co_name
    # the last line in the encoding's own file, which may have called a library
    line = next(line for inner, line in reversed(frames[innermost:]) if inner.f_code.co_filename == file)
    return f"encoding {name_of(_encoding_in(frame))!r} ({Path(file).name}:{line}): {method} raised {reason}"


def _encoding_in(frame: FrameType) -> PositionalEncoding | None:
    """Return the encoding of which a frame calls a method of the interface, if it does."""
    code = frame.f_code
    if code.co_name not in INTERFACE or not code.co_argcount:
        return None
    # the first argument, by whatever name: `self` by convention alone
    owner = frame.f_locals.get(code.co_varnames[0])
    return owner if isinstance(owner, PositionalEncoding) else None
