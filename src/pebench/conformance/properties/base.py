"""A property of encodings, the decorator that makes one, and the conditions under which one applies.

A property is a function of a `Bench` that raises `BrokenError` where it does not hold, or any exception that the
encoding raises. Its docstring's first line is its statement. It applies by what an instance declares, never by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pebench.conformance.bench import Bench


@dataclass(frozen=True)
class Property:
    """A property that encodings must have.

    Args:
        name: Name of one or two words.
        statement: One line that describes it.
        run: Function that raises where the property does not hold.
        applies: Function that returns True if the property must hold for the encoding of a bench.
        once: True if one setting is enough: the first that the encoding serves.
        slow: True if it takes about a second instead of milliseconds.
    """

    name: str
    statement: str
    run: Callable[[Bench], None]
    applies: Callable[[Bench], bool]
    once: bool = False
    slow: bool = False


def encoding_property(
    name: str, *, when: Callable[[Bench], bool] = lambda bench: True, once: bool = False, slow: bool = False
) -> Callable[[Callable[[Bench], None]], Property]:
    """Decorator: turn a function into a `Property` whose statement is the docstring's first line."""

    def decorate(run: Callable[[Bench], None]) -> Property:
        statement = (run.__doc__ or "").split("\n")[0].rstrip(".")
        return Property(name, statement, run, when, once, slow)

    return decorate


def has_two_axes(bench: Bench) -> bool:
    """Return True for grids."""
    return len(bench.extent) > 1


def has_one_axis(bench: Bench) -> bool:
    """Return True for texts."""
    return len(bench.extent) == 1


def is_causal(bench: Bench) -> bool:
    """Return True if tokens attend to the past alone."""
    return bench.causal


def is_bidirectional(bench: Bench) -> bool:
    """Return True if every token attends to every other."""
    return not bench.causal


def uses_positions(bench: Bench) -> bool:
    """Return True if the output depends on the positions that the model is given."""
    return not (bench.encoding.contextual or bench.encoding.blind)


def ignores_positions(bench: Bench) -> bool:
    """Return True if the output does not depend on the positions that the model is given."""
    return not uses_positions(bench)


def both(*conditions: Callable[[Bench], bool]) -> Callable[[Bench], bool]:
    """Return the conjunction of conditions."""
    return lambda bench: all(condition(bench) for condition in conditions)
