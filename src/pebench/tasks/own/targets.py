"""Things to predict of a text: a class, a number, or a tag for each word; which values of a table are one. No torch."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LARGEST = 1e100
"""Numbers beyond this have no square to sum up."""


@dataclass(frozen=True)
class Target:
    """A thing to predict.

    Args:
        reads: Says whether a value is a text for it.
        text: Words for such a value.
        label_of: Returns what a value says is to be predicted, or None if it says nothing.
        label: Words for such a value.
    """

    reads: Callable[[Any], bool]
    text: str
    label_of: Callable[[Any], Any]
    label: str


def is_text(value: Any) -> bool:
    """Return True for a text with a word in it."""
    return isinstance(value, str) and bool(value.strip(" \t\n\ufeff")) and "\0" not in value


def is_words(value: Any) -> bool:
    """Return True for a list of words."""
    return isinstance(value, list) and bool(value) and all(map(is_text, value))


def class_name(label: Any) -> str | None:
    """Return the name of a label's class; None for what is no label: nothing, a fraction, or a list.

    Example:
        >>> class_name(3), class_name(" good "), class_name(True), class_name(2.0), class_name(0.5), class_name("")
        ('3', 'good', 'true', '2', None, None)
    """
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():  # as pandas writes whole numbers beside missing ones
        return str(int(label))
    if isinstance(label, int):
        return str(label)
    return (label.strip() or None) if isinstance(label, str) else None


def number(label: Any) -> float | None:
    """Return the number that a label says; None for what is none: nothing, a word, or what is not finite.

    Example:
        >>> number(3), number(" -0.5 "), number("good"), number(float("nan")), number(True)
        (3.0, -0.5, None, None, None)
    """
    if isinstance(label, bool) or not isinstance(label, int | float | str):
        return None
    try:
        value = float(label)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and abs(value) < LARGEST else None


def tags(label: Any) -> list[str] | None:
    """Return the names of tags; None if there are none, or one of them is no name."""
    found = [class_name(tag) for tag in label] if isinstance(label, list) else []
    return [tag for tag in found if tag is not None] if found and None not in found else None


TEXT, WORDS = "a text with a word in it", "a list of words"
TARGETS = {
    "class": Target(is_text, TEXT, class_name, "a label (a word, or a whole number)"),
    "number": Target(is_text, TEXT, number, "a number"),
    "tags": Target(is_words, WORDS, tags, "a list of tags (words, or whole numbers)"),
}
"""Things to predict, by the option that names them."""


def spread(labels: list[float]) -> tuple[float, float]:
    """Return mean and standard deviation of numbers, the same on every machine.

    Example:
        >>> spread([1.0, 3.0])
        (2.0, 1.0)
    """
    mean = math.fsum(labels) / len(labels)
    return mean, math.sqrt(math.fsum((label - mean) ** 2 for label in labels) / len(labels))


def class_order(name: str) -> tuple[int, str]:
    """Return the key that sorts names of classes: whole numbers by size, then words; equal numbers as words.

    Example:
        >>> sorted(["b", "10", "--1", "1", "01", "-2"], key=class_order)
        ['-2', '01', '1', '10', '--1', 'b']
    """
    digits = name.removeprefix("-")
    # Python refuses to read a number of thousands of digits.
    whole = digits.isascii() and digits.isdecimal() and len(digits) < 19
    return int(name) if whole else sys.maxsize, name
