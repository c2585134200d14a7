"""SVG inside a page: ids of its own, and colours that follow the reader's light or dark setting."""

import re

from markupsafe import Markup

from pebench.results.cells import Bar
from pebench.results.figures import Picture

BAR_WIDTH = 48
"""Width of the drawing of an interval, in pixels."""


def inline(picture: Picture) -> Markup:
    """Return a picture as an element of a page.

    Args:
        picture: The picture; its name is the prefix of its ids.
    """
    text = re.sub(r'(\bid="|"#|url\(#)', rf"\1{picture.name}-", picture.svg)
    for colour in _colours():
        text = text.replace(f": {colour}", f": var({_variable(colour)})")
    head = Markup('<svg role="img" aria-label="{}" ').format(picture.title)
    return Markup(text.replace("<svg ", head, 1))


def bar_of(bar: Bar | None, span: tuple[float, float] | None) -> Markup:
    """Return an interval as a small drawing; nothing where a cell has none.

    Args:
        bar: The interval.
        span: The lowest and the highest value of its column.

    Example:
        >>> print(bar_of(Bar(1.0, 0.5, zero=False), (0.0, 2.0)).partition("<path")[2])
         d="M12.5 5H35.5"/><circle cx="24" cy="5" r="2.5"/></svg>
    """
    if bar is None or span is None or span[0] == span[1]:
        return Markup("")
    low, high = span

    def place(value: float) -> str:
        return f"{1 + (BAR_WIDTH - 2) * (value - low) / (high - low):.4g}"

    ends = [place(bar.mean - bar.half_width), place(bar.mean + bar.half_width)]
    zero = Markup('<path class="zero" d="M{} 0V10"/>').format(place(0.0)) if bar.zero else Markup("")
    return Markup(
        '<svg class="bar" width="{}" height="10" aria-hidden="true">{}<path d="M{} 5H{}"/>'
        '<circle cx="{}" cy="5" r="2.5"/></svg>'
    ).format(BAR_WIDTH, zero, *ends, place(bar.mean))


def palette() -> Markup:
    """Return the rules that give every colour of the pictures its value, in light and in dark."""
    light, dark = (
        " ".join(f"{_variable(colour)}: {value};" for colour, value in pairs)
        for pairs in (zip(_colours(), _colours(), strict=True), _colours().items())
    )
    return Markup(f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}")


def _variable(colour: str) -> str:
    return f"--c{colour[1:]}"


def _colours() -> dict[str, str]:
    from pebench.results.figures.style import DARK

    return DARK
