"""One HTML page of results that needs nothing else: it opens from a folder, without network, in light and dark."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from pebench import figures
from pebench.web.content import grids, notes, section, summary_grid
from pebench.web.inline import palette
from pebench.records import Record
from pebench.suites import Suite
from pebench.tables import build_tables


def html(records: Iterable[Record], allow_unmatched: bool = False, suite: Suite | None = None) -> str:
    """Records as one self-contained page. The same records give the same bytes, pictures apart (see `to_svg`).

    Whatever records say is escaped, and the page allows no script but its own. So that many records stay one page, only
    the tables that `pebench.figures.drawn` names have pictures.

    Args:
        records: In any order.
        allow_unmatched: Show tables whose rows break their regime too, with a mark.
        suite: What the records are of, whose question is the page's.

    Raises:
        UserError: As `pebench.tables.build_tables`.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    tables = build_tables(records, allow_unmatched)
    parts = zip(tables, figures.stems(tables), figures.drawn(tables), strict=True)
    script = files("pebench.web").joinpath("page.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("pebench", "web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template("page.html").render(
        suite=suite,
        overviews=grids(tables),
        sections=[section(*part) for part in parts],
        summaries=[summary_grid(summary, number) for number, summary in enumerate(figures.summaries(tables), 1)],
        undrawn=sum(not drawn for drawn in figures.drawn(tables)),
        most=(figures.MOST_TABLES, figures.MOST_ROWS),
        notes=notes(),
        palette=palette(),
        style=files("pebench.web").joinpath("page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
