"""A test metric along a setting, such as the depth of the model."""

from numbers import Real

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pebench.results.contrasts import Series
from pebench.results.figures.curves import TOGETHER, Curve, lines
from pebench.results.stats import over_seeds
from pebench.results.titles import headline

ABREAST = 0.6
"""Part of the room of one value that the marks of all encodings take, side by side."""


def caption(series: Series) -> str:
    """Return the words below the picture of a series."""
    if _numbers(series):
        return (
            "The test metric of models that were trained with each value of a setting, evenly spaced. Lines: mean over "
            "seeds that finished; bands: from the lowest seed to the highest."
        )
    return (
        "The test metric of models that were trained with each value of a setting. Marks: mean over seeds that "
        "finished; bars: from the lowest seed to the highest."
    )


def draw(series: Series) -> Figure | None:
    """Draw the metric of every encoding against a setting's values; return None if no encoding has it at two of them.

    Numbers have an order, so a line joins them; other values, such as names, have none, and stand side by side.

    Args:
        series: Tables by the setting's value.
    """
    curves = {label: curve for label in series.labels if len(curve := _curve(series, label)) > 1}
    joined = _numbers(series)
    if not joined and len(curves) <= TOGETHER:
        curves = _side_by_side(curves)
    values = [f"{value:g}" if isinstance(value, float) else str(value) for value in series.tables]

    def ticks(axes: Axes, most: int) -> None:
        axes.set_xticks(range(len(values)), values)

    return lines(curves, f"test {headline(series.first.task)}", series.setting, ticks, joined)


def _numbers(series: Series) -> bool:
    """Return whether every value of the setting is a number."""
    return all(isinstance(value, Real) and not isinstance(value, bool) for value in series.tables)


def _side_by_side(curves: dict[str, Curve]) -> dict[str, Curve]:
    """Move each curve aside by its part of the room of one value, so that no mark hides another."""
    middle = (len(curves) - 1) / 2
    moved = dict[str, Curve]()
    for number, (label, curve) in enumerate(curves.items()):
        beside = (number - middle) * ABREAST / len(curves)
        moved[label] = [(place + beside, mean, low, high) for place, mean, low, high in curve]
    return moved


def _curve(series: Series, label: str) -> Curve:
    """Return the test metric of an encoding by the place of the setting's value."""
    times, curve = series.first.task.scale, []
    for place, table in enumerate(series.tables.values()):
        row = table.row(label)
        if row:
            curve += over_seeds([{float(place): times * value} for value in row.values.values()])
    return curve
