"""The rule that cuts data without given splits: equal examples are on one side. No torch here."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

SHARE = 10
"""One different example in so many is held out for each split that is not given."""

RULE = "of all different examples, in the order of their SHA-256,"


def content_key(content: bytes) -> int:
    """Return the number that stands for an example in the order: the first 8 bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(content).digest()[:8])


def text_keys(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Return the number of each text; texts that differ in case and spaces alone have the same one.

    Example:
        >>> a, b = text_keys(["A  text", "a text\\n"]).tolist()
        >>> a == b
        True
    """
    return np.fromiter((content_key(" ".join(text.lower().split()).encode()) for text in texts), dtype=np.uint64)


def cut(keys: NDArray[np.uint64], given: Sequence[str] | None) -> tuple[NDArray[np.int8], str]:
    """Return the split of each example, as its index in train, val and test, and the rule in words.

    Args:
        keys: (count,) a number for each example, equal for equal ones.
        given: Split of each example where they are given: ``train``, ``val`` or ``test``; None where none is.
    """
    have = np.array([("train", "val", "test").index(name) for name in given], dtype=np.int8) if given else None
    found = np.zeros(len(keys), dtype=np.int8) if have is None else have
    lacking = [index for index in (2, 1) if not (found == index).any()]
    words = [("train", "validation", "test")[index] for index in (0, 1, 2) if index not in lacking]
    if not lacking:
        return found, "given: train, validation and test"
    train = np.flatnonzero(found == 0)
    different, place = np.unique(keys[train], return_inverse=True)  # sorted
    tenth = len(different) // SHARE
    for turn, index in enumerate(lacking):
        found[train[(place >= turn * tenth) & (place < (turn + 1) * tenth)]] = index
    parts = [f"the {('first', 'second')[turn]} tenth is {('', 'validation', 'test')[i]}" for turn, i in enumerate(lacking)]
    prefix = f"given: {' and '.join(words)}; " if have is not None else ""
    what = f"{RULE} " if have is None else "of the different training examples, in the order of their SHA-256, "
    return found, f"{prefix}{what}{', '.join(parts)}, the rest is train"


def overlaps(keys: NDArray[np.uint64], found: NDArray[np.int8]) -> list[str]:
    """Return a sentence for each two splits that share examples, with their number."""
    names, sentences = ("train", "validation", "test"), []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        held = keys[found == second]
        if shared := int(np.isin(held, keys[found == first]).sum()):
            sentences.append(f"{shared:,} of {len(held):,} {names[second]} examples are in {names[first]}, too")
    return sentences
