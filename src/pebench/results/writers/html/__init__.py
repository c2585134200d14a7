"""One HTML page of results that needs nothing else: it opens from a folder, without network, in light and dark."""

from pebench.results import figures
from pebench.results.page import Page
from pebench.results.writers.html.content import content
from pebench.results.writers.html.rendering import render


def html(page: Page) -> str:
    """Return a page of results as one file. The same page gives the same bytes (pictures: see `figures.style.to_svg`).

    All text of records is escaped, and no script runs but the page's own. So that very many records stay one page,
    only the tables that `pebench.results.figures.drawn` names have pictures.

    Args:
        page: The page to write.
    """
    most = (figures.MOST_TABLES, figures.MOST_ROWS, figures.MOST_LINES)
    return render("page.html", ["page.css"], ["page.js"], content(page), most=most)
