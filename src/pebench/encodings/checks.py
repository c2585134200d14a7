"""Whose fault it is: an encoding that raises, or returns from a hook what it must not, by name."""

import inspect
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import EncodingError, PositionalEncoding, name_of

INTERFACE = (
    "__init__", "reset_parameters", "content_width", "model_width",
    "place", "prepare", "forward", "embed", "residual", "query_key", "bias",
)  # fmt: skip
"""Methods of an encoding that others call."""


class Checked:
    """An encoding whose hooks are checked, once; it stands in for the encoding in a forward pass.

    Args:
        encoding: To be checked.

    Raises:
        EncodingError: By every hook that returns something of another kind, shape or type than it must, or NaN where
            it was given none.
    """

    def __init__(self, encoding: PositionalEncoding) -> None:
        self.encoding = encoding
        self.positions: Tensor | None = None

    def __call__(self, state: Any) -> Any:
        """`PositionalEncoding.forward`; a state may be anything."""
        return self.encoding(state)

    def place(self, positions: Tensor) -> Tensor:
        """`PositionalEncoding.place`."""
        self.positions, clean = positions, self._clean(positions)
        placed = self.encoding.place(positions)
        self._check("place", placed, tuple(positions.shape), clean)
        return placed

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """`PositionalEncoding.embed`."""
        clean = self._clean(x)
        told = self.encoding.embed(x, state)
        self._check("embed", told, (*x.shape[:2], self.encoding.model_width), clean, x)
        return told

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.residual`."""
        clean = self._clean(x)
        told = self.encoding.residual(x, valid, state, layer)
        self._check("residual", told, tuple(x.shape), clean, x)
        return told

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """`PositionalEncoding.query_key`."""
        clean = self._clean(q, k, x)
        told = self.encoding.query_key(q, k, x, state, layer)
        if not isinstance(told, tuple) or len(told) != 2:
            self._refuse("query_key", _kind(told), "two tensors, queries and keys")
        wide = told[0].shape[-1] if isinstance(told[0], Tensor) and told[0].ndim else q.shape[-1]
        for tensor in told:
            self._check("query_key", tensor, (*q.shape[:3], wide), clean, q)
        return told

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | None:
        """`PositionalEncoding.bias`."""
        clean = self._clean(q, k, x)
        told = self.encoding.bias(q, k, x, state, layer)
        if told is not None:
            self._check("bias", told, (*q.shape[:3], k.shape[2]), clean, broadcast=True)
        return told

    def _clean(self, *given: Tensor) -> bool:
        """Whether a hook is given no NaN; asked before it is called, as it may write into what it is given."""
        return not any(_has_nan(tensor) for tensor in (self.positions, *given))

    def _check(
        self,
        hook: str,
        told: Any,
        shape: tuple[int, ...],
        clean: bool,
        given: Tensor | None = None,
        broadcast: bool = False,
    ) -> None:
        expected = f"one {'that broadcasts to' if broadcast else 'of'} shape {shape}"
        if not isinstance(told, Tensor):
            self._refuse(hook, _kind(told), f"a tensor, {expected}")
        fits = _broadcasts(tuple(told.shape), shape) if broadcast else tuple(told.shape) == shape
        if not fits or not told.is_floating_point():
            self._refuse(hook, _kind(told), expected + " of floating-point numbers" * fits)
        if given is not None and told.dtype != given.dtype and not torch.is_autocast_enabled(given.device.type):
            name = "q" if hook == "query_key" else "x"
            self._refuse(hook, _type(told), f"{_type(given)}, as it was given: end with .to({name}.dtype)")
        if clean and _has_nan(told):
            self._refuse(hook, "NaN", "numbers")

    def _refuse(self, hook: str, got: str, expected: str) -> None:
        code = getattr(inspect.unwrap(getattr(type(self.encoding), hook)), "__code__", None)
        where = f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else ""
        raise EncodingError(
            f"encoding {name_of(self.encoding)!r}{where} returned from {hook} {got}, expected {expected}"
        )


def _kind(told: Any) -> str:
    if isinstance(told, Tensor):
        return f"a tensor of shape {tuple(told.shape)} and {_type(told)}"
    return f"{type(told).__name__}" if told is not None else "nothing"


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _has_nan(tensor: Tensor | None) -> bool:
    """Whether there is NaN in a tensor; without one of its size in memory, unlike ``isnan().any()``."""
    return tensor is not None and tensor.numel() > 0 and bool(tensor.detach().amin().isnan())


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, target) for size, target in pairs)


def blame(error: BaseException) -> str:
    """An exception in one line, with the encoding that raised it, if one did: its name, file, line and method."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    if isinstance(error, EncodingError):
        return str(error)
    frames = list(traceback.walk_tb(error.__traceback__))
    guilty = [number for number, (frame, _) in enumerate(frames) if _encoding_in(frame)]
    if not guilty:
        return what
    frame = frames[guilty[-1]][0]
    file, method = frame.f_code.co_filename, frame.f_code.co_name
    line = next(line for inner, line in reversed(frames[guilty[-1] :]) if inner.f_code.co_filename == file)
    return f"encoding {name_of(_encoding_in(frame))!r} ({Path(file).name}:{line}): {method} raised {what}"  # type: ignore[arg-type]


def _encoding_in(frame: FrameType) -> PositionalEncoding | None:
    """The encoding of whose interface a frame is a call, if it is one."""
    code = frame.f_code
    if code.co_name not in INTERFACE or not code.co_argcount:
        return None
    owner = frame.f_locals.get(code.co_varnames[0])
    return owner if isinstance(owner, PositionalEncoding) else None
