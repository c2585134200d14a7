"""Curves of several seeds as one band for TensorBoard: the mean, the lowest and the highest seed of each encoding."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pebench.config import assignments
from pebench.results.event_files import nameless_host
from pebench.results.stats import over_seeds
from pebench.results.tables import Row, Table, build_tables
from pebench.runs.records import Record

FOLDER = "over-seeds"
"""Folder of the bands in an output folder; its files are made from the records, anew each time."""

PARTS = "mean", "lowest", "highest"


def write_bands(out: Path, records: Iterable[Record]) -> None:
    """Write the bands of all tested runs as event files, with a layout that draws one chart for each task and metric.

    Args:
        out: Output folder of the runs.
        records: Their records.

    Raises:
        UserError: For an unknown task, or two different records of one run.
    """
    from torch.utils.tensorboard import SummaryWriter

    for file in (out / FOLDER).rglob("events.out.tfevents.*"):
        file.unlink()  # of rows that may be gone: TensorBoard would go on showing them
    layout: dict[str, dict[str, list[Any]]] = {}
    rows: dict[str, dict[str, dict[int, float]]] = {}
    for title, table in _titled(build_tables(records, allow_unmatched=True)):
        for row in table.rows:
            for name, points in band(row).items():
                tags = [f"{title}/{name} {part}" for part in PARTS]
                layout.setdefault(title, {})[name] = ["Margin", tags]  # TensorBoard's name of a chart with a band
                # Names of encodings and options have characters that file systems refuse.
                folder = re.sub(r"[^\w.,=()+-]+", " ", f"{title}, {row.label}").strip()
                for place, tag in enumerate(tags):
                    rows.setdefault(folder, {})[tag] = {step: values[place] for step, values in points.items()}
    for number, (folder, curves) in enumerate(rows.items()):
        with nameless_host(), SummaryWriter(str(out / FOLDER / folder)) as writer:
            for tag, curve in curves.items():
                for step, value in curve.items():
                    writer.add_scalar(tag, value, step)
            if number == 0:  # it is for all
                writer.add_custom_scalars(layout)


def band(row: Row) -> dict[str, dict[int, tuple[float, ...]]]:
    """Return the curves of one encoding's finished runs, where all of them have a point.

    Returns:
        For each metric: step to the mean, lowest and highest value over seeds.
    """
    names = {name for record in row.finished for point in record.curve for name in point} - {"step"}
    found = {}
    for name in sorted(names):
        runs = [{int(p["step"]): p[name] for p in record.curve if name in p} for record in row.finished]
        if points := {step: tuple(values) for step, *values in over_seeds(runs)}:
            found[name] = points
    return found


def _titled(tables: list[Table]) -> Iterator[tuple[str, Table]]:
    """Yield tables with names that are unique."""
    seen: Counter[str] = Counter()
    for table in tables:
        words = [f"{table.task.name} {table.config.tier}", *assignments(table.naming_settings)]
        words += [f"{name} selected" for name in table.config.selected]
        title = ", ".join(words).replace("/", " ")  # a slash would begin another group of charts
        seen[title] += 1
        yield (title if seen[title] == 1 else f"{title} ({seen[title]})"), table
