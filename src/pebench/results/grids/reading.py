"""The order in which a reader meets the cells of a grid: rows by family, the verdict beside the row's name."""

from pebench.encodings.families import FAMILIES, family_of
from pebench.results.cells import Grid

FEW_ROWS = 10
"""Rows of a grid that a reader sees at once; those of a longer one are shown by family."""


def by_family(grid: Grid) -> list[tuple[str, list[int]]]:
    """Return the families of a grid's encodings, each with the places of its rows.

    A short grid, or one whose rows are no encodings, is one part without a name.

    Args:
        grid: A grid with one row or more.
    """
    first, column = next(iter(grid.items()))
    places = range(len(column.cells))
    if first != "Encoding" or len(places) <= FEW_ROWS:
        return [("", [*places])]
    found: dict[str, list[int]] = {family: [] for family in FAMILIES}
    for place, label in zip(places, column.texts, strict=True):
        found[family_of(label)].append(place)
    return [(family, rows) for family, rows in found.items() if rows]


def verdict_first(grid: Grid) -> Grid:
    """Return a grid with the verdict and the difference right after the row's name, where it has them."""
    names = list(grid)
    front = [name for name in names if name == "Verdict" or name.startswith("Δ")]
    order = [*names[:1], *sorted(front, key=lambda name: name != "Verdict"), *(n for n in names[1:] if n not in front)]
    return {name: grid[name] for name in order}
