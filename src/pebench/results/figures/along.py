"""A test metric along a setting, such as the depth of the model."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pebench.results.contrasts import Series
from pebench.results.figures.curves import Curve, lines
from pebench.results.stats import over_seeds
from pebench.results.titles import headline

CAPTION = (
    "The test metric of models that were trained with each value of a setting, evenly spaced. Lines: mean over seeds "
    "that finished; bands: from the lowest seed to the highest."
)


def draw(series: Series) -> Figure | None:
    """Draw the metric of every encoding against a setting's values; return None if no encoding has it at two of them.

    Args:
        series: Tables by the setting's value.
    """
    curves = {label: curve for label in series.labels if len(curve := _curve(series, label)) > 1}
    values = [f"{value:g}" if isinstance(value, float) else str(value) for value in series.tables]

    def ticks(axes: Axes, most: int) -> None:
        axes.set_xticks(range(len(values)), values)

    return lines(curves, f"test {headline(series.first.task)}", series.setting, ticks)


def _curve(series: Series, label: str) -> Curve:
    """Return the test metric of an encoding by the place of the setting's value."""
    times, curve = series.first.task.scale, []
    for place, table in enumerate(series.tables.values()):
        row = table.row(label)
        if row:
            curve += over_seeds([{float(place): times * value} for value in row.values.values()])
    return curve
