"""Files of plug-ins: where their source is, what it was, and how records and tables name it."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pebench.encodings.sources import find_source

SHORT = 12
"""Digits of a source's SHA-256 that are shown."""


def source_of(module: str) -> Path | None:
    """Return the file that a module was imported from, or would be."""
    found = getattr(sys.modules.get(module), "__file__", None) or find_source(module)
    return Path(found) if found else None


def digest(source: Path | None) -> str:
    """Return the SHA-256 of a file; ``unknown`` where there is none."""
    try:
        return hashlib.sha256(source.read_bytes()).hexdigest() if source else "unknown"
    except OSError:
        return "unknown"


def origin_text(facts: Mapping[str, Any]) -> str:
    """Format what `origin` returned, in short.

    Example:
        >>> origin_text({"place": "mine:Rows", "sha256": "0123456789abcdef"})
        'mine:Rows, source 0123456789ab'
        >>> origin_text({"place": "mine:Rows", "distribution": "mine", "version": "1.0", "sha256": "unknown"})
        'mine 1.0, mine:Rows, source unknown'
    """
    package = f"{facts['distribution']} {facts.get('version', '')}, " if "distribution" in facts else ""
    return f"{package}{facts.get('place')}, source {str(facts.get('sha256', 'unknown'))[:SHORT]}"


def folder_of(module: str) -> str | None:
    """Return the folder that must be on Python's path for a module to be found; None where that is unknown.

    Args:
        module: Its dotted name.
    """
    source = find_source(module)
    if source is None:
        return None
    # a package's source lies one folder deeper than a module's
    levels = len(module.split(".")) + (source.name == "__init__.py")
    return str(source.resolve().parents[levels - 1])
