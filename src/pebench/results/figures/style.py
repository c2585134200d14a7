"""Style of every picture: size, fonts, and one colour and marker for an encoding wherever it appears."""

import hashlib
import io
import itertools
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pebench.encodings.registry import encoding_cards
from pebench.results.figures.compact import compact

WIDTH = 3.3
"""Width of a picture in inches: a column of a two-column page."""

WIDE = 6.9
"""Width of a picture over both columns, in inches."""

FONT = 7
"""Size of all text in points."""

INK, MUTED, RULE, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
"""Colours of text, of less important text, of the lines of the grid, and of the background."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#3a3a3a", "#cc79a7", "#e69f00", "#56b4e9")
"""Blue, vermilion, green, black, purple, orange and sky blue: distinct to the colour-blind too.

Source:
    Okabe and Ito 2008, "Color Universal Design", https://jfly.uni-koeln.de/color/. Black is lightened, so that it
    is not the text's.
"""

OWN_COLOURS = ("#9100f2", "#732e00")
"""Violet and brown, which no encoding of pebench has: those of other packages, and one's own."""

BETTER, WORSE, EQUIVALENT = "#116329", "#a40e26", "#0550ae"
"""Colours of verdicts on figures and pages; a difference that is not separable is `MUTED`."""

VERDICTS = {"better": (BETTER, "^"), "worse": (WORSE, "v"), "equivalent": (EQUIVALENT, "D"), "open": (MUTED, "o")}
"""Colour and marker of each verdict, by the style of its cell."""

DARK = {
    INK: "#e6edf3", MUTED: "#9198a1", RULE: "#3d444d", PAPER: "#0d1117",
    BETTER: "#56d364", WORSE: "#ff8f87", EQUIVALENT: "#79b8ff",
    "#0072b2": "#3b8eea", "#d55e00": "#f0743e", "#009e73": "#1fb58a", "#3a3a3a": "#d0d4d8", "#cc79a7": "#e07bb8",
    "#e69f00": "#f5c242", "#56b4e9": "#8fd3ff", "#9100f2": "#9a5cff", "#732e00": "#a5603a",
}  # fmt: skip
"""Each colour's counterpart on a dark background."""

MARKERS = "os^DvPX<*>ph"
"""Twelve markers, which with seven colours give 84 different pairs before one comes again."""

LINES = ("-", "--", "-.", ":")
FILLS = ("full", "none", "left", "top", "right", "bottom")
"""Fillings of the marker, for options of one encoding, which share its colour."""

PLACES = len(COLOURS) * len(MARKERS)
"""Different pairs of a colour and a marker."""

DECLARED = 48
"""Places for encodings whose class declares its `mark`; the names of our others lead to one of the places after."""

