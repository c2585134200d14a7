"""Work out comparisons that no suite declares: rows of different pages, other lengths, more seeds, changes.

Prose in results/ names some such comparisons. They are listed here, and worked out from the published records, without
training; a test holds the prose to them. In seconds, run
    python -m benchmarks.studies.undeclared --output results/studies/undeclared.md
"""

import functools
import sys
from collections.abc import Sequence

from tabulate import tabulate

from pebench.benchmarks.studies.comparisons import Comparison, Row, row
from pebench.benchmarks.studies.pages import command, main_of_records
from pebench.results.stats import Difference
from pebench.tasks import find_task

QUIET = row("learned (ratio=0.03)", "scale-learned")
TABLE, QUIETER_TABLE = "concat (table=learned)", "concat (ratio=0.5, table=learned)"
ADD = row("add")
QUIET_SUM = "add (preserve_variance=True)"


def text() -> list[Comparison]:
    """Return the comparisons of language models."""
    equal, trial = "fusion-parameters", "scorecard-language"
    pairs: list[tuple[Row, Row, str]] = [
        (QUIET, row("concat"), ""),
        (row("concat-qk", "fusion"), row("rope"), ""),
        (row("concat-qk", "fusion"), row("concat"), "2x"),
        (row("none", "full"), row("add", "full"), "2x"),
        (row("none", "full"), row("rope", "full"), "4x"),
        *((row("rope", "full-fusion"), row(name, "full-fusion"), "2x") for name in ("add-qk", "concat-qk")),
        (row("concat (d_p=16)", "full-fusion"), row("concat", "full-fusion"), "2x"),
        (row("add (ratio=1.4)", "rivals"), row("add (centered=True)", "rivals"), ""),
        (row("concat (centered=True)", "rivals"), row("concat", "rivals"), ""),
        (row(TABLE, "fusion-learned"), row("concat"), ""),
        (row("concat (d_p=8, table=learned)", "split-learned"), row(QUIETER_TABLE, "fusion-learned"), ""),
        *((row("transformer-xl", trial), row(other, trial), "") for other in ("rope", "concat-qk", "pope")),
        (row("pope", trial), row("rope", trial), ""),
        *((row("cpe", trial), row(other, trial), "") for other in ("rope", "concat")),
        *((row("transformer-xl", trial), row(other, trial), "4x") for other in ("kerple-log", "xpos")),
        *((row("concat-qk", "site"), row("add-qk", "site"), at) for at in ("2x", "4x")),
        *((row("concat-qk", equal), row(other, equal), at) for other in ("rope", "add-qk") for at in ("2x", "4x")),
    ]  # fmt: skip
    eight = row("concat (d_p=8, ratio=1.7)", "few-channels")
    pairs += [
        (eight, row("concat (d_p=8)", "split"), ""),
        (eight, row("concat"), "2x"),
        (row("concat (d_p=2, ratio=3.5)", "few-channels"), row("none"), ""),
        (row("concat", "split-parameters"), row("concat"), ""),
        (row(eight.label, "split-parameters"), eight, ""),
        (row(eight.label, "split-parameters"), row("concat"), ""),
        (row(eight.label, "split-parameters"), row("concat", "split-parameters"), "2x"),
    ]
    found = [Comparison("lm-wikitext2", *pair) for pair in pairs]
    layers = ({"model.num_layers": n} for n in (8, 4))
    deep, shallow = ((row("none", "depth", settings=n), row("rope", "depth", settings=n)) for n in layers)
    return [*found, Comparison("lm-wikitext2", *deep, baseline=shallow)]


def images() -> list[Comparison]:
    """Return the comparisons on images."""
    equal, every = "fusion-parameters", ("core", "confirm")
    known = range(3, 8)
    identity = "concat-proj (start=identity)"
    pairs: list[tuple[Row, Row, str]] = [
        (row("concat", *every), row("add", *every), ""),
        (row("concat", seeds=known), ADD, ""),
        (row("rope", seeds=known), ADD, ""),
        (row(TABLE, "fusion-learned"), QUIET, ""),
        (row(QUIETER_TABLE, "fusion-learned"), QUIET, ""),
        (row("concat-qk (table=learned)", "fusion-learned"), QUIET, ""),
        *((row(f"{name} (table=learned)", "fusion-learned-parameters"), QUIET, "") for name in ("concat", "concat-qk")),
        (row("concat-qk", "fusion"), row("rope"), ""),
        (row("add-qk", "site", "crossed", "place"), row("add", *every), ""),
        (row("add-qk", "site"), row(QUIET_SUM, "loudness"), ""),
        (row("add-qk", "crossed"), row(QUIET_SUM, "louder"), ""),
        (row("add-qk", "place", seeds=(12, 13, 14, 15, 16, 18, 19)), row(QUIET_SUM, "place"), ""),
        (row(QUIET_SUM, "loudness"), row("gated-add (pace=1.0)", "fusion"), ""),
        *((row(name, equal), row(name, "core" if name == "concat" else "fusion"), "")
          for name in ("concat", "add-proj", "concat-proj", identity)),
        (row("concat"), ADD, "1.5x"),
        (row("concat", "confirm"), row("add", "confirm"), "1.5x"),
        (row("embed-scale (of=concat)", "louder"), row("add", "louder"), "1.5x"),
        *((row(f"concat (d_p={count})", "split"), ADD, "1.5x") for count in (32, 8)),
        *((row(name, "fusion"), ADD, "1.5x") for name in ("concat-proj", identity, "concat-qk")),
        *((row(name, equal), row("add", equal), "1.5x") for name in ("concat", "concat-wide")),
        (row("concat-qk", "site"), row("add-qk", "site"), "1.5x"),
        (row("concat"), ADD, "2x"),
        (row("concat-qk", "fusion"), ADD, "2x"),
        (row("concat-wide", equal), row("add", equal), "shuffled"),
        *((row(name, "place"), row("add", "place"), "shuffled") for name in ("add-qk", "embed-scale (of=add-qk)")),
    ]  # fmt: skip
    changes = [
        row("concat (d_p=32)", "split"), row("concat"), row("concat-proj", "fusion"), row(identity, "fusion"),
    ]  # fmt: skip
    found = [Comparison("vit-cifar10", *pair) for pair in pairs]
    return found + [Comparison("vit-cifar10", changed, ADD, "1.5x", change=True) for changed in changes]


