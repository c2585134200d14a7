"""SVG inside a page: ids of its own, and colours that follow the reader's light or dark setting."""

import re

from markupsafe import Markup

from pebench.results.figures import Picture


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
