"""The picture of README and home page: `python -m benchmarks.picture` prints it as SVG."""

from pathlib import Path

from matplotlib.figure import Figure

from pebench import load_results, load_suite
from pebench.results.figures.apart import draw_rows
from pebench.results.figures.style import laid_out, to_svg

SUITE, TASK, ENCODINGS = "inside", "lm-wikitext2", ("add", "concat")
RESULTS = Path(__file__).parents[1] / "results"


def picture() -> Figure:
    """Draw where trained language models have content and position, summed and concatenated."""
    page = load_results(RESULTS / SUITE / "runs.jsonl", load_suite(SUITE)).page
    (table,) = [table for table in page.tables if table.task.name == TASK]
    figure = laid_out(draw_rows, [row for row in table.rows if row.label in ENCODINGS])
    assert figure is not None
    return figure


if __name__ == "__main__":
    print(to_svg(picture()), end="")
