"""Work out the difference of concatenation to addition in every pair that has run, as tables and pictures.

Two rows are a pair here if position is concatenated in one and added in the other, and nothing else is meant to differ:
the same table of positions, at the same place, through as many matrices. From the published records, without training,
in seconds, run
    python -m benchmarks.studies.add_or_concat --output results/studies/add_or_concat.md
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from tabulate import tabulate

from pebench.benchmarks.studies.comparisons import Comparison, is_of, published, row
from pebench.benchmarks.studies.pages import write_page
from pebench.results.figures.style import COLOURS, INK, Mark, by_row, laid_out, legend_below, to_svg
from pebench.results.grids import difference_unit, plus_minus
from pebench.results.stats import Difference
from pebench.tasks import Task, find_task

PLACES = {
    "at the input": Mark(COLOURS[1], "s", "-"),
    "through a matrix": Mark(COLOURS[0], "D", "-"),
    "in queries and keys": Mark(COLOURS[2], "o", "-"),
}
"""Where position is fused, and how it is drawn."""

GROUPS = {
    "Language models": ("lm-wikitext2", "lm-shakespeare"),
    "Images": ("vit-cifar10",),
    "Reviews": ("text-imdb",),
    "Sentences and posts": ("text-sst2", "text-20newsgroups"),
}
"""Tasks that share a table, a picture and a unit. Digits, in minutes, would need a scale of their own."""


@dataclass(frozen=True)
class Pair:
    """Position concatenated and position added, as alike as they can be.

    Args:
        where: Its particulars, in a few words.
        page: Page whose records have both.
        concatenated: Label of the row with position concatenated.
        added: Label of the row with position added.
        place: Place where position is fused, of `PLACES`.
        settings: Settings that both have, by dotted names, where the page has several.
    """

    where: str
    page: str
    concatenated: str
    added: str
    place: str = "at the input"
    settings: tuple[tuple[str, Any], ...] = ()

    def tasks(self) -> list[str]:
        """Return the tasks on which both have run.

        Raises:
            ValueError: If there is none.
        """
        rows = [(one.records[0].config.task, one) for one in published(self.page)]
        labels = [(task, one.label) for task, one in rows if is_of(one, task, self.settings)]
        found = [task for task, label in labels if label == self.concatenated and (task, self.added) in labels]
        if not found:
            raise ValueError(f"{self.page} has no task with both {self.concatenated} and {self.added}")
        return found

    def measure(self, task: str) -> Difference:
        """Return concatenated minus added, at equal seeds."""
        settings = dict(self.settings)
        first, second = (row(label, self.page, settings=settings) for label in (self.concatenated, self.added))
        return Comparison(task, first, second).measure()


def pairs() -> Iterator[Pair]:
    """Yield every pair, in the order of the tables."""
    yield Pair("as they are", "core", "concat", "add")
    yield Pair("fresh seeds", "confirm", "concat", "add")
    yield Pair("Tiny Shakespeare", "shakespeare", "concat", "add")
    yield Pair("20 Newsgroups, two layers", "topics", "concat", "add", settings=(("model.num_layers", 2),))
    yield Pair("9 million parameters", "full", "concat", "add")
    yield Pair("equal size", "fusion-parameters", "concat", "add")
    yield Pair("equal total scale, 0.3 of addition's", "scale", "concat (ratio=0.5)", "add (ratio=0.3)")
    yield Pair("equal total scale, 0.6 of addition's", "scale", "concat", "add (ratio=0.6)")
    yield Pair("equal total scale, addition's own", "scale", "concat (ratio=1.7)", "add")
    yield Pair("sum divided by √2", "loudness", "concat", "add (preserve_variance=True)")
    yield Pair("sum divided by √2, 20 seeds", "louder", "concat", "add (preserve_variance=True)")
    yield Pair("concatenation times √2", "louder", "embed-scale (of=concat)", "add")
    yield Pair("sum in the same 24 channels", "channels", "concat", "add (d_p=24)")
    for channels, ratio in ((2, 3.5), (8, 1.7)):
        label = f"concat (d_p={channels}, ratio={ratio})"
        yield Pair(f"{channels} of 96, total scale of 24", "few-channels", label, "add")
    yield Pair("8 of 96, total scale of 24, equal size", "split-parameters", "concat (d_p=8, ratio=1.7)", "add")
    yield Pair("4 channels", "split", "concat (d_p=4)", "add")
    yield Pair("4 channels, 2.5 times the scale", "split", "concat (d_p=4, ratio=2.5)", "add")
    for channels in (8, 32):
        for page in ("split", "split-text"):
            yield Pair(f"{channels} channels", page, f"concat (d_p={channels})", "add")
    yield Pair("32 channels, 0.7 times the scale", "split", "concat (d_p=32, ratio=0.7)", "add")
    yield Pair("32 channels, equal size", "split-parameters", "concat (d_p=32)", "add")
    for channels in (16, 32):
        yield Pair(f"{channels} of 256 channels, 9 million", "full-fusion", f"concat (d_p={channels})", "add")
    yield Pair("learned table", "fusion-learned", "concat (table=learned)", "learned")
    yield Pair("learned table, equal size", "fusion-learned-parameters", "concat (table=learned)", "learned")
    for channels in (8, 32):
        label = f"concat (d_p={channels}, table=learned)"
        yield Pair(f"{channels} channels, learned table", "split-learned", label, "learned")
    yield Pair(
        "learned table, small scales", "fusion-learned", "concat (ratio=0.5, table=learned)", "learned (ratio=0.3)"
    )

    for where, page, options in (
        ("", "fusion", ""),
        ("equal size", "fusion-parameters", ""),
        ("learned table", "fusion-learned", "table=learned"),
        ("learned table, equal size", "fusion-learned-projected", "table=learned"),
    ):
        added = f"add-proj ({options})" if options else "add-proj"
        for start, more in (("random start", ""), ("start of the sum", "start=identity")):
            described = ", ".join(filter(None, (more, options)))
            concatenated = f"concat-proj ({described})" if described else "concat-proj"
            yield Pair(", ".join(filter(None, (start, where))), page, concatenated, added, "through a matrix")

    large, small = "attention-scale (of=add-qk)", "attention-scale (factor=0.7071, of=concat-qk)"
    for where, page, concatenated, added in (
        ("every layer", "site", "concat-qk", "add-qk"),
        ("every layer, 12 seeds", "crossed", "concat-qk", "add-qk"),
        ("every layer, equal size", "fusion-parameters", "concat-qk", "add-qk"),
        ("every layer, products of the sum's scale", "crossed", small, "add-qk"),
        ("every layer, products of concatenation's scale", "crossed", "concat-qk", large),
        ("every layer, 9 million parameters", "full-fusion", "concat-qk", "add-qk"),
    ):
        yield Pair(where, page, concatenated, added, "in queries and keys")


@dataclass(frozen=True)
class Found:
    """A pair on one task."""

    pair: Pair
    task: Task
    difference: Difference

    def line(self) -> list[str]:
        """Return its line of a table."""
        rows = f"`{self.pair.concatenated}`", f"`{self.pair.added}`"
        page = f"[{self.pair.page}](../{self.pair.page}/page.md)"
        interval = plus_minus(self.difference, 1, self.task.digits, "+")
        return [self.pair.place, self.pair.where, *rows, page, f"{self.difference.n}", interval]


def measured(group: str) -> list[Found]:
    """Return all pairs of a group of tasks, which have one unit."""
    return [
        Found(pair, find_task(task), pair.measure(task))
        for pair in pairs()
        for task in pair.tasks()
        if task in GROUPS[group]
    ]


def draw(found: Sequence[Found]) -> Figure:
    """Draw a line for each pair, with its interval."""
    figure, axes, places = by_row([one.pair.where for one in found])
    axes.axvline(0, color=INK, linewidth=0.8)
    marks = {place: mark for place, mark in PLACES.items() if any(one.pair.place == place for one in found)}
    for one, height in zip(found, places, strict=True):
        shape = marks[one.pair.place].style()
        axes.errorbar(one.difference.mean, height, xerr=one.difference.half_width, **shape, capsize=2)
    task = found[0].task
    ahead = "concatenation is better →" if task.higher_is_better else "← concatenation is better"
    axes.set_xlabel(f"Δ {difference_unit(task)}   ({ahead})")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    legend_below(figure, marks, lines=False)
    return figure


def picture(group: str) -> str:
    """Return a group's picture, as SVG."""
    figure = laid_out(draw, measured(group))
    assert figure is not None
    return to_svg(figure)


