"""The picture of an encoding: its effect as a heat map, and the similarity of positions by their distance."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from pebench.encodings.effects import Array, Effect

TITLES = {
    "input": "Vectors that enter the model",
    "residual stream": "Vectors in the residual stream",
    "attention logits": "Attention logits, mean of heads",
}
CONTENT = {
    "no content": "position alone",
    "equal content": "every token of equal content",
    "random content": "change of random content",
}


Limits = tuple[float, float] | None
"""Lowest and highest value of a scale; None for that of the values alone."""


def draw(effects: Sequence["Effect"], title: str, note: str = "") -> Figure:
    """Draw each effect as a row: the heat map, and the similarity by distance or, on a grid, to the middle patch.

    Args:
        effects: As `pebench.encodings.effects.effects` measures them.
        title: Name of the encoding.
        note: Text below it in small print.
    """
    return draw_together({"": effects}, title, note)


def draw_together(found: Mapping[str, Sequence["Effect"]], title: str, note: str = "") -> Figure:
    """Draw several encodings, each effect as a row; effects on one part of the model have one scale.

    Args:
        found: Effects by the name of their encoding.
        title: Text above the picture.
        note: Text below that in small print.
    """
    rows = [(name, effect) for name, effects in found.items() for effect in effects]
    figure = Figure(figsize=(7.2, 0.7 + 2.9 * len(rows)), layout="constrained")
    figure.suptitle(title + (f"\n{note}" if note else ""), fontsize="medium")
    grid = figure.subplots(len(rows), 2, squeeze=False)
    for (name, effect), (left, right) in zip(rows, grid, strict=True):
        alike = [other for _, other in rows if other.target == effect.target] if len(found) > 1 else []
        _heat_map(effect, left, _limits(other.values for other in alike), f"{name}. " if name else "")
        if len(effect.extent) == 1:
            _by_distance(effect, right)
            if limits := _limits(other.by_distance()[1] for other in alike):
                room = (limits[1] - limits[0]) / 20
                right.set_ylim(limits[0] - room, limits[1] + room)
        else:
            _around_centre(effect, right, _limits(other.around_centre() for other in alike))
    return figure


def _limits(values: Iterable["Array"]) -> Limits:
    """Return the lowest and the highest of several arrays' values; None for no arrays."""
    ends = [(float(np.nanmin(array)), float(np.nanmax(array))) for array in values]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def _heat_map(effect: "Effect", axes: Axes, limits: Limits, name: str) -> None:
    image = _image(effect.values, axes, "auto" if effect.absolute else "equal", limits)
    what = "position" if len(effect.extent) == 1 else "patch, row by row"
    axes.set_ylabel(what if effect.absolute else f"query's {what}")
    axes.set_xlabel("channel" if effect.absolute else f"key's {what}")
    block = f", block {effect.layer + 1}" if effect.layer else ""
    axes.set_title(f"{name}{TITLES[effect.target]}{block}:\n{CONTENT[effect.probe]}", fontsize="small")
    axes.figure.colorbar(image, ax=axes)


def _by_distance(effect: "Effect", axes: Axes) -> None:
    distances, (lowest, mean, highest) = effect.by_distance()
    shown = distances >= 0 if effect.absolute else np.full(len(distances), True)
    axes.plot(distances[shown], mean[shown], linewidth=1.2, label="mean over pairs of positions")
    if (highest - lowest).max() > 0.02 * (highest.max() - lowest.min()):
        axes.fill_between(
            distances[shown], lowest[shown], highest[shown], alpha=0.25, linewidth=0, label="lowest to highest"
        )
        axes.legend(fontsize="x-small", frameon=False)
    axes.set_xlabel("distance" if effect.absolute else "key's position minus query's")
    axes.set_title("Cosine similarity by distance" if effect.absolute else "Mean logit by distance", fontsize="small")
    axes.grid(linewidth=0.4, alpha=0.5)


def _around_centre(effect: "Effect", axes: Axes, limits: Limits) -> None:
    image = _image(effect.around_centre(), axes, "equal", limits)
    row, column = (n // 2 for n in effect.extent)
    axes.plot(column, row, marker="x", color="black", markersize=5)
    what = "Cosine similarity to" if effect.absolute else "Logits of"
    axes.set_title(f"{what} the patch in the middle", fontsize="small")
    axes.set_xlabel("column")
    axes.set_ylabel("row")
    axes.figure.colorbar(image, ax=axes)


def _image(values: "Array", axes: Axes, aspect: Literal["auto", "equal"], limits: Limits) -> AxesImage:
    """Return an image in colours that have white at 0 where values have both signs, with ticks at whole numbers."""
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))  # a cell is whole
    axes.set_facecolor("0.9")  # where a query cannot look
    if low < 0 < high:
        most = max(-low, high)
        return axes.imshow(values, "RdBu_r", aspect=aspect, vmin=-most, vmax=most, interpolation="nearest")
    return axes.imshow(values, "viridis", aspect=aspect, vmin=low, vmax=high, interpolation="nearest")
