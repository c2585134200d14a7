"""One HTML page of results that needs nothing else: it opens from a folder, without network, in light and dark."""

import base64
import hashlib
from importlib.resources import files

from pebench.results import figures
from pebench.results.page import Page
from pebench.results.writers.html.content import content
from pebench.results.writers.html.svg import palette


def html(page: Page) -> str:
    """Return a page of results as one file. The same page gives the same bytes (pictures: see `figures.style.to_svg`).

    All text of records is escaped, and no script runs but the page's own. So that very many records stay one page,
    only the tables that `pebench.results.figures.drawn` names have pictures.

    Args:
        page: The page to write.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    style, script = (files(__name__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    environment = Environment(
        loader=PackageLoader(__name__, "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template("page.html").render(
        content(page),
        most=(figures.MOST_TABLES, figures.MOST_ROWS, figures.MOST_LINES),
        palette=palette(),
        style=style,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
