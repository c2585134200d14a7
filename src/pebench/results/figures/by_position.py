"""Loss by position in long windows beside the same tokens in sliding ones, the trained length marked."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pebench.results.figures.curves import lines, size_ticks
from pebench.results.figures.style import MUTED
from pebench.results.grids import beside_control
from pebench.results.stats import over_seeds
from pebench.results.tables import Table
from pebench.results.titles import difference_unit

CAPTION = (
    "The loss of test tokens by their position in the longest windows that were measured, less that of the same tokens "
    "in windows of the trained length that overlap by half (the control, the line at zero). Above zero the new "
    "positions harm, below it the longer context helps. Dotted: the trained length. Lines: mean over seeds that "
    "finished; bands: from the lowest seed to the highest."
)


def draw(table: Table) -> Figure | None:
    """Draw the difference to the control against position; return None if no record has it.

    Args:
        table: A table whose records may have a loss by position.
    """
    curves = {row.label: curve for row in table.rows if (curve := over_seeds(beside_control(row, table.task)))}
    ends = [2**power for power in range(8) if any(curve[-1][0] > 2**power / 2 for curve in curves.values())]

    def ticks(axes: Axes, most: int) -> None:
        axes.axvline(1.0, color=MUTED, linestyle=":", zorder=0)
        axes.axhline(0.0, color=MUTED, linewidth=0.8, zorder=0)
        size_ticks(axes, ends, most)

    title = f"test {difference_unit(table.task)} above sliding windows ↓"
    return lines(curves, title, "position, over the trained length", ticks)
