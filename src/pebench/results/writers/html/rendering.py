"""Templates rendered as one file: style and script within it, and no script but its own allowed."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from pebench.results.writers.html.svg import palette


def render(template: str, styles: Sequence[str], scripts: Sequence[str], *values: Any, **named: Any) -> str:
    """Return a template as one page. All text is escaped.

    Args:
        template: Name of a template in this package.
        styles: Names of its style sheets, which follow each other.
        scripts: Names of its scripts, likewise.
        values: Mappings of what the template shows.
        named: The same by name.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    style, script = ("\n".join(map(_text, part)) for part in (styles, scripts))
    environment = Environment(
        loader=PackageLoader(__name__.rpartition(".")[0], "."), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(template).render(
        *values,
        **named,
        palette=palette(),
        style=style,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
