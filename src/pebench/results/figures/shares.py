"""How much of the residual stream is position, along the depth of the model."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pebench.results.figures.curves import Curve, lines
from pebench.results.stats import over_seeds
from pebench.results.tables import Row, Table

CAPTION = (
    "Of the variance of the residual stream in trained models, the share that lies between positions: what is given to "
    "the first block (0), and after each. Lines: mean over seeds; bands: from the lowest seed to the "
    "highest. What examples have in common at a position, whatever the model is told, is what `none` shows."
)


def draw(table: Table) -> Figure | None:
    """The shares by depth of a table's encodings; None if no record has them.

    Args:
        table: Whose records have shares of position.
    """
    curves = {row.label: curve for row in table.rows if (curve := _curve(row))}
    if not curves:
        return None
    deepest = max(layer for curve in curves.values() for layer, *_ in curve)

    def ticks(axes: Axes, most: int) -> None:
        axes.set_xticks(range(0, int(deepest) + 1, 1 + int(deepest) // 12))

    return lines(curves, "position's share of the variance %", "blocks passed", ticks)


def _curve(row: Row) -> Curve:
    """The share of the runs that have it, in percent, by blocks passed."""
    layers = row.position_shares.get("trained", [])
    seeds = {seed for shares in layers for seed in shares}
    return over_seeds([
        {layer: 100 * shares[seed] for layer, shares in enumerate(layers) if seed in shares} for seed in sorted(seeds)
    ])  # fmt: skip
