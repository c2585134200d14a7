"""Cells, columns and grids: what every writer shows of a table, each number as text and as a value to sort by."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pebench.formatting import si_text
from pebench.results.stats import ALPHA, Estimate
from pebench.tasks import Task

NOTHING = "–"
"""Text of a cell without a value."""

SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
"""Factor of each SI prefix."""

Style = Literal["", "better", "worse", "equivalent", "open", "chosen"]
"""How a cell stands out, in each writer's own way; ``open`` is a difference that is not separable."""


@dataclass(frozen=True)
class Bar:
    """An interval to be drawn in its cell, in the unit of the cell's text.

    Args:
        mean: Its middle.
        half_width: Half its width; 0 where it is not known.
        zero: True for a difference, which is drawn beside zero.
    """

    mean: float
    half_width: float
    zero: bool

    @property
    def ends(self) -> tuple[float, float]:
        """The values that its drawing has to hold."""
        low, high = self.mean - self.half_width, self.mean + self.half_width
        return (min(low, 0.0), max(high, 0.0)) if self.zero else (low, high)


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Args:
        text: The text that writers show.
        value: The number that the text begins with, rounded as shown, so that equal texts sort as equal; ``None``
            for words and for what is missing.
        style: The mark of a verdict or of a chosen setting.
        bar: Its interval.
    """

    text: str
    value: float | None = None
    style: Style = ""
    bar: Bar | None = field(default=None, repr=False)

    def styled(self, style: Style) -> "Cell":
        """Return the cell with a style."""
        return replace(self, style=style)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        cells: Its cells from top to bottom.
        words: True for a column of words, which stand to the left; numbers stand to the right.
        largest_first: True if the largest value is the best, so that a reader who sorts wants it on top.
    """

    cells: tuple[Cell, ...]
    words: bool = False
    largest_first: bool = False

    @property
    def texts(self) -> list[str]:
        """The texts of its cells."""
        return [cell.text for cell in self.cells]

    @property
    def span(self) -> tuple[float, float] | None:
        """The lowest and the highest value of its bars; ``None`` where it has none."""
        ends = [cell.bar.ends for cell in self.cells if cell.bar]
        return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None

    @property
    def has_values(self) -> bool:
        """True if it sorts by values; else it sorts by its texts."""
        return any(cell.value is not None for cell in self.cells)


Grid = dict[str, Column]
"""Header, whose lines are separated by line breaks, to column; empty where there is nothing to show."""


def words(texts: Iterable[str]) -> Column:
    """Return a column of words."""
    return Column(tuple(map(Cell, texts)), words=True)


def numbers(cells: Iterable[Cell], largest_first: bool = False) -> Column:
    """Return a column of numbers."""
    return Column(tuple(cells), largest_first=largest_first)


def count_cell(count: int | None, note: str = "") -> Cell:
    """Return a cell with a whole number, thousands separated.

    Example:
        >>> count_cell(1148802), count_cell(3, " (1 failed)").text, count_cell(None).text
        (Cell(text='1,148,802', value=1148802.0, style=''), '3 (1 failed)', '–')
    """
    return Cell(NOTHING) if count is None else Cell(f"{count:,}{note}", float(count))


def decimal_cell(value: float | None, digits: int, note: str = "") -> Cell:
    """Return a cell with a number of a fixed number of digits after the decimal point."""
    return Cell(NOTHING) if value is None else Cell(f"{value:.{digits}f}{note}", round(value, digits))


def si_cell(value: float | None) -> Cell:
    """Return a cell with three significant digits and an SI prefix.

    Example:
        >>> si_cell(6_047_000)
        Cell(text='6.05 M', value=6050000.0, style='')
    """
    text = si_text(value)
    if text is None:
        return Cell(NOTHING)
    # the shown number times its prefix, not the rounded value: published pages sort by this to the last bit
    number, _, prefix = text.partition(" ")
    return Cell(text, float(number) * SI[prefix])


def rate_cell(value: float | None) -> Cell:
    """Return a cell with a rate: whole from 100 on, else with three significant digits."""
    if value is None:
        return Cell(NOTHING)
    if value >= 100:
        return Cell(f"{value:,.0f}", float(round(value)))
    return Cell(f"{value:.3g}", float(f"{value:.3g}"))


def setting_cell(value: Any) -> Cell:
    """Return a cell with the value of a setting."""
    if value is None:
        return Cell(NOTHING)
    # To Python True is an integer; to a reader it is a word.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(str(value), float(value) if number else None)


def p_cell(p: float | None) -> Cell:
    """Return a cell with a p-value; see `p_text`."""
    if p is None:
        return Cell(NOTHING)
    # All that are shown as <0.001 sort as equal.
    return Cell(p_text(p), max(0.001, round(p, _p_digits(p))))


def p_text(p: float | None) -> str:
    """Return a p-value with three digits, or with more where they would round it to the level of the test.

    Example:
        >>> p_text(0.0321), p_text(0.0496), p_text(0.04996), p_text(0.0004), p_text(None)
        ('0.032', '0.0496', '0.04996', '<0.001', '–')
    """
    if p is None:
        return NOTHING
    return "<0.001" if p < 0.001 else f"{p:.{_p_digits(p)}f}"


def _p_digits(p: float) -> int:
    # 0.0496 would be shown as 0.050, and look as if it were not below the level that its verdict goes by.
    return next((digits for digits in range(3, 7) if round(p, digits) != ALPHA), 3)


def mean_cell(value: Estimate | None, task: Task, sign: Literal["", "+"] = "", note: str = "") -> Cell:
    """Return a cell such as ``61.23 ± 0.45``: a headline metric, or a difference of it, in the unit that people read.

    Args:
        value: Mean over seeds; ``None`` leaves the cell empty.
        task: The task, which sets unit and digits.
        sign: ``+`` for a difference.
        note: Text after the number.
    """
    if value is None:
        return Cell(NOTHING)
    return interval_cell(value, task.scale, task.digits, sign, note)


def interval_cell(value: Estimate, scale: int, digits: int, sign: Literal["", "+"] = "", note: str = "") -> Cell:
    """Return a cell with a mean and half its interval, times `scale`."""
    shown = round(scale * value.mean, digits) + 0.0  # no negative zero
    bar = Bar(scale * value.mean, scale * (value.half_width or 0.0), zero=sign == "+")
    return Cell(plus_minus(value, scale, digits, sign) + note, shown, bar=bar)


def plus_minus(value: Estimate, scale: int, digits: int, sign: str = "") -> str:
    """Return the mean, and half its interval if it has one, times `scale`.

    Example:
        >>> plus_minus(Estimate(0.6123, 0.0045, 8), 100, 2)
        '61.23 ± 0.45'
    """
    mean = f"{scale * value.mean:{sign}z.{digits}f}"  # z: no negative zero
    return mean if value.half_width is None else f"{mean} ± {scale * value.half_width:.{digits}f}"
