"""Markdown and HTML of generated pages: tables, formulas, front matter."""

import html
import re
from collections.abc import Mapping, Sequence

from latex2mathml.converter import convert

FENCE = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$`([^`]+)`\$")


def formula(latex: str) -> str:
    r"""Return a formula as a block of MathML, which browsers show without a script or a network.

    Args:
        latex: The formula; its parts, with ``, \\quad`` between them, may stand in lines of their own.
    """
    parts = "".join(f"<span>{_mathml(part, 'block')}</span>" for part in latex.split(r", \quad"))
    return f'<div class="formula" tabindex="0">{parts}</div>'


def with_formulas(text: str) -> str:
    """Return Markdown whose formulas, written as GitHub has them (a fence ``math``, or $`...`$), are MathML."""
    text = FENCE.sub(lambda match: formula(match[1]), text)
    return INLINE.sub(lambda match: _mathml(match[1], "inline"), text)


def _mathml(latex: str, display: str) -> str:
    # upright words are options, whose names have underscores
    return str(convert(re.sub(r"(\\(?:text|mathrm)\{[^}]*)\\_", r"\1_", latex), display=display))


def front_matter(title: str, search: str = "boost: 1") -> str:
    """Return the front matter of a page.

    Args:
        title: The page's title, in the menu and the browser.
        search: Its place in the search: ``exclude: true``, or ``boost: 2`` for twice the weight.
    """
    return f'---\ntitle: "{title}"\nsearch:\n  {search}\n---\n\n'


def table(rows: Sequence[Mapping[str, str]], sortable: bool = False, filtered: bool = False) -> str:
    """Return rows as a Markdown table; numbers, of which the first row decides, are on the right.

    Args:
        rows: The rows, at least one: column to cell.
        sortable: Let readers sort it by a click on a column's head.
        filtered: Put a field above it that hides rows without the words typed.
    """
    heads = list(rows[0])
    aligned = ["---:" if re.match(r"[-+−]?\d", rows[0][head]) else ":---" for head in heads]
    lines = [heads, aligned, *([row[head] for head in heads] for row in rows)]
    text = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
    if not (sortable or filtered):
        return f"{text}\n"
    kinds = " ".join(kind for kind, wanted in (("sortable", sortable), ("filtered", filtered)) if wanted)
    return f'<div class="{kinds}" markdown="1">\n\n{text}\n\n</div>\n'


def code(text: str, language: str) -> str:
    """Return a block of code, fenced by more backticks than the text has."""
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def plain(text: str) -> str:
    """Return text with what HTML and Markdown would take for markup escaped."""
    return re.sub(r"([\\*_\[\]])", r"\\\1", html.escape(text, quote=False))


def ticks(text: str) -> str:
    """Return text of a docstring as Markdown: its double backticks single, its addresses links."""
    text = text.replace("``", "`")
    return re.sub(r"(?<![<(])\bhttps?://[^\s,;)]*[^\s,;).:]", lambda match: f"<{match[0]}>", text)
