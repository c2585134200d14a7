"""Prose as data: text, code, emphasis and links, which every writer renders in its own way.

Sentences, ours and those that suites and docstrings declare, mark code by backticks and emphasis by two asterisks.
`prose` reads these marks once, so that no writer has to read what another one wrote.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """Words as a program writes or reads them."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Words that stand out, which may have code among them."""

    parts: tuple["str | Code", ...]


@dataclass(frozen=True)
class Link:
    """Words that lead to a page.

    Args:
        text: The words.
        address: Address of the page; empty where there is none.
        title: Title of what they lead to.
    """

    text: str
    address: str
    title: str = ""


Inline = str | Code | Strong | Link
Prose = tuple[Inline, ...]
"""A sentence or a paragraph."""

# Text between marks may go over the end of a line, as sentences in docstrings do (DOTALL).
MARKS = re.compile(r"`([^`]*)`|\*\*(.+?)\*\*", re.DOTALL)


def prose(text: str) -> Prose:
    """Return a marked text as data.

    Example:
        >>> prose("**Finding.** `add` < rope")
        (Strong(parts=('Finding.',)), ' ', Code(text='add'), ' < rope')
    """
    parts: list[Inline] = []
    end = 0
    for found in MARKS.finditer(text):
        parts.append(text[end : found.start()])
        if found[2] is None:
            parts.append(Code(found[1]))
        else:
            parts.append(Strong(_with_code(found[2])))
        end = found.end()
    parts.append(text[end:])
    return tuple(part for part in parts if part != "")


def _with_code(text: str) -> tuple[str | Code, ...]:
    """Return the parts of a text that stands out; code alternates with words in it."""
    parts = [Code(part) if place % 2 else part for place, part in enumerate(re.split("`([^`]*)`", text))]
    return tuple(part for part in parts if part != "")


def strong(text: str) -> Prose:
    """Return a text that stands out as a whole, whatever marks it has."""
    return (Strong((text,)),)


def plain(sentence: Prose) -> str:
    """Return the words of a sentence without any marks.

    Example:
        >>> plain(prose("**Finding.** `add` < rope"))
        'Finding. add < rope'
    """
    words = []
    for part in sentence:
        if isinstance(part, Strong):
            words.append(plain(part.parts))
        else:
            words.append(part if isinstance(part, str) else part.text)
    return "".join(words)
