"""Positional encodings, one file each. `base.py` is the interface; copy `alibi.py` to add one."""

from pebench.encodings.base import EncodingSpec, PositionalEncoding, build_encoding

__all__ = ["EncodingSpec", "PositionalEncoding", "build_encoding"]
