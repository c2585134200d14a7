"""Where content and position are in trained models: at the input, in the attention logits, and layer by layer."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pebench.results.figures.style import COLOURS, INK, MUTED, RULE, WIDE, folded, legend_below, marks
from pebench.results.inside import PRODUCTS
from pebench.results.tables import Row, Table

CAPTION = (
    "Left: how far content and position share channels at the input, hollow before training, filled after. Encodings "
    "that add nothing there have no point. Middle: which products of content and position make up the attention logits "
    "of trained models (the first word is the query's part), over layers and heads. Right: how often a linear probe "
    "finds the exact position and, dotted, the token, by blocks passed. Means over seeds."
)

COLOURS_OF_TERMS = dict(
    zip((*PRODUCTS, "bias"), (COLOURS[0], COLOURS[6], COLOURS[5], COLOURS[1], COLOURS[2]), strict=True)
)
"""Colour of each product of content and position in the logits, and of an encoding's bias."""


def draw(table: Table) -> Figure | None:
    """Draw the analyses of a table's runs; return None if none was analyzed."""
    rows = [row for row in table.rows if _was_analyzed(row)]
    if not rows:
        return None
    labels = [row.label for row in rows]
    figure = Figure(figsize=(WIDE, 1.0 + 0.2 * len(rows)), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.4, 1.4))
    for axes in (left, middle):
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    left.set_yticks(range(len(rows)), [folded(label) for label in labels])
    middle.set_yticks([])
    _draw_shared(left, rows)
    _draw_terms(middle, rows)
    _draw_probes(right, rows)
    legend_below(figure, marks(labels), lines=True)
    return figure


def _was_analyzed(row: Row) -> bool:
    return any(record.analysis for record in row.finished)


def _draw_shared(axes: Axes, rows: Sequence[Row]) -> None:
    for place, (row, mark) in enumerate(zip(rows, marks(row.label for row in rows).values(), strict=True)):
        ends = [mean_of(row, stage, "energies", lambda found: found["overlap"]) for stage in ("untrained", "trained")]
        if None in ends:
            continue
        before, after = (100 * end for end in ends if end is not None)
        axes.plot([before, after], [place, place], color=RULE, linewidth=1.5, zorder=1)
        axes.plot(before, place, marker="o", color=mark.colour, markerfacecolor="none", linestyle="none")
        axes.plot(after, place, marker="o", color=mark.colour, linestyle="none")
    axes.set_xlim(-5, 105)
    axes.grid(axis="x")
    axes.set_xlabel("shared channels %")


def _draw_terms(axes: Axes, rows: Sequence[Row]) -> None:
    for place, row in enumerate(rows):
        start = 0.0
        for name, colour in COLOURS_OF_TERMS.items():
            share = mean_of(row, "trained", "terms", functools.partial(_mean_share, name))
            if share is not None and share > 0:  # a term that works against the others takes no room
                axes.barh(place, 100 * share, left=start, height=0.7, color=colour)
                start += 100 * share
    axes.axvline(100, color=MUTED, linewidth=0.6)
    axes.set_xlabel("share of the logits' variance %")
    handles = [Patch(color=colour, label=name) for name, colour in COLOURS_OF_TERMS.items()]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, columnspacing=0.8)


def _draw_probes(axes: Axes, rows: Sequence[Row]) -> None:
    for row, mark in zip(rows, marks(row.label for row in rows).values(), strict=True):
        for name, line in (("position", "-"), ("token", ":")):
            depth = max(
                (len(_figures(record, "trained", "probes").get(name, ())) for record in row.finished), default=0
            )
            means = [
                mean_of(row, "trained", "probes", functools.partial(_accuracy, name, layer)) for layer in range(depth)
            ]
            known = [(layer, 100 * mean) for layer, mean in enumerate(means) if mean is not None]
            if known:
                axes.plot(*zip(*known, strict=True), linestyle=line, **mark.style(), markersize=3)
    axes.set_ylim(-5, 105)
    axes.grid(axis="y")
    axes.spines["left"].set_color(INK)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("blocks passed")
    axes.set_title("probe accuracy %", loc="left")


def mean_of(row: Row, stage: str, measure: str, read: Callable[[Any], float | None]) -> float | None:
    """Return the mean over seeds of a number of an analysis; None where no run has it.

    Args:
        row: Row of the runs.
        stage: ``trained`` or ``untrained``.
        measure: Name of the measure.
        read: Function from the measure's figures to the number.
    """
    figures = [found for record in row.finished if (found := _figures(record, stage, measure))]
    return _mean([read(found) for found in figures])


def _figures(record: Any, stage: str, measure: str) -> dict[str, Any]:
    return record.analysis.get(stage, {}).get(measure) or {}


def _mean(values: Iterable[Any]) -> float | None:
    """Return the mean of numbers, or of lists of them, without those that are None."""
    known = [value for item in values for value in (item if isinstance(item, list) else [item]) if value is not None]
    return fmean(known) if known else None


def _mean_share(name: str, figures: Mapping[str, Any]) -> float | None:
    return _mean(figures.get(name, []))


def _accuracy(name: str, layer: int, figures: Mapping[str, Any]) -> float | None:
    values = figures.get(name, ())
    return values[layer] if layer < len(values) else None
