"""Progress in a notebook: a bar below the cell."""

import sys
import time
from collections.abc import Mapping
from html import escape
from typing import Any

from pebench.config import RunConfig
from pebench.engine.observer import Observer, Stage
from pebench.engine.progress import Tally
from pebench.runs.records import Record

REFRESH_S = 0.5
"""Shortest time between two updates of the bar, in seconds: a notebook keeps every one until the cell ends."""


def default_observer() -> Observer:
    """Return the observer of a Python program: a bar in a notebook, a silent one elsewhere."""
    # Looked up, not imported: where nobody has loaded it there is no notebook.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    # IPython in a terminal has no kernel, and shows no HTML.
    return NotebookBar() if hasattr(shell, "kernel") else Observer()


class NotebookBar(Observer):
    """Shows a stage of runs as one bar, with the latest run and the time left beside it.

    The bar is HTML's own, so that a notebook needs no widgets.
    """

    def __init__(self) -> None:
        self.tally, self.text = Tally(Stage((), ())), ""
        self.handle: Any = None
        self.updated = 0.0

    def planned(self, stage: Stage) -> None:
        """Count from the beginning, for the runs of another stage."""
        # Without the handle of the stage before, whose bar stays as it is.
        self.tally, self.text, self.handle = Tally(stage), stage.title or "starting", None

    def started(self) -> None:
        """Show an empty bar."""
        from IPython.display import HTML, display

        self.handle = display(HTML(self.html()), display_id=True)

    def note(self, message: str) -> None:
        """Print what is not about one run above the bar."""
        sys.stdout.write(f"{message}\n")

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        """Move the bar."""
        self.tally.progress(config, step, time.monotonic())
        if time.monotonic() - self.updated >= REFRESH_S:
            self._update()

    def finished(self, record: Record) -> None:
        """Show the run that has ended beside the bar; print it above if it failed."""
        self.tally.finished(record.config)
        self.text = self.tally.line(record)
        if not record.ok:
            self.note(self.text)
        self._update()

    def ended(self) -> None:
        """Leave the bar as it is now."""
        self._update()

    def html(self) -> str:
        """Return the bar and the text beside it as HTML."""
        # HTML wants a maximum above 0.
        bar = f'<progress value="{self.tally.steps:.0f}" max="{max(1, self.tally.steps_planned)}"></progress>'
        return f"<div>{bar} {self.tally.done} of {self.tally.total} runs <small>{escape(self.text)}</small></div>"

    def _update(self) -> None:
        from IPython.display import HTML

        self.updated = time.monotonic()
        if self.handle is not None:
            self.handle.update(HTML(self.html()))