HEAD = ("position enters", "", "concatenated", "added", "page", "seeds", "difference")
FOLDER = "add_or_concat-figures"


def section(group: str) -> str:
    """Return a group's part of the page."""
    found = measured(group)
    unit = difference_unit(found[0].task)
    better = "more" if found[0].task.higher_is_better else "less"
    picture = f"![{group}: concatenated minus added]({FOLDER}/{file_name(group)}.svg)"
    table = tabulate([one.line() for one in found], HEAD, tablefmt="pipe", disable_numparse=True)
    return f"## {group}\n\nIn {unit}: {better} is better.\n\n{picture}\n\n{table}\n"


def file_name(group: str) -> str:
    """Return the name of a group's picture, without suffix."""
    return group.lower().replace(" ", "-")


INTRODUCTION = """\
# Added or concatenated

A pair is a row with position concatenated and one with position added, as alike as they can be otherwise: the same kind
of vectors, at the same place, through as many matrices. Here is every pair of real data and today's protocol, from all
pages: concatenated minus added at equal seeds, with the 95 % interval, which is not corrected for the number of pairs.
Verdicts, which are corrected, stand on the pages. **The pairs are no independent witnesses:** most share `core`'s eight
runs of addition, those of a task its test split, and many were thought of when others were known.

Unless it says otherwise position has a quarter of the channels, each of the scale of one of content's. So its total
scale ([terms](../../docs/answers/index.md#terms)) is smaller than where it is added, and fewer channels make it smaller
still. A matrix is one for the input, or two for queries and keys in every layer. Tests at other lengths and sizes than
those trained on are not here ([longer inputs](../../docs/answers/longer-inputs.md)), nor what has no partner:
`concat-wide`, whose residual stream is wider, and learned tables in queries and keys. From the published records,
without training:
`python -m benchmarks.studies.add_or_concat --output results/studies/add_or_concat.md`.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *map(section, GROUPS)])


def main(arguments: Sequence[str]) -> int:
    """Work them out, and write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="Markdown file for the page; its pictures are put beside it"
    )
    options = parser.parse_args(arguments)
    if options.output:
        folder = options.output.parent / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        for group in GROUPS:
            (folder / f"{file_name(group)}.svg").write_text(picture(group), encoding="utf-8")
    return write_page([page()], options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
