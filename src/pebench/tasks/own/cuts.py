"""The rule that cuts data without given splits: equal examples are on one side. No torch here."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pebench.errors import UserError
from pebench.tasks.own.files import SPLITS

NAMES = ("train", "validation", "test")

SHARE = 10
"""One different example in so many is held out for each split that is not given."""


def content_key(content: bytes) -> int:
    """Return the number that stands for an example in the order: the first 8 bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(content).digest()[:8])


def text_keys(texts: Iterable[str]) -> NDArray[np.uint64]:
    r"""Return the number of each text; texts that differ in case and spaces alone have the same one.

    Example:
        >>> a, b = text_keys(["A  text", "a text\n"]).tolist()
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
    found = np.zeros(len(keys), dtype=np.int8)
    if given:
        found[:] = [SPLITS.index(name) for name in given]
    lacking = [index for index in (2, 1) if not (found == index).any()]  # test takes the first tenth
    if not lacking:
        return found, "as given"
    train = np.flatnonzero(found == 0)
    different, place = np.unique(keys[train], return_inverse=True)  # sorted
    tenth = len(different) // SHARE
    for turn, index in enumerate(lacking):
        found[train[(place >= turn * tenth) & (place < (turn + 1) * tenth)]] = index
    parts = " and ".join(f"{NAMES[index]} the {('first', 'second')[turn]} tenth" for turn, index in enumerate(lacking))
    return found, f"of the different {'training ' * bool(given)}examples by their SHA-256, {parts}"


def split_examples(
    keys: NDArray[np.uint64], given: Sequence[str] | None, labels: NDArray[np.int64], classes: Sequence[str], where: str
) -> tuple[NDArray[np.int8], list[str]]:
    """Return the split of each example, as its index in train, val and test, and remarks.

    Args:
        keys: (count,) a number for each example, equal for equal ones.
        given: Split of each example where they are given; None where none is.
        labels: (count,) class of each example.
        classes: Names of the classes.
        where: The data's name in messages.

    Raises:
        UserError: If a split has no example, or a class has none to train on.
    """
    splits, rule = cut(keys, given)
    counts = np.bincount(splits, minlength=3)
    for name, count in zip(NAMES, counts, strict=True):
        if not count:
            raise UserError(
                f"{where} has too few different examples, {len(np.unique(keys))}: the split {name} has none."
            )
    absent = np.setdiff1d(np.arange(len(classes)), labels[splits == 0])
    if len(absent):
        number, more = int((labels == absent[0]).sum()), len(absent) - 1
        raise UserError(
            f"{where}: the class {classes[absent[0]]!r} ({number} of {len(labels):,} examples) has no training example"
            f"{f', nor have {more} more classes' if more else ''}: leave it out, or give splits."
        )
    amounts = ", ".join(f"{count:,} {name}" for count, name in zip(counts, NAMES, strict=True))
    return splits, [f"splits: {amounts} ({rule})", *(f"warning: {text}" for text in _overlaps(keys, splits))]


def _overlaps(keys: NDArray[np.uint64], found: NDArray[np.int8]) -> list[str]:
    """Return a sentence for each two splits that share examples, with their number."""
    sentences = []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        held = keys[found == second]
        if shared := int(np.isin(held, keys[found == first]).sum()):
            sentences.append(f"{shared:,} of {len(held):,} {NAMES[second]} examples are in {NAMES[first]}, too")
    return sentences
