"""How trained models keep content and position apart: by channel at the input, by layer and head in attention."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pebench.results.figures.inside import COLOURS_OF_TERMS
from pebench.results.figures.style import COLOURS, FONT, INK, MUTED, WIDE, folded
from pebench.results.tables import Row, Table
from pebench.runs.records import Record

CAPTION = (
    "Left: the energy of position (filled) and of content (line; dashed before training) in each channel of the input, "
    "channels with the most of position first. Where the line leaves the filled part, training made room. Right: the "
    "products of content and position that make up the attention logits, a bar for each head, the heads of a layer "
    "ordered by how much of their logits is content alone. Means over seeds."
)

POSITION, CONTENT = COLOURS[1], COLOURS[0]


def draw(table: Table) -> Figure | None:
    """Draw the rows of a table that have an analysis by channel or by head; return None if no row has."""
    rows = [row for row in table.rows if _by_channel(row, "trained") or _by_head(row)]
    return draw_rows(rows) if rows else None


def draw_rows(rows: Sequence[Row]) -> Figure:
    """Draw rows below each other, each with its channels at the left and its heads at the right."""
    figure = Figure(figsize=(WIDE, 0.75 + 0.8 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), 2, squeeze=False, sharex="col", width_ratios=(1, 1.4))
    for (left, right), row in zip(grid, rows, strict=True):
        _draw_channels(left, row)
        _draw_heads(right, row)
    grid[0][0].set_title("energy by channel, %", loc="left")
    grid[0][1].set_title("share of the logits' variance by layer and head, %", loc="left")
    grid[-1][0].set_xlabel("channels, most position first")
    handles = [
        Patch(color=POSITION, label="position"),
        Line2D([], [], color=CONTENT, label="content"),
        Line2D([], [], color=MUTED, linestyle="--", label="content, untrained"),
        *(Patch(color=colour, label=name) for name, colour in COLOURS_OF_TERMS.items()),
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
            for name, colour in COLOURS_OF_TERMS.items():
                share = max(shares.get(name, 0.0), 0.0)  # a product that works against the others takes no room
                axes.bar(place, 100 * share, bottom=100 * start, width=0.85, color=colour)
                start += share
            place += 1
        place += 1
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.set_xticks(ticks, [f"layer {number + 1}" for number in range(len(ticks))])
    axes.tick_params(axis="x", length=0)


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
    """Return the shares of each product by layer and head, heads of the most content first, as means over runs."""
    runs = [ordered for record in row.finished if (ordered := _ordered_heads(record))]
    if not runs:
        return []
    return [[_mean(heads) for heads in zip(*layers, strict=True)] for layers in zip(*runs, strict=True)]


def _ordered_heads(record: Record) -> list[list[dict[str, float]]]:
    terms = record.analysis.get("trained", {}).get("terms") or {}
    layers = []
    for at, heads in enumerate(terms.get("content-content", ())):
        shares = [
            {name: terms[name][at][head] or 0.0 for name in COLOURS_OF_TERMS if name in terms}
            for head in range(len(heads))
        ]
        layers.append(sorted(shares, key=_content, reverse=True))
    return layers


def _content(shares: Mapping[str, float]) -> float:
    return shares.get("content-content", 0.0) + shares.get("constant-content", 0.0)


def _mean(heads: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(shares[name] for shares in heads) for name in heads[0]}
