"""How the differences between encodings change with the size of the model: a line through the sizes of `ladder`.

A difference is that of a row and addition in the task's headline metric, at equal seeds. The line is fitted to the
means of the sizes, against the logarithm of the parameters. Intervals are those of the seeds, by bootstrap: they do not
say whether a straight line goes on. From records, in seconds:
    python -m benchmarks.ladder runs/ladder runs/ladder-29m
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from pebench.config import REFERENCE_ENCODING
from pebench.errors import UserError
from pebench.runs.records import Record, read_records
from pebench.tasks import find_task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TARGET = 1e8
"""Parameters for which a difference is predicted."""

REPLICATES = 10_000
"""Resamples of the seeds."""

Points = Mapping[int, Sequence[float]]
"""Differences at each size, one for each seed, by the parameters of the reference row."""


@dataclass(frozen=True)
class Value:
    """A figure with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True)
class Line:
    """A straight line through the means of the sizes.

    Args:
        center: Mean logarithm, to base 10, of the sizes.
        slopes: Change of the difference where the model has ten times the parameters: of the data, then of resamples.
        levels: Difference at `center`, in the same order.
    """

    center: float
    slopes: "Array"
    levels: "Array"

    @property
    def slope(self) -> Value:
        """The change of the difference where the model has ten times the parameters."""
        return _value(self.slopes)

    def at(self, parameters: float) -> Value:
        """Return the difference that the line has at a size."""
        import numpy as np

        return _value(self.levels + self.slopes * (np.log10(parameters) - self.center))


def _value(found: "Array") -> Value:
    import numpy as np

    low, high = np.quantile(found[1:], (0.025, 0.975))
    return Value(float(found[0]), float(low), float(high))


def fit(points: Points) -> Line:
    """Return the line through the means of the sizes, each of the same weight.

    Seeds are drawn anew within each size. Means of n drawn values vary too little, by the root of (n - 1) / n, which is
    made up for: with three seeds it is a fifth.

    Args:
        points: Two sizes or more, each with two seeds or more.

    Raises:
        UserError: For fewer sizes or seeds.
    """
    import numpy as np

    if len(points) < 2 or min(map(len, points.values())) < 2:
        counts = ", ".join(f"{len(values)} at {size:,} parameters" for size, values in sorted(points.items()))
        raise UserError(f"a line needs two sizes or more with two seeds or more each, got {counts or 'none'}.")
    noise = np.random.Generator(np.random.PCG64(0))
    means = np.empty((1 + REPLICATES, len(points)))
    for column, values in enumerate(map(np.asarray, points.values())):
        count = len(values)
        drawn = values[(noise.random((REPLICATES, count)) * count).astype(int)].mean(axis=1)
        means[0, column] = values.mean()
        means[1:, column] = values.mean() + (drawn - values.mean()) * (count / (count - 1)) ** 0.5
    logs = np.log10(np.asarray([*points], dtype=float))
    offsets = logs - logs.mean()
    return Line(float(logs.mean()), means @ offsets / (offsets @ offsets), means.mean(axis=1))


def differences(records: Sequence[Record], task: str, label: str) -> Points:
    """Return the differences of a row to addition at equal seeds, by size; sizes without a pair are left out."""
    name = f"test/{find_task(task).metric}"
    values: dict[str, dict[tuple[object, int], Record]] = {REFERENCE_ENCODING: {}, label: {}}
    for record in records:
        config = record.config
        if record.ok and config.stage == "test" and config.task == task and config.label in values:
            values[config.label][(config.model.d_model, config.model.num_layers), config.seed] = record
    found: dict[int, list[float]] = {}
    for place, reference in values[REFERENCE_ENCODING].items():
        if row := values[label].get(place):
            gap = row.metrics[name] - reference.metrics[name]
            found.setdefault(reference.parameters["total"], []).append(gap)
    return dict(sorted(found.items()))


def page(records: Sequence[Record]) -> str:
    """Return the lines of every task and row as Markdown: means by size, slopes, and what they predict.

    Raises:
        UserError: If no row has a line.
    """
    parts = []
    for task in dict.fromkeys(record.config.task for record in records):
        labels = dict.fromkeys(r.config.label for r in records if r.config.task == task)
        rows = [_row(differences(records, task, label), label) for label in labels if label != REFERENCE_ENCODING]
        if not any(rows):
            continue
        heads = [
            "row - add",
            "by parameters",
            "slope, for ten times the size",
            f"at {TARGET:.0e}",
            "largest, by others",
        ]
        parts.append(f"## {task}\n\n{tabulate(filter(None, rows), headers=heads, tablefmt='pipe')}\n")
    if not parts:
        raise UserError("no row has two sizes or more with two seeds or more, beside add's of the same seeds.")
    return "\n".join(parts)


def _row(points: Points, label: str) -> list[str]:
    """Return a row of a table; empty where there is no line."""
    usable = {size: values for size, values in points.items() if len(values) > 1}
    if len(usable) < 2:
        return []
    line, largest = fit(usable), max(usable)
    means = ", ".join(f"{size / 1e6:.1f} M {sum(v) / len(v):+.4f} (n={len(v)})" for size, v in usable.items())
    others = {size: values for size, values in usable.items() if size != largest}
    predicted = str(fit(others).at(largest)) if len(others) > 1 else "-"
    return [label, means, str(line.slope), str(line.at(TARGET)), predicted]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the lines of the records in some folders."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ladder", description=__doc__.split("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="records, of runs/ or of results/")
    options = parser.parse_args(arguments)
    try:
        print(page([record for folder in options.folders for record in read_records(folder)]), end="")
    except UserError as error:
        print(f"ladder: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
