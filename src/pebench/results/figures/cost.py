"""Quality against cost: parameters, operations and the time of a step."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from pebench.formatting import seconds_unit
from pebench.results.figures.style import WIDTH, Mark, heading, legend_below, marks
from pebench.results.tables import Row, Table
from pebench.results.titles import headline

CAPTION = (
    "Test metric (mean and 95 % t-interval) against cost. Parameters and FLOPs are counted. The time of a training "
    "step is measured, and shown only where nothing says that runs shared their machine or were made on several."
)


def draw(table: Table) -> Figure | None:
    """Draw a panel for each known cost, with a shared axis for the metric; return None if none is known.

    The time of a step is left out where it does not compare.

    Args:
        table: A table whose records have costs.
    """
    names = {"parameters_total": "parameters", "flops_per_sample": "FLOPs/sample"}
    rows = [row for row in table.rows if row.estimate]
    times, unit = seconds_unit(max((_step(row) or 0.0 for row in rows), default=0.0))
    names |= {"step": f"{unit}/step"} if table.timings_compare else {}
    costs = {row.label: row.costs | {"step": _step(row, times)} for row in rows}
    shown = [name for name in names if any(cost[name] is not None for cost in costs.values())]
    if not shown:
        return None
    found = marks(row.label for row in table.rows)
    figure = Figure(figsize=(WIDTH, 1.7), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, shown, strict=True):
        for row in rows:
            if row.estimate and costs[row.label][name] is not None:
                half, factor = row.estimate.half_width or 0.0, table.task.scale
                _point(axes, costs[row.label][name], factor * row.estimate.mean, factor * half, found[row.label])
        axes.grid()
        axes.set_xlabel(names[name])
        axes.xaxis.set_major_locator(MaxNLocator(2))
        if name != "step":  # whose milliseconds are plain numbers
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        _widen(axes)
    heading(figure, f"test {headline(table.task)}")
    legend_below(figure, {row.label: found[row.label] for row in rows}, lines=False)
    return figure


def _step(row: Row, times: float = 1.0) -> float | None:
    """Return the duration of a training step in seconds, times a factor."""
    throughput = row.costs["throughput"]
    return times * row.config.train.batch_size / throughput if throughput else None


def _point(axes: Axes, x: float, y: float, half: float, mark: Mark) -> None:
    axes.errorbar(x, y, yerr=half, **mark.style(), elinewidth=0.7)


def _widen(axes: Axes) -> None:
    """Leave room at the sides and keep small differences small: the axis spans a twentieth of its values or more."""
    left, right = axes.get_xlim()
    middle, half = (left + right) / 2, max((right - left) * 0.7, abs(left + right) / 40)
    axes.set_xlim(middle - half, middle + half)
