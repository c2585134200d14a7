"""Judge segments as the suite `segments` declares it: between its tables, by the runs of addition at equal seeds.

A page compares encodings under one setting; here one encoding is compared under three. From published records, without
training, in seconds:
    python -m benchmarks.studies.segments --output results/studies/segments.md
"""

import sys
from collections.abc import Sequence

from scipy.special import stdtrit
from tabulate import tabulate

from pebench.benchmarks.studies.comparisons import Comparison, Row, row
from pebench.benchmarks.studies.pages import command, main_of_records
from pebench.results.stats import ALPHA

COMPARED = (("sum", None), ("concat", None), ("concat", "sum"))
"""Ways in which segments enter, of which the second is subtracted."""

CONFIDENCE = 1 - ALPHA / len(COMPARED)
"""That of each interval, so that all of them hold together with 95 %."""

HEAD = ("segments", "minus", "seeds", "difference, points", f"{100 * CONFIDENCE:.1f} % interval")


def with_segments(way: str | None) -> Row:
    """Return the row of addition whose segments enter in a way."""
    return row("add", "segments", settings={"model.segments": way})


def line(way: str | None, other: str | None) -> list[str]:
    """Return one comparison's line in the page's table."""
    found = Comparison("text-pairs", with_segments(way), with_segments(other)).measure()
    if found.standard_error is None:
        raise ValueError("one seed has no interval")
    half = float(stdtrit(found.n - 1, (1 + CONFIDENCE) / 2)) * found.standard_error
    words = ["left out" if name is None else f"`{name}`" for name in (way, other)]
    return [*words, f"{found.n}", f"{found.mean:+.2f}", f"{found.mean - half:+.2f} to {found.mean + half:+.2f}"]


def page() -> str:
    """Return the page."""
    return (
        "# Segments, summed or concatenated\n\n"
        "Accuracy of `add` on `text-pairs` by how segments enter, at equal seeds, as the decision of "
        "[segments](../segments/page.md)\nasks: three differences, whose intervals hold together with 95 %. From the "
        "published records, without training:\n"
        f"{command('segments', ['--output', 'results/studies/segments.md'])}.\n\n"
        f"{tabulate([line(*both) for both in COMPARED], HEAD, tablefmt='pipe', disable_numparse=True)}\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Work them out, and write the page."""
    return main_of_records(arguments, __doc__, page)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
