"""Average ranks over tasks, with the critical difference."""

from matplotlib.figure import Figure

from pebench.results.across import Summary
from pebench.results.figures.style import INK, by_row, marks

CAPTION = (
    "Average rank over tasks, 1 is best, with the middle 95 % of what resampled seeds give (two seeds or more). CD: "
    "the critical difference (Nemenyi, 5 %); those that share a bar on the right are not told apart by it."
)


def draw(summary: Summary) -> Figure | None:
    """Draw a line for each encoding, the best on top, and a bar for each group whose ranks do not differ.

    Args:
        summary: Figures of one or more encodings.

    Returns:
        None if there are too few tasks or encodings to test ranks.
    """
    if summary.critical_difference is None:
        return None
    labels = [row.label for row in summary.rows]
    figure, axes, places = by_row(labels)
    found = marks(sorted(labels))
    for place, row in zip(places, summary.rows, strict=True):
        mean, low, high = row.rank
        error = None if low is None or high is None else [[mean - low], [high - mean]]
        axes.errorbar(mean, place, xerr=error, **found[row.label].style(), capsize=2)
    axes.set_xlabel("average rank   (← better)")
    for number, group in enumerate(summary.groups):
        ends = sorted(places[labels.index(label)] for label in group)
        axes.plot(
            [1.03 + 0.025 * number] * 2, [ends[0] - 0.05, ends[-1] + 0.05], color=INK, linewidth=1.8,
            clip_on=False, transform=axes.get_yaxis_transform(), solid_capstyle="butt",
        )  # fmt: skip
    left, above = axes.get_xlim()[0], -0.12
    right = left + summary.critical_difference
    axes.set_ylim(axes.get_ylim()[0], 2 * above)
    figure.set_figheight(figure.get_figheight() - 2 * above)
    axes.errorbar((left + right) / 2, above, xerr=(right - left) / 2, color=INK, capsize=2)
    axes.annotate(
        f"CD = {summary.critical_difference:.2f}", (right, above), (4, 0), textcoords="offset points", va="center"
    )
    return figure
