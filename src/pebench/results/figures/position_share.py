"""Position variance share of the residual stream, along the depth of the model."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pebench.results.figures.curves import Curve, lines
from pebench.results.stats import over_seeds
from pebench.results.tables import Row, Table

CAPTION = (
    "Share of the variance of the residual stream that lies between positions, in trained models: at the input "
    "(0), and after each block. Lines: mean over seeds; bands: from the lowest seed to the highest. A "
    "bidirectional model with `none` shows what examples have in common at a position; a causal one also tells "
    "positions apart by itself."
)


def draw(table: Table) -> Figure | None:
    """Draw the shares of a table's encodings by depth; return None if there is nothing to compare them with.

    Args:
        table: A table whose rows have position variance shares: all of them, or at least the one without an encoding.
    """
    curves = {row.label: curve for row in table.rows if (curve := _curve(row))}
    if "none" not in curves and len(curves) < sum(bool(row.values) for row in table.rows):
        return None

    def ticks(axes: Axes, most: int) -> None:
        axes.xaxis.set_major_locator(MaxNLocator(most, integer=True))

    return lines(curves, "position's share of the variance %", "blocks passed", ticks)


def _curve(row: Row) -> Curve:
    """Return the share of the runs that have it, in percent, by blocks passed."""
    return over_seeds([
        {layer: 100 * share for layer, share in enumerate(shares) if share is not None}
        for shares in row.position_shares["trained"].values()
    ])  # fmt: skip
