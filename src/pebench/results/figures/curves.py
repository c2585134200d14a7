"""Learning curves: a validation metric against steps, with a band over seeds."""

import math
import textwrap
from collections.abc import Callable, Collection, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from pebench.results.figures.style import RULE, WIDTH, Mark, heading, legend_below, marks
from pebench.results.stats import over_seeds
from pebench.results.tables import Row, Table
from pebench.results.titles import headline

CAPTION = (
    "Validation along training. Lines: mean over seeds that finished; bands: from the lowest seed to the highest. "
    "Where there are many encodings, grey is the range of them all."
)
TOGETHER = 8
"""Most curves in one panel; of more, each has a panel of its own, before the range of all in grey."""

COLUMNS = 3
"""Columns of those panels."""

Curve = list[tuple[float, float, float, float]]
"""Step, mean, lowest and highest."""


def draw(table: Table) -> Figure | None:
    """Draw the learning curves of a table's encodings; return None if no record has any.

    Args:
        table: A table whose records have validation metrics along their runs.
    """
    curves = {row.label: curve for row in table.rows if (curve := _curve(row, table))}
    return lines(curves, f"validation {headline(table.task)}", "step", _steps)


def lines(
    curves: dict[str, Curve], title: str, label: str, ticks: Callable[[Axes, int], None], joined: bool = True
) -> Figure | None:
    """Draw curves in one panel, or in one each if they are many; return None if there are none.

    Args:
        curves: Curves by encoding.
        title: Title of the vertical axis, which stands above it.
        label: Label of the horizontal axis.
        ticks: Function that puts at most a number of marks on the horizontal axis of a panel.
        joined: True if lines join the points, with a band; False for marks with bars.
    """
    if not curves:
        return None
    found = marks(curves)
    if len(curves) > TOGETHER:
        return _panels(curves, found, title, label, ticks, joined)
    figure = Figure(figsize=(WIDTH, 1.9), layout="constrained")
    axes = figure.add_subplot()
    for name, curve in curves.items():
        _points(axes, curve, found[name], joined)
    axes.grid(axis="y")
    heading(figure, title)
    axes.set_xlabel(label)
    ticks(axes, 5)
    legend_below(figure, found, lines=joined)
    return figure


def size_ticks(axes: Axes, sizes: Sequence[float], most: int) -> None:
    """Mark sizes on the horizontal axis, in multiples of the trained one; where two are close, one has no label.

    Args:
        axes: The panel.
        sizes: The sizes in order.
        most: Number of marks that a panel of this width has room for.
    """
    labels, last = [], -math.inf
    for size in sizes:
        near = size - last < 0.6 * (sizes[-1] - sizes[0]) / most
        labels.append("" if near else f"{size:g}x")
        last = last if near else size
    axes.set_xticks(sizes, labels)


def _panels(
    curves: dict[str, Curve],
    found: dict[str, Mark],
    title: str,
    below: str,
    ticks: Callable[[Axes, int], None],
    joined: bool,
) -> Figure:
    titles = [textwrap.fill(label, 16, max_lines=2, placeholder="…") for label in curves]
    top, panel, foot, left = 0.2, 0.6, 0.42, 0.38  # inches
    head = 0.15 + 0.11 * max(text.count("\n") for text in titles)
    lines = math.ceil(len(curves) / COLUMNS)
    height = top + foot + lines * (head + panel)
    figure = Figure(figsize=(WIDTH, height))  # many panels are placed at once, not by trial
    figure.subplots_adjust(left / WIDTH, foot / height, 0.98, 1 - (top + head) / height, 0.15, head / panel + 0.05)
    grid = figure.subplots(lines, COLUMNS, squeeze=False).ravel()
    means: dict[float, list[float]] = {}
    for curve in curves.values():
        for step, mean, _, _ in curve:
            means.setdefault(step, []).append(mean)
    ends = [end for curve in curves.values() for _, _, *both in curve for end in both]
    steps, spans = zip(*sorted(means.items()), strict=True)
    limits = {"xlim": _padded(steps), "ylim": _padded(ends)}
    for place, (axes, name, label) in enumerate(zip(grid, titles, curves, strict=False)):
        axes.set(**limits, autoscale_on=False)  # shared axes would all be scaled again for each curve
        axes.fill_between(steps, [*map(min, spans)], [*map(max, spans)], color=RULE, alpha=0.6)
        _points(axes, curves[label], found[label], joined)
        axes.set_title(name, pad=2)
        ticks(axes, 2)
        axes.tick_params(labelleft=place % COLUMNS == 0, labelbottom=place + COLUMNS >= len(curves))
    for axes in grid[len(curves) :]:
        axes.set_axis_off()
    heading(figure, title, 1 - 0.03 / height)
    figure.supxlabel(below, fontsize="medium", y=0.03 / height)
    return figure


def _padded(values: Collection[float]) -> tuple[float, float]:
    """Return the range of some values, and a twentieth of it on both sides."""
    low, high = min(values), max(values)
    room = (high - low) / 20 or 0.5
    return low - room, high + room


def _curve(row: Row, table: Table) -> Curve:
    """Return the validation metric of the runs that finished, by step."""
    name = f"val/{table.task.metric}"
    return over_seeds([
        {point["step"]: table.task.scale * point[name] for point in record.curve if name in point}
        for record in row.finished
    ])  # fmt: skip


def _points(axes: Axes, curve: Curve, mark: Mark, joined: bool) -> None:
    """Draw means with their ranges: a line with a band, or marks with bars."""
    steps, mean, low, high = zip(*curve, strict=True)
    if joined:
        axes.fill_between(steps, low, high, color=mark.colour, alpha=0.18, linewidth=0)
    else:
        axes.vlines(steps, low, high, color=mark.colour, alpha=0.6)
    axes.plot(steps, mean, linestyle=mark.line if joined else "none", **mark.style(), markersize=3)


def _steps(axes: Axes, most: int) -> None:
    """Put ticks at steps: 500, 1k."""
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(most, integer=True))
