"""What no suite declares: rows of different pages, other lengths and sizes, more seeds, differences of differences.

Prose in results/ tells some such comparisons. They are listed here, and worked out from the published records, without
training; a test holds the prose to them. In seconds, run
    python benchmarks/studies/undeclared.py --output results/undeclared.md
"""

import argparse
import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from pebench.formatting import seeds_text
from pebench.results.stats import Difference, paired_difference
from pebench.results.tables import build_tables
from pebench.runs.records import Record, read_records
from pebench.tasks import find_task

RESULTS = Path(__file__).parents[2] / "results"


@dataclass(frozen=True)
class Row:
    """Tested runs of one encoding.

    Args:
        label: As tables have it.
        pages: Those whose records have it; where several have one seed they have the same run.
        layers: Of the models, where a page has several.
        seeds: Which of its runs; all, if it is empty.
    """

    label: str
    pages: tuple[str, ...]
    layers: int = 0
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        links = ", ".join(f"[{page}]({page}.md)" for page in self.pages)
        depth = f", {self.layers} layers" if self.layers else ""
        chosen = f", {seeds_text(self.seeds)}" if self.seeds else ""
        return f"`{self.label}` of {links}{depth}{chosen}"


@dataclass(frozen=True)
class Comparison:
    """One row minus another, by one metric of the test.

    Args:
        task: Of the rows.
        row: The first.
        minus: The second.
        at: Where it is tested, as metrics end (``"2x"``), or as the models were trained, if it is empty.
        change: Whether what differs is how much a row's metric changes from where it was trained to there.
        than: A row and another one, whose difference is taken from the first.
    """

    task: str
    row: Row
    minus: Row
    at: str = ""
    change: bool = False
    than: tuple[Row, Row] | None = None

    def measure(self) -> Difference:
        """The difference, in bits per byte or in points."""
        first, second = self._values(self.row), self._values(self.minus)
        if self.than:
            one, other = map(self._values, self.than)
            first = {seed: value - second[seed] for seed, value in first.items() if seed in second}
            second = {seed: value - other[seed] for seed, value in one.items() if seed in other}
        found = paired_difference(first, second)
        if found is None:
            raise ValueError(f"no seed has both {self.row} and {self.minus} on {self.task}")
        return found

    def _values(self, row: Row) -> dict[int, float]:
        """Seed to what is measured of a row."""
        task = find_task(self.task)
        usual = f"test/{task.metric}"
        where = f"{usual}@{self.at}" if self.at else usual
        return {
            seed: task.scale * (record.metrics[where] - self.change * record.metrics[usual])
            for seed, record in runs(self.task, row).items()
            if not row.seeds or seed in row.seeds
        }


@functools.cache
def published(page: str) -> Mapping[tuple[str, str, int], tuple[Record, ...]]:
    """The tested runs of a page, by task, label and number of layers."""
    tables = build_tables(read_records(RESULTS / f"{page}.jsonl"))
    return {(t.task.name, row.label, t.config.model.num_layers): row.records for t in tables for row in t.rows}


def runs(task: str, row: Row) -> dict[int, Record]:
    """A row's runs by seed.

    Raises:
        ValueError: If a page lacks it, or two pages have different runs of one seed.
    """
    found: dict[int, Record] = {}
    for page in row.pages:
        kinds = [
            records
            for (where, label, layers), records in published(page).items()
            if (where, label) == (task, row.label) and row.layers in (0, layers)
        ]
        if len(kinds) != 1:
            raise ValueError(f"{page} has {len(kinds)} rows {row.label} on {task}, not one")
        for record in kinds[0]:
            if found.setdefault(record.config.seed, record).metrics != record.metrics:
                raise ValueError(f"{row}: two runs of seed {record.config.seed}")
    return found


def of(label: str, *pages: str, layers: int = 0, seeds: Sequence[int] = ()) -> Row:
    """A row of one page or more, `core` if none is named."""
    return Row(label, pages or ("core",), layers, tuple(seeds))


QUIET = of("learned (ratio=0.03)", "scale-learned")
TABLE, QUIETER_TABLE = "concat (table=learned)", "concat (ratio=0.5, table=learned)"
ADD = of("add")
QUIET_SUM = "add (preserve_variance=True)"


