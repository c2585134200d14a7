"""Length or resolution extrapolation: a test metric against size, the trained one marked."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pebench.results.figures.curves import Curve, lines, size_ticks
from pebench.results.figures.style import MUTED
from pebench.results.grids.measurements import size_factor
from pebench.results.stats import over_seeds
from pebench.results.tables import Row, Table
from pebench.results.titles import headline

CAPTION = (
    "The same test split at other sizes than the trained one (1x, the dotted line), without further training. Lines: "
    "mean over seeds that finished, at sizes that all of them have; bands: from the lowest seed to the highest. "
    "Encodings that refuse other sizes are not shown."
)


def draw(table: Table) -> Figure | None:
    """Draw the metric of a table's encodings against size; return None if no record has it at two sizes.

    Args:
        table: A table whose records have test metrics such as ``test/accuracy@2x``.
    """
    curves = {row.label: curve for row in table.rows if len(curve := _curve(row, table)) > 1}
    sizes = sorted({size for curve in curves.values() for size, *_ in curve})

    def ticks(axes: Axes, most: int) -> None:
        axes.axvline(1.0, color=MUTED, linestyle=":", zorder=0)
        size_ticks(axes, sizes, most)

    return lines(curves, f"test {headline(table.task)}", "length or width, over the trained one", ticks)


def _curve(row: Row, table: Table) -> Curve:
    """Return the test metric of the runs that finished, by size."""
    sizes: dict[float, Mapping[int, float]] = {1.0: row.values}
    for label, values in row.extrapolation(table.task.metric).items():
        if size := size_factor(label):
            sizes[size] = values
    scale, curves = table.task.scale, []
    for seed in row.values:
        curves.append({size: scale * values[seed] for size, values in sizes.items() if seed in values})
    return over_seeds(curves)
