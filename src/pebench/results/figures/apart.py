"""How trained models keep content and position apart: by channel at the input, by head in attention, by layer."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pebench.results.figures.inside import plot_probe
from pebench.results.figures.style import COLOURS, FONT, INK, MUTED, WIDE, folded
from pebench.results.tables import Row, Table
from pebench.runs.records import Record

CAPTION = (
    "Left: the energy of position (filled) and of content (line; dashed before training) in each channel of the input, "
    "channels with the most of position first. Where the line leaves the filled part, training made room. Middle: how "
    "much of the variance of attention logits comes from content alone, position alone, or products of both, a bar for "
    "each head, those of the most content first. Right: how often a linear probe finds the exact position and the "
    "token after each block; dashed before training. Means over seeds."
)

POSITION, CONTENT, BOTH = COLOURS[1], COLOURS[0], COLOURS[5]

SOURCES = {
    "content": (CONTENT, ("content-content", "constant-content")),
    "both": (BOTH, ("content-position", "position-content")),
    "position": (POSITION, ("position-position", "constant-position")),
    "bias": (COLOURS[2], ("bias",)),
}
"""Sources of attention logits: colour, and the products that belong to each."""

FEW = 3
"""Most rows that are drawn tall."""


def draw(table: Table) -> Figure | None:
    """Draw the rows of a table that have an analysis by channel or by head; return None if no row has."""
    rows = [row for row in table.rows if _by_channel(row, "trained") or _by_head(row)]
    return draw_rows(rows) if rows else None


def draw_rows(rows: Sequence[Row]) -> Figure:
    """Draw rows below each other: channels of the input at the left, heads in the middle, probes at the right."""
    tall = 1.2 if len(rows) <= FEW else 0.8
    figure = Figure(figsize=(WIDE, 0.75 + tall * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex="col", width_ratios=(1, 1.6, 0.9))
    for (left, middle, right), row in zip(grid, rows, strict=True):
        _draw_channels(left, row)
        _draw_heads(middle, row)
        _draw_probes(right, row)
    titles = "energy at the input, %", "attention logits, %", "probe accuracy, %"
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title, loc="left")
    for axes, title in zip(grid[-1], ("channels, most position first", "heads", "blocks passed"), strict=True):
        axes.set_xlabel(title)
    handles = [
        *(Patch(color=colour, label=name) for name, (colour, _) in SOURCES.items()),
        Line2D([], [], color=MUTED, linestyle="--", label="before training"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def _draw_channels(axes: Axes, row: Row) -> None:
    axes.set_ylabel(folded(row.label), rotation=0, ha="right", va="center", fontsize=FONT, color=INK)
    axes.yaxis.set_major_locator(MaxNLocator(2))
    trained, untrained = _by_channel(row, "trained"), _by_channel(row, "untrained")
    if not trained:
        adds = any(record.analysis.get("trained", {}).get("energies") for record in row.finished)
        note = "not measured" if adds else "adds nothing here"
        axes.text(0.5, 0.5, note, transform=axes.transAxes, ha="center", va="center", color=MUTED)
        axes.set_yticks([])
        return
    channels = range(1, len(trained["position"]) + 1)
    axes.fill_between(channels, trained["position"], step="mid", color=POSITION, linewidth=0)
    if untrained:
        axes.plot(channels, untrained["content"], color=MUTED, linestyle="--", linewidth=0.8)
    axes.plot(channels, trained["content"], color=CONTENT, linewidth=0.9)
    axes.set_ylim(bottom=0)


def _draw_heads(axes: Axes, row: Row) -> None:
    place, ticks = 0.0, []
    for layer in _by_head(row):
        ticks.append(place + (len(layer) - 1) / 2)
        for shares in layer:
            start = 0.0
            for name, (colour, _) in SOURCES.items():
                axes.bar(place, 100 * shares[name], bottom=100 * start, width=0.85, color=colour)
                start += shares[name]
            place += 1
        place += 1
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.set_xticks(ticks, [f"layer {number + 1}" for number in range(len(ticks))])
    axes.tick_params(axis="x", length=0)


def _draw_probes(axes: Axes, row: Row) -> None:
    for stage, line in (("untrained", "--"), ("trained", "-")):
        for name, colour in (("position", POSITION), ("token", CONTENT)):
            plot_probe(axes, row, name, stage, color=colour if stage == "trained" else MUTED, linestyle=line)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _by_channel(row: Row, stage: str) -> Mapping[str, list[float]]:
    """Return the percentages of content's and position's energy in each channel; nothing where they are not known."""
    found = [record.analysis.get(stage, {}).get("energies") or {} for record in row.finished]
    known = [figures for figures in found if _is_known(figures, "content") and _is_known(figures, "position")]
    if not known:
        return {}
    return {
        part: [100 * fmean(values) for values in zip(*(run[f"{part}_channels"] for run in known), strict=True)]
        for part in ("content", "position")
    }


def _is_known(energies: Mapping[str, Any], part: str) -> bool:
    shares = energies.get(f"{part}_channels") or [None]
    return None not in shares  # as of a position that is the same vector everywhere, whose energy is 0


def _by_head(row: Row) -> list[list[dict[str, float]]]:
    """Return what decides attention by layer and head, heads of the most content first, as means over runs."""
    runs = [ordered for record in row.finished if (ordered := _ordered_heads(record))]
    return [[_mean(heads) for heads in zip(*layers, strict=True)] for layers in zip(*runs, strict=True)]


def _ordered_heads(record: Record) -> list[list[dict[str, float]]]:
    terms = record.analysis.get("trained", {}).get("terms") or {}
    layers = []
    for at, heads in enumerate(terms.get("content-content", ())):
        shares = [_shares(terms, at, head) for head in range(len(heads))]
        layers.append(sorted(shares, key=lambda head: head["content"], reverse=True))
    return layers


def _shares(terms: Mapping[str, Any], layer: int, head: int) -> dict[str, float]:
    """Return the share of each source in the logits of a head."""
    found = {}
    for name, (_, products) in SOURCES.items():
        known = [terms[product][layer][head] or 0.0 for product in products if product in terms]
        found[name] = max(sum(known), 0.0)  # products that work against the others take no room
    return found


def _mean(heads: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(shares[name] for shares in heads) for name in heads[0]}