def text() -> list[Comparison]:
    """Those of language models."""
    equal = "fusion-parameters"
    pairs: list[tuple[Row, Row, str]] = [
        (QUIET, of("concat"), ""),
        (of("concat-qk", "fusion"), of("rope"), ""),
        (of("concat-qk", "fusion"), of("concat"), "2x"),
        (of("none", "full"), of("add", "full"), "2x"),
        (of("none", "full"), of("rope", "full"), "4x"),
        *((of("rope", "full-fusion"), of(name, "full-fusion"), "2x") for name in ("add-qk", "concat-qk")),
        (of("concat (d_p=16)", "full-fusion"), of("concat", "full-fusion"), "2x"),
        (of(TABLE, "fusion-learned"), of("concat"), ""),
        (of("concat (d_p=8, table=learned)", "split-learned"), of(QUIETER_TABLE, "fusion-learned"), ""),
        *((of("concat-qk", "site"), of("add-qk", "site"), at) for at in ("2x", "4x")),
        *((of("concat-qk", equal), of(other, equal), at) for other in ("rope", "add-qk") for at in ("2x", "4x")),
    ]  # fmt: skip
    eight = of("concat (d_p=8, ratio=1.7)", "few-channels")
    pairs += [
        (eight, of("concat (d_p=8)", "split"), ""),
        (eight, of("concat"), "2x"),
        (of("concat (d_p=2, ratio=3.5)", "few-channels"), of("none"), ""),
        (of("concat", "split-parameters"), of("concat"), ""),
        (of(eight.label, "split-parameters"), eight, ""),
        (of(eight.label, "split-parameters"), of("concat"), ""),
        (of(eight.label, "split-parameters"), of("concat", "split-parameters"), "2x"),
    ]
    found = [Comparison("lm-wikitext2", *pair) for pair in pairs]
    deep, shallow = ((of("none", "depth", layers=n), of("rope", "depth", layers=n)) for n in (8, 4))
    return [*found, Comparison("lm-wikitext2", *deep, than=shallow)]


def images() -> list[Comparison]:
    """Those of images."""
    equal, every = "fusion-parameters", ("core", "confirm")
    known = range(3, 8)
    identity = "concat-proj (start=identity)"
    pairs: list[tuple[Row, Row, str]] = [
        (of("concat", *every), of("add", *every), ""),
        (of("concat", seeds=known), ADD, ""),
        (of("rope", seeds=known), ADD, ""),
        (of(TABLE, "fusion-learned"), QUIET, ""),
        (of(QUIETER_TABLE, "fusion-learned"), QUIET, ""),
        (of("concat-qk (table=learned)", "fusion-learned"), QUIET, ""),
        *((of(f"{name} (table=learned)", "fusion-learned-parameters"), QUIET, "") for name in ("concat", "concat-qk")),
        (of("concat-qk", "fusion"), of("rope"), ""),
        (of("add-qk", "site", "crossed", "place"), of("add", *every), ""),
        (of("add-qk", "site"), of(QUIET_SUM, "loudness"), ""),
        (of("add-qk", "crossed"), of(QUIET_SUM, "louder"), ""),
        (of("add-qk", "place", seeds=(12, 13, 14, 15, 16, 18, 19)), of(QUIET_SUM, "place"), ""),
        (of(QUIET_SUM, "loudness"), of("gated-add (pace=1.0)", "fusion"), ""),
        *((of(name, equal), of(name, "core" if name == "concat" else "fusion"), "")
          for name in ("concat", "add-proj", "concat-proj", identity)),
        (of("concat"), ADD, "1.5x"),
        (of("concat", "confirm"), of("add", "confirm"), "1.5x"),
        (of("embed-scale (of=concat)", "louder"), of("add", "louder"), "1.5x"),
        *((of(f"concat (d_p={count})", "split"), ADD, "1.5x") for count in (32, 8)),
        *((of(name, "fusion"), ADD, "1.5x") for name in ("concat-proj", identity, "concat-qk")),
        *((of(name, equal), of("add", equal), "1.5x") for name in ("concat", "concat-wide")),
        (of("concat-qk", "site"), of("add-qk", "site"), "1.5x"),
        (of("concat"), ADD, "2x"),
        (of("concat-qk", "fusion"), ADD, "2x"),
        (of("concat-wide", equal), of("add", equal), "shuffled"),
        *((of(name, "place"), of("add", "place"), "shuffled") for name in ("add-qk", "embed-scale (of=add-qk)")),
    ]  # fmt: skip
    changes = [
        of("concat (d_p=32)", "split"), of("concat"), of("concat-proj", "fusion"), of(identity, "fusion"),
    ]  # fmt: skip
    found = [Comparison("vit-cifar10", *pair) for pair in pairs]
    return found + [Comparison("vit-cifar10", row, ADD, "1.5x", change=True) for row in changes]


