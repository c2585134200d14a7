"""Pages on the screen: an HTML page opened in a browser, where there is one."""

import contextlib
import os
import sys
import webbrowser
from pathlib import Path

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set where a browser on Linux can show a page."""


def open_page(path: Path) -> str:
    """Open a page in the browser and return a sentence on where it is, if there is none to open it in.

    Args:
        path: An HTML file.

    Returns:
        Nothing where a browser has been asked to open it.
    """
    shown = not sys.platform.startswith("linux") or any(map(os.environ.get, DISPLAYS))
    with contextlib.suppress(webbrowser.Error):
        if shown and webbrowser.open(path.resolve().as_uri()):
            return ""
    return f"There is no browser here to open it in. The page is at {path.resolve()}"


def open_if_asked(path: Path, asked: bool) -> None:
    """Open a page if that is asked for, and say where it is if it cannot be."""
    if asked and (note := open_page(path)):
        sys.stdout.write(f"{note}\n")
