"""A test metric against length or resolution, the trained one marked."""

from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pebench.figures.curves import Curve, lines
from pebench.figures.style import RULE, scale
from pebench.grids import factors, headline
from pebench.tables import Row, Table

CAPTION = (
    "The same test split at other sizes than the trained one (1x), without further training. Lines: mean over seeds "
    "that finished; bands: from the lowest seed to the highest. Encodings that refuse other sizes are not shown."
)


def draw(table: Table) -> Figure | None:
    """The metric against size of a table's encodings; None if no record has it at two sizes.

    Args:
        table: Whose records have test metrics such as ``test/accuracy@2x``.
    """
    sizes = {1.0: "", **{factor: f"@{label}" for label, factor in factors(table).items()}}
    if len(sizes) < 2:
        return None
    curves = {row.label: curve for row in table.rows if len(curve := _curve(row, table, sizes)) > 1}
    if not curves:
        return None

    def ticks(axes: Axes, most: int) -> None:
        axes.axvline(1.0, color=RULE, zorder=0)
        axes.set_xticks([*sizes], [f"{size:g}x" for size in sizes])

    return lines(curves, f"test {headline(table.task)}", "length or width, over the trained one", ticks)


def _curve(row: Row, table: Table, sizes: dict[float, str]) -> Curve:
    """Mean, lowest and highest at the sizes that all runs that finished have."""
    runs = [record for record in row.records if record.config.seed in row.values]
    curve: Curve = []
    for size, suffix in sorted(sizes.items()):
        seeds = [record.metrics.get(f"test/{table.task.metric}{suffix}") for record in runs]
        values = [scale(table.task) * value for value in seeds if value is not None]
        if values and len(values) == len(runs):
            curve.append((size, fmean(values), min(values), max(values)))
    return curve