def sentiment() -> list[Comparison]:
    """Those of sentiment."""
    every, equal, projected = ("core", "confirm"), "fusion-parameters", "fusion-learned-projected"
    width, table, quieter = "fusion-learned", "fusion-learned-parameters", "learned (ratio=0.3)"
    through, started = "concat-proj (table=learned)", "concat-proj (start=identity, table=learned)"
    summed = "add-proj (table=learned)"
    pairs: list[tuple[Row, Row, str]] = [
        (of("rope", *every), of("add", *every), ""),
        (of("add (ratio=3.0)", "scale"), ADD, "shuffled"),
        (of("add (ratio=3.0)", "imdb-rates"), ADD, "shuffled"),
        (of("concat (d_p=32)", "split-text"), of("concat"), "shuffled"),
        *((of("concat-proj", "fusion"), of(name, "fusion"), "shuffled") for name in ("add-proj", "add")),
        (of(through, width), of("learned", width), "shuffled"),
        (of(started, width), of(summed, width), "shuffled"),
        (of(QUIETER_TABLE, width), of(quieter, width), "shuffled"),
        (of("concat (d_p=32, table=learned)", "split-learned"), of(TABLE, width), "shuffled"),
        (of("concat-proj", equal), of("add-proj", equal), "shuffled"),
        *((of("add-qk", equal), of(name, equal), "shuffled") for name in ("add", "none")),
        *((of(name, equal), of("concat", equal), "shuffled") for name in ("concat-qk", "concat-wide")),
        *((of(name, table), of("learned", table), "shuffled") for name in (TABLE, "concat-qk (table=learned)")),
        (of(through, projected), of("learned", projected), "shuffled"),
        *((of(name, projected), of(summed, projected), "shuffled") for name in (through, started)),
        (of("concat", equal), of("concat"), ""),
        (of(TABLE, table), of(TABLE, width), ""),
        (of("concat-qk (table=learned)", table), of("none"), ""),
        (of(through, projected), of("none"), ""),
    ]
    reviews = [Comparison("text-imdb", *pair) for pair in pairs]
    reviews += [Comparison("text-imdb", of("add-qk", equal), of("none"), "shuffled", change=True)]
    pairs = [
        (of("concat", equal), of("concat"), ""),
        (of("concat-qk", equal), of("concat", equal), "shuffled"),
        (of(started, projected), of(summed, projected), "shuffled"),
        (of(QUIETER_TABLE, width), of(quieter, width), "shuffled"),
    ]
    return reviews + [Comparison("text-sst2", *pair) for pair in pairs]


@functools.cache
def measured() -> list[tuple[Comparison, Difference]]:
    """Every comparison with what it finds."""
    return [(comparison, comparison.measure()) for comparison in (*text(), *images(), *sentiment())]


PLACES = {"": "as trained", "shuffled": "in random order", "2x": "twice as long", "4x": "four times as long"}
ON_IMAGES = {"1.5x": "1.5 times as wide and high", "2x": "twice as wide and high"}


def line(comparison: Comparison, found: Difference) -> list[str]:
    """Its line in the page's table."""
    task = find_task(comparison.task)
    digits = task.digits
    place = (PLACES | ON_IMAGES if task.image else PLACES)[comparison.at]
    row, minus = str(comparison.row), str(comparison.minus)
    if comparison.than:
        row, minus = f"{row}, minus {minus}", "; minus ".join(map(str, comparison.than))
    interval = f"{found.mean - found.half_width:+.{digits}f} to {found.mean + found.half_width:+.{digits}f}"
    measured_at = f"change from as trained to {place}" if comparison.change else place
    return [comparison.task, measured_at, row, minus, f"{found.n}", f"{found.mean:+.{digits}f}", interval]


HEAD = ("task", "tested", "row", "minus", "seeds", "difference", "95 % interval")


def page() -> str:
    """The page."""
    return (
        "# Comparisons that were not declared\n\n"
        "What [README](README.md), [ANSWERS](ANSWERS.md) and [NOTES](NOTES.md) tell beyond the comparisons of the "
        "pages: rows of\ndifferent pages, other lengths and sizes, more seeds, changes. Every one was thought of when "
        "its runs were known. None is\ncorrected for their number, and pages share runs: they are remarks, no "
        "findings. Differences at equal seeds, in bits\nper byte (less is better) or points of accuracy (more is "
        "better). From the published records, without training:\n`python benchmarks/studies/undeclared.py --output "
        "results/undeclared.md`.\n\n"
        f"{tabulate([line(*both) for both in measured()], HEAD, tablefmt='pipe', disable_numparse=True)}\n"
    )


def main(arguments: Sequence[str]) -> None:
    """Work them out, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write the page, too")
    options = parser.parse_args(arguments)
    made = page()
    sys.stdout.write(made)
    if options.output:
        options.output.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
