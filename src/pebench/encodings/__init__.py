"""Positional encodings, one file each. `base.py` is the interface; copy `alibi.py` to add one.

The names below are loaded on first use: names and cards of encodings are read without torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pebench.encodings.base import EncodingSpec, PositionalEncoding
    from pebench.encodings.build import build_encoding

__all__ = ["EncodingSpec", "PositionalEncoding", "build_encoding"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pebench.encodings import base, build

    return getattr(build if name == "build_encoding" else base, name)
