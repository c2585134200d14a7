"""Random streams: one for each purpose, so that none shifts another."""

import hashlib


def stream(seed: int, *names: object) -> int:
    """Return a 63-bit seed that depends on `seed` and the names alone, the same in every process.

    Example:
        >>> stream(0, "dropout", 3) == stream(0, "dropout", 3) != stream(0, "dropout", 4)
        True
    """
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
