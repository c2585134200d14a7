"""How good the models of a table are: best and median row, what they saw, and how far from its end training was."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from pebench.results.stats import Estimate, estimate
from pebench.results.tables import Row, Table

LATE = 2 / 3
"""The part of training after which a late change is measured, as near as evaluations allow."""


def best_and_median(table: Table) -> list[tuple[str, Row]]:
    """Return the row with the best mean, and of three or more the one in the middle: of two there, the worse."""
    rows = [row for row in table.rows if row.estimate]
    rows.sort(key=lambda row: row.estimate.mean if row.estimate else 0.0, reverse=table.task.higher_is_better)
    if len(rows) < 3:
        return [("best", row) for row in rows[:1]]
    return [("best", rows[0]), ("median", rows[len(rows) // 2])]


def word_perplexity(row: Row, table: Table) -> Estimate | None:
    """Return a row's word perplexity; ``None`` where the words of the test split are not known."""
    text = table.task.test_text
    return estimate(map(text.word_perplexity, row.values.values())) if text and row.values else None


@dataclass(frozen=True)
class Seen:
    """The training data that each run of a table was given.

    Args:
        count: Number of tokens of a running text, else of examples.
        unit: Tokens or examples, in the plural.
        epochs: Passes over the training split; ``None`` where its size is not recorded.
    """

    count: int
    unit: str
    epochs: float | None

    def per_parameter(self, row: Row) -> float | None:
        """Return the tokens for each parameter of a row; ``None`` for examples, whose tokens are not recorded."""
        parameters = row.costs["parameters_total"]
        return self.count / parameters if parameters and self.unit == "tokens" else None


def seen(table: Table) -> Seen:
    """Return what each run of a table was given until its last step."""
    train, length = table.config.train, table.config.data.max_len
    count = train.max_steps * train.batch_size
    sizes = [record.dataset.get("sizes", {}).get("train") for record in table.records]
    size = next((size for size in sizes if size), None)
    if table.task.unit != "windows":
        return Seen(count, table.task.unit, count / size if size else None)
    if not length:
        return Seen(count, table.task.unit, None)
    # Records count the places where a window may begin: the tokens of the text, less those of one window.
    return Seen(count * length, "tokens", count * length / (size + length) if size else None)


@dataclass(frozen=True)
class LateChange:
    """The change of the validation metric that chooses weights, from about two thirds of training to its end.

    Args:
        metric: Name of the metric in records.
        start: Step from which it is measured.
        end: The last step.
        change: A loss's change relative to its value at the start, or an accuracy's change; over seeds.
        first: Mean over seeds at the start.
        last: Mean over seeds at the end.
    """

    metric: str
    start: int
    end: int
    change: Estimate
    first: float
    last: float

    @property
    def relative(self) -> bool:
        """True for a loss, whose change is relative."""
        return self.metric == "val/loss"

    @property
    def per_doubling(self) -> float:
        """The change for a doubling of steps at the same pace in the logarithm of steps."""
        doublings = math.log2(self.end / self.start)
        if self.relative:
            return float((1 + self.change.mean) ** (1 / doublings)) - 1
        return self.change.mean / doublings


def late_change(row: Row, table: Table) -> LateChange | None:
    """Return the late change of a row's runs; ``None`` where their curves have fewer than two common points."""
    metric, _ = table.task.monitored(table.config.train.monitor)
    curves = [
        {int(point["step"]): point[metric] for point in record.curve if metric in point} for record in row.finished
    ]
    steps = sorted(set.intersection(*map(set, curves))) if curves else []
    if len(steps) < 2 or steps[0] <= 0:
        return None
    end = steps[-1]
    start = min(steps[:-1], key=lambda step: abs(step - LATE * end))
    pairs = [(curve[start], curve[end]) for curve in curves]
    if metric != "val/loss":
        changes = [last - first for first, last in pairs]
    elif min(first for first, _ in pairs) > 0:
        changes = [last / first - 1 for first, last in pairs]
    else:
        return None
    first, last = (fmean(values) for values in zip(*pairs, strict=True))
    return LateChange(metric, start, end, estimate(changes), first, last)


@functools.lru_cache(maxsize=16)  # a page asks for them in several places, and may have very many runs
def late_changes(table: Table) -> dict[str, LateChange]:
    """Return the late change of each row by label, where all of them are over the same steps."""
    found = {row.label: change for row in table.rows if (change := late_change(row, table))}
    steps = {(change.start, change.end) for change in found.values()}
    return found if len(steps) == 1 else {}


def turned(table: Table, changes: Mapping[str, LateChange]) -> tuple[int, list[str]] | None:
    """Return how many rows differ from the reference, and which of them were on its other side at the start.

    Args:
        table: The table.
        changes: Late changes by label.

    Returns:
        The number and the labels; ``None`` where the reference has no late change or no row differs.
    """
    reference = changes.get(table.reference)
    differ = [row.label for row in table.rows if row.label in changes and row.verdict and row.verdict.significant]
    if reference is None or not differ:
        return None
    differences = {row.label: row.difference.mean for row in table.rows if row.difference}
    sign = -1 if table.task.higher_is_better and reference.relative else 1  # an accuracy rises where a loss falls
    other = [label for label in differ if (changes[label].first - reference.first) * sign * differences[label] < 0]
    return len(differ), other
