"""Types of what a declaration holds, checked where a user makes one. No torch here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pebench.errors import UserError
from pebench.formatting import quoted


@dataclass(frozen=True)
class Expected:
    """The values that a field takes.

    Args:
        text: Words for them in messages.
        fits: Returns True for one of them.
    """

    text: str
    fits: Callable[[Any], bool]

    def or_none(self) -> "Expected":
        """Return the same values, and ``None``."""
        return Expected(f"{self.text}, or None", lambda value: value is None or self.fits(value))


def one(kind: Any, text: str) -> Expected:
    """Return the instances of a class, or of one of several."""
    return Expected(text, lambda value: isinstance(value, kind))


def several(kind: Any, text: str) -> Expected:
    """Return the tuples and lists of such instances; a text is none, though it holds texts."""
    return Expected(text, lambda value: _is_row(value) and all(isinstance(item, kind) for item in value))


def by_name(kind: Any, text: str) -> Expected:
    """Return the mappings from names to such instances."""

    def fits(value: Any) -> bool:
        return isinstance(value, Mapping) and all(isinstance(k, str) and isinstance(v, kind) for k, v in value.items())

    return Expected(text, fits)


def _is_row(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_fields(what: str, found: object, expected: Mapping[str, Expected]) -> None:
    """Refuse a declaration with a field that holds something else than it must.

    Args:
        what: The declaration in messages: ``task 'mine'``.
        found: The declaration.
        expected: Values that its fields take, by field.

    Raises:
        UserError: With the first such field.
    """
    for name, values in expected.items():
        if not values.fits(value := getattr(found, name)):
            raise UserError(f"{what}: {name} expects {values.text}, got {quoted(value)}.")
