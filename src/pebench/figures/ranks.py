"""Average ranks over tasks, with the critical difference."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from pebench.figures.style import INK, by_row, marks

CAPTION = (
    "Average rank over tasks, 1 is best, with its interval. Encodings that share a bar on the right are not separable "
    "(Nemenyi); CD: the critical difference."
)


def draw(
    ranks: Sequence[tuple[str, tuple[float, float, float]]],
    critical_difference: float | None = None,
    groups: Sequence[Sequence[str]] = (),
) -> Figure:
    """A line for each encoding, the best on top.

    Args:
        ranks: Label, and mean, lower and upper end of its average rank.
        critical_difference: By which two average ranks must differ to be told apart; None if it was not tested.
        groups: Labels of those that are not separable.
    """
    ordered = sorted(ranks, key=lambda item: (item[1][0], item[0]))
    labels = [label for label, _ in ordered]
    figure, axes, places = by_row(labels)
    found = marks(sorted(labels))
    for place, (label, (mean, low, high)) in zip(places, ordered, strict=True):
        axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], **found[label].style(), capsize=2)
    axes.set_xlabel("average rank   (← better)")
    for number, (first, last) in enumerate(_bars(labels, groups)):
        axes.plot(
            [1.03 + 0.025 * number] * 2, [places[first] - 0.05, places[last] + 0.05], color=INK, linewidth=1.8,
            clip_on=False, transform=axes.get_yaxis_transform(), solid_capstyle="butt",
        )  # fmt: skip
    if critical_difference is not None:
        left, above = axes.get_xlim()[0], -0.12
        axes.set_ylim(axes.get_ylim()[0], 2 * above)
        figure.set_figheight(figure.get_figheight() - 2 * above)
        axes.errorbar(left + critical_difference / 2, above, xerr=critical_difference / 2, color=INK, capsize=2)
        axes.annotate(
            f"CD = {critical_difference:.2f}", (left + critical_difference, above), (4, 0),
            textcoords="offset points", va="center",
        )  # fmt: skip
    return figure


def _bars(labels: list[str], groups: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """First and last place of each group of more than one."""
    places = [sorted(labels.index(label) for label in group) for group in groups]
    return sorted((found[0], found[-1]) for found in places if len(found) > 1)