RC: Any = {
    "font.family": "DejaVu Sans",  # which matplotlib brings
    "font.size": FONT, "axes.titlesize": FONT, "axes.labelsize": FONT, "legend.fontsize": FONT,
    "xtick.labelsize": FONT, "ytick.labelsize": FONT,
    "text.parse_math": False,  # a name may have a dollar in it
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED, "axes.linewidth": 0.6,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2, "ytick.major.size": 2,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.facecolor": PAPER, "figure.facecolor": PAPER, "savefig.facecolor": PAPER, "savefig.edgecolor": "none",
    "grid.color": RULE, "grid.linewidth": 0.5, "lines.linewidth": 1.1, "lines.markersize": 4,
    "legend.frameon": False, "legend.handlelength": 2.2, "legend.columnspacing": 1.2, "legend.labelspacing": 0.35,
    "svg.fonttype": "path",  # outlines look the same wherever they are opened; names of fonts do not
    "svg.hashsalt": "pebench",  # else ids differ from one time to the next
    "savefig.dpi": 300,
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Colour, marker and line of one encoding."""

    colour: str
    marker: str
    line: str
    fill: str = "full"

    def handle(self, label: str, line: bool) -> Line2D:
        """Return an entry of a legend, with or without the line."""
        return Line2D([], [], label=label, **self.style() | {"linestyle": self.line if line else "none"})

    def style(self) -> dict[str, Any]:
        """Return the marker and colour, as matplotlib takes them."""
        return {
            "color": self.colour, "marker": self.marker, "fillstyle": self.fill, "markerfacecoloralt": PAPER,
            "markerfacecolor": self.colour,
        }  # fmt: skip


def mark(encoding: str) -> Mark:
    """Return the mark of an encoding: the one that its class declares, else one that follows from its name.

    Encodings that are not part of pebench have colours of their own.

    Args:
        encoding: Name of the encoding, without options.

    Example:
        >>> mark("add") == Mark("#0072b2", "o", "-")
        True
    """
    card = encoding_cards().get(encoding)
    number = int(hashlib.sha256(encoding.encode()).hexdigest(), 16)  # the same in every process, unlike hash()
    if card is None:
        colour, line = OWN_COLOURS[number % len(OWN_COLOURS)], LINES[number // 100 % len(LINES)]
        return Mark(colour, MARKERS[number // 10 % len(MARKERS)], line)
    place = card.declared["mark"]
    if place is None:
        place = DECLARED + number % (PLACES - DECLARED)
    line = LINES[place // len(COLOURS) % len(LINES)]
    return Mark(COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)], line)


def marks(labels: Iterable[str]) -> dict[str, Mark]:
    """Return the marks of a table's rows: options of one encoding differ in how the marker is filled, and in the line.

    Args:
        labels: Encodings with their options: ``concat (d_p=16)``.
    """
    found: dict[str, Mark] = {}
    for label in labels:
        plain = mark(label.partition(" (")[0])
        others = sum(other.colour == plain.colour and other.marker == plain.marker for other in found.values())
        line = LINES[(LINES.index(plain.line) + others) % len(LINES)]
        found[label] = replace(plain, fill=FILLS[others % len(FILLS)], line=line)
    return found


@contextmanager
def styled() -> Iterator[None]:
    """Make and save figures in this style within a block; other users of matplotlib are left alone."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name in letters that the font has not is shown as boxes
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def laid_out(draw: Callable[[Any], Figure | None], what: Any) -> Figure | None:
    """Return the figure that a function draws, in this style, with everything in its place for good.

    Each time that matplotlib lays out a figure, what it did the time before moves it a little.
    """
    with styled():
        figure = draw(what)
        if figure is not None and figure.get_layout_engine() is not None:
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
    return figure


def folded(label: str) -> str:
    """Return a label in lines that fit into half of a picture, broken at spaces, so that options stay whole."""
    return textwrap.fill(label, 22, break_on_hyphens=False)


def by_row(labels: list[str]) -> tuple[Figure, Axes, list[float]]:
    """Return a figure with a line for each label, the first on top, its axes, and the place of each label along y.

    Args:
        labels: Labels of the rows; long ones are broken.
    """
    broken = [folded(label) for label in labels]
    heights = [0.17 + 0.11 * text.count("\n") for text in broken]
    places = [end - height / 2 for end, height in zip(itertools.accumulate(heights), heights, strict=True)]
    figure = Figure(figsize=(WIDTH, 0.55 + sum(heights)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(places, broken)
    axes.set_ylim(sum(heights), 0)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    return figure, axes, places


def heading(figure: Figure, text: str, y: float | None = None) -> None:
    """Put the title of the vertical axis above a picture: beside it, an arrow in the text would lie on its side."""
    figure.suptitle(text, x=0.01, ha="left", fontsize="medium", **({} if y is None else {"y": y}))


def legend_below(figure: Figure, found: dict[str, Mark], lines: bool) -> None:
    """Name the marks under the picture, making it higher by what they need.

    Args:
        figure: Figure with a constrained layout.
        found: Marks by label.
        lines: True if the picture has lines.
    """
    columns = 3 if max(map(len, found)) < 13 else 2
    labels = [folded(label) for label in found]
    high = -(-sum(1 + label.count("\n") for label in labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.15 * high + 0.1)
    handles = [mark.handle(label, lines) for mark, label in zip(found.values(), labels, strict=True)]
    length = 3.4 if lines else None  # for two periods of a broken line
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=length)


def to_svg(figure: Figure) -> str:
    """Return a figure as SVG: the same figure gives the same bytes with the same version of matplotlib."""
    text = io.StringIO()
    with styled():
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing)
    return compact(text.getvalue())


def to_png(figure: Figure) -> bytes:
    """Return a figure as PNG, 300 dots an inch."""
    image = io.BytesIO()
    with styled():
        figure.savefig(image, format="png", metadata={"Software": None})
    return image.getvalue()
