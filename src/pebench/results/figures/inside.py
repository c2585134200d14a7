"""Where content and position are in trained models: at the input, in the attention logits, and layer by layer."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pebench.results.figures.style import COLOURS, INK, MUTED, RULE, WIDE, folded, legend_below, marks
from pebench.results.inside import FIGURES, PRODUCTS
from pebench.results.stats import over_seeds
from pebench.results.tables import Row, Table

CAPTION = (
    "Left: how far content and position share channels at the input, hollow before training, filled after. Encodings "
    "that add nothing there have no point. Middle: which products of content and position make up the attention logits "
    "of trained models (the first word is the query's part), over layers and heads. Right: how often a linear probe "
    "finds the exact position and, dotted, the token, by blocks passed. Means over seeds."
)

TITLED = {figure.title: figure for figure in FIGURES}

COLOURS_OF_TERMS = dict(
    zip((*PRODUCTS, "bias"), (*(COLOURS[at] for at in (0, 6, 5, 1)), RULE, MUTED, COLOURS[2]), strict=True)
)
"""Colour of each product of content, position and constants in the logits, and of an encoding's bias."""


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
        ends = [TITLED["shared channels (%)"].of_runs(row.finished, stage) for stage in ("untrained", "trained")]
        if not all(ends):
            continue
        before, after = (100 * fmean(values) for values in ends)
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
            shares = TITLED[f"{name} (%)"].of_runs(row.finished, "trained")
            share = 100 * fmean(shares) if shares else 0.0
            if share > 0:  # a term that works against the others takes no room
                axes.barh(place, share, left=start, height=0.7, color=colour)
                start += share
    axes.axvline(100, color=MUTED, linewidth=0.6)
    axes.set_xlabel("share of the logits' variance %")
    handles = [Patch(color=colour, label=name) for name, colour in COLOURS_OF_TERMS.items()]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, columnspacing=0.8)


def _draw_probes(axes: Axes, rows: Sequence[Row]) -> None:
    for row, mark in zip(rows, marks(row.label for row in rows).values(), strict=True):
        for name, line in (("position", "-"), ("token", ":")):
            plot_probe(axes, row, name, "trained", linestyle=line, **mark.style(), markersize=3)
    axes.set_ylim(-5, 105)
    axes.grid(axis="y")
    axes.spines["left"].set_color(INK)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("blocks passed")
    axes.set_title("probe accuracy %", loc="left")


def plot_probe(axes: Axes, row: Row, name: str, stage: str, **style: Any) -> None:
    """Plot how often a probe finds something, in percent, by blocks passed; nothing where none was fitted.

    Args:
        axes: Axes to plot into.
        row: The row, over whose runs means are taken.
        name: ``position`` or ``token``.
        stage: ``trained`` or ``untrained``.
        style: Looks of the line, as matplotlib takes them.
    """
    probes = [found for record in row.finished if (found := record.analysis.get(stage, {}).get("probes"))]
    runs = [{passed: 100 * share for passed, share in enumerate(found.get(name, ()))} for found in probes]
    if points := over_seeds(runs):
        blocks, means, *_ = zip(*points, strict=True)
        axes.plot(blocks, means, **style)
