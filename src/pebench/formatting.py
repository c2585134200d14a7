"""Text for people: counts, seeds, durations, sizes, and an encoding with its options."""

import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

MOST = 500
"""Most characters that a message repeats of what a plug-in or a library said: some lines of a terminal."""


def folded(text: str, hang: int = 2, columns: int | None = None) -> str:
    r"""Return a text whose lines break between words where a terminal would break them anywhere.

    Args:
        text: Lines of a text.
        hang: Further indentation of what goes on from the line above.
        columns: Width; None takes the terminal's, or ``COLUMNS``. Without either, as in a file, lines stay whole.

    Example:
        >>> folded("a line of words", columns=10)
        'a line of\n  words'
    """
    if columns is None:
        if not (sys.stdout.isatty() or os.environ.get("COLUMNS")):
            return text
        columns = shutil.get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + hang)
        if len(line) <= columns:
            lines.append(line)
            continue
        # Names and paths stay whole, so that they can be copied.
        wrapper = textwrap.TextWrapper(
            columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        lines += wrapper.wrap(line)
    return "\n".join(lines)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where there is not one.

    Example:
        >>> counted(1, "run"), counted(1200, "run")
        ('1 run', '1200 runs')
    """
    return f"{number} {noun}{'s' if number != 1 else ''}"


def quoted(value: Any, most: int = 80) -> str:
    r"""Return a value as messages repeat it: as Python writes it, on one line, and cut where that is long.

    Example:
        >>> quoted("rope"), quoted("\x1b[31mred"), quoted([1] * 50, most=12)
        ("'rope'", "'\\x1b[31mred'", '[1, 1, 1, 1…')
        >>> quoted(int), quoted(quoted)
        ('the class int', 'the function quoted')
    """
    if isinstance(value, type | FunctionType):
        return cut(f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}", most)
    if isinstance(value, str | bytes | list | tuple):
        value = value[: most + 1]  # the text of all of it may be very long
    return cut(printable(repr(value)).replace("\n", " "), most)


def first_line(value: object, most: int = 100) -> str:
    r"""Return what a message repeats of another's text, such as an exception: its first line.

    It is cut where it is long, and without a full stop at its end, as the message goes on.

    Example:
        >>> first_line("a very long\ntext"), first_line("a very long text", most=8)
        ('a very long', 'a very …')
    """
    line = next(iter(str(value).strip().splitlines()), "")
    return cut(printable(line).removesuffix("."), most)


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters; a mark at its end says that there was more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str) -> str:
    r"""Return a text in which characters that move, colour or hide others stand as Python writes them; lines stay.

    Example:
        >>> printable("a\x1b[2J b")
        'a\\x1b[2J b'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def natural(label: str) -> list[tuple[float, str]]:
    """Return the key that sorts labels so that numbers in them stand in order, and equal numbers as they are written.

    Example:
        >>> sorted(["concat (d_p=16)", "concat (d_p=4)", "concat", "add"], key=natural)
        ['add', 'concat', 'concat (d_p=4)', 'concat (d_p=16)']
    """
    parts = re.split(r"(\d+(?:\.\d+)?)", label)  # text and numbers in turn, text first
    return [(float(part) if place % 2 else 0.0, part) for place, part in enumerate(parts)]


def seeds_text(seeds: Iterable[int]) -> str:
    """Return seeds as text, consecutive ones as a range.

    Example:
        >>> seeds_text([3]), seeds_text([0, 1, 4, 6, 7, 8])
        ('seed 3', 'seeds 0, 1, 4, 6 to 8')
    """
    ordered = sorted(seeds)
    ranges: list[list[int]] = []
    for seed in ordered:
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    parts = []
    for found in ranges:
        parts.append(f"{found[0]} to {found[-1]}" if len(found) > 2 else ", ".join(map(str, found)))
    return f"seed{'s' if len(ordered) != 1 else ''} {', '.join(parts)}"


def duration_text(seconds: float) -> str:
    """Return a duration as text.

    Example:
        >>> duration_text(42), duration_text(200), duration_text(7300), duration_text(5e5)
        ('42 s', '3 min', '2 h 02 min', '6 days')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds >= 72 * 3600:
        return f"{seconds / 86400:.0f} days"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def seconds_unit(longest: float) -> tuple[float, str]:
    """Return the unit in which short durations read well, and how many of it a second has.

    Args:
        longest: The longest of the durations, in seconds.

    Example:
        >>> seconds_unit(0.07), seconds_unit(2.5)
        ((1000.0, 'ms'), (1.0, 's'))
    """
    return (1000.0, "ms") if longest < 1 else (1.0, "s")


def si_text(value: float | None) -> str | None:
    """Return a number with three significant digits and an SI prefix; None for None.

    Example:
        >>> si_text(123_456_789), si_text(999_999), si_text(12)
        ('123 M', '1 M', '12')
    """
    if value is None:
        return None
    rounded = float(f"{value:.3g}")  # before the prefix is chosen: 999,999 is 1 M, not 1000 k
    power = min(4, int(math.log10(max(rounded, 1.0)) / 3 + 1e-9))  # the logarithm of 1000 is just below 3
    return f"{rounded / 1000**power:.3g} {'kMGT'[power - 1] if power else ''}".strip()


def format_options(options: Mapping[str, Any], *, literal: bool = False) -> str:
    """Return options as text, in their order.

    Args:
        options: Values by name.
        literal: Write values as Python does, so that the text can be read again.

    Example:
        >>> format_options({"d_p": 16, "table": "learned"}), format_options({"table": "learned"}, literal=True)
        ('d_p=16, table=learned', "table='learned'")
    """
    return ", ".join(f"{name}={value!r}" if literal else f"{name}={value}" for name, value in options.items())


def format_encoding(name: str, options: Mapping[str, Any], *, literal: bool = False) -> str:
    """Return an encoding with its options, in their order.

    Args:
        name: The encoding's name.
        options: Options that differ from their defaults.
        literal: Write it as ``--pe`` takes it, and not as tables name it.

    Example:
        >>> format_encoding("concat", {"d_p": 16}), format_encoding("concat", {"d_p": 16}, literal=True)
        ('concat (d_p=16)', 'concat(d_p=16)')
    """
    if not options:
        return name
    return f"{name}{'' if literal else ' '}({format_options(options, literal=literal)})"


def shortened(items: Sequence[str], most: int, more: str) -> list[str]:
    """Return the first of a list's items, and as its last how many there are besides.

    Example:
        >>> shortened(["a", "b"], 2, "more"), shortened(["a", "b", "c"], 1, "others")
        (['a', 'b'], ['a', '2 others'])
    """
    return [*items[:most], *([f"{len(items) - most} {more}"] if len(items) > most else [])]