def sentiment() -> list[Comparison]:
    """Return the comparisons on sentiment."""
    every, equal, projected = ("core", "confirm"), "fusion-parameters", "fusion-learned-projected"
    width, table, quieter = "fusion-learned", "fusion-learned-parameters", "learned (ratio=0.3)"
    through, started = "concat-proj (table=learned)", "concat-proj (start=identity, table=learned)"
    summed = "add-proj (table=learned)"
    pairs: list[tuple[Row, Row, str]] = [
        (row("rope", *every), row("add", *every), ""),
        (row("add (ratio=3.0)", "scale"), ADD, "shuffled"),
        (row("add (ratio=3.0)", "imdb-rates"), ADD, "shuffled"),
        (row("concat (d_p=32)", "split-text"), row("concat"), "shuffled"),
        *((row("concat-proj", "fusion"), row(name, "fusion"), "shuffled") for name in ("add-proj", "add")),
        (row(through, width), row("learned", width), "shuffled"),
        (row(started, width), row(summed, width), "shuffled"),
        (row(QUIETER_TABLE, width), row(quieter, width), "shuffled"),
        (row("concat (d_p=32, table=learned)", "split-learned"), row(TABLE, width), "shuffled"),
        (row("concat-proj", equal), row("add-proj", equal), "shuffled"),
        *((row("add-qk", equal), row(name, equal), "shuffled") for name in ("add", "none")),
        *((row(name, equal), row("concat", equal), "shuffled") for name in ("concat-qk", "concat-wide")),
        *((row(name, table), row("learned", table), "shuffled") for name in (TABLE, "concat-qk (table=learned)")),
        (row(through, projected), row("learned", projected), "shuffled"),
        *((row(name, projected), row(summed, projected), "shuffled") for name in (through, started)),
        (row("concat", equal), row("concat"), ""),
        (row(TABLE, table), row(TABLE, width), ""),
        (row("concat-qk (table=learned)", table), row("none"), ""),
        (row(through, projected), row("none"), ""),
    ]
    reviews = [Comparison("text-imdb", *pair) for pair in pairs]
    reviews += [Comparison("text-imdb", row("add-qk", equal), row("none"), "shuffled", change=True)]
    pairs = [
        (row("concat", equal), row("concat"), ""),
        (row("concat-qk", equal), row("concat", equal), "shuffled"),
        (row(started, projected), row(summed, projected), "shuffled"),
        (row(QUIETER_TABLE, width), row(quieter, width), "shuffled"),
    ]
    return reviews + [Comparison("text-sst2", *pair) for pair in pairs]


@functools.cache
def measured() -> list[tuple[Comparison, Difference]]:
    """Return every comparison with its difference."""
    return [(comparison, comparison.measure()) for comparison in (*text(), *images(), *sentiment())]


PLACES = {"": "as trained", "shuffled": "in random order", "2x": "twice as long", "4x": "four times as long"}
ON_IMAGES = {"1.5x": "1.5 times as wide and high", "2x": "twice as wide and high"}


def line(comparison: Comparison, found: Difference) -> list[str]:
    """Return a comparison's line in the page's table."""
    task = find_task(comparison.task)
    digits = task.digits
    place = (PLACES | ON_IMAGES if task.image else PLACES)[comparison.at]
    first, minus = str(comparison.row), str(comparison.minus)
    if comparison.baseline:
        first, minus = f"{first}, minus {minus}", "; minus ".join(map(str, comparison.baseline))
    interval = f"{found.mean - found.half_width:+.{digits}f} to {found.mean + found.half_width:+.{digits}f}"
    measured_at = f"change from as trained to {place}" if comparison.change else place
    return [comparison.task, measured_at, first, minus, f"{found.n}", f"{found.mean:+.{digits}f}", interval]


HEAD = ("task", "tested", "row", "minus", "seeds", "difference", "95 % interval")


def page() -> str:
    """Return the page."""
    return (
        "# Exploratory comparisons\n\n"
        "Comparisons that no suite declares: rows of different pages, other lengths and sizes, more seeds, changes. "
        "The\n[answers](../../docs/answers/index.md), [README](../README.md) and notes name some of them. Each was "
        "thought of when its\nruns were known. None is corrected for their number, and pages share runs: they are "
        "remarks, no findings. Differences\nare at equal seeds, in bits per byte (less is better) or points of "
        "accuracy (more is better). From the published\nrecords, without training: "
        f"{command('undeclared', ['--output', 'results/studies/undeclared.md'])}.\n\n"
        f"{tabulate([line(*both) for both in measured()], HEAD, tablefmt='pipe', disable_numparse=True)}\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Work them out, and write the page."""
    return main_of_records(arguments, __doc__, page)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
