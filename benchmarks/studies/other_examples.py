"""Compute how far the differences of `core` hold on other test examples of the same source.

Tables take the test split as it is: their intervals are over seeds. Here published runs of `core` are trained again,
the score of every test example is kept, and the differences to the reference get intervals over seeds and examples
together. Scores are kept in a file, to which runs that it lacks are added; so an interrupted command goes on, and the
page can be made again without training. In 90 minutes on two cores (with PEBENCH_DATA_DIR, if data are local), run
    python -m benchmarks.studies.other_examples --output results/studies/other_examples.md
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate
from torch import Tensor
from torch.nn import functional as F

from pebench.atomic import replacing
from pebench.benchmarks.studies.example_variance import BLOCKS, Outcome, comparisons
from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page
from pebench.benchmarks.studies.processes import as_finished, train_again
from pebench.config import REFERENCE_ENCODING, RunConfig
from pebench.data.base import TensorDataModule
from pebench.data.batches import IGNORE
from pebench.models.base import Classifier, SequenceModule
from pebench.results.contrasts import Equivalence
from pebench.results.grids import differences, p_text
from pebench.results.page import Page
from pebench.results.stats import holm
from pebench.results.tables import Table
from pebench.results.verdicts import BETTER_OR_WORSE, verdict
from pebench.runs.records import read_records
from pebench.runs.suite import load_suite
from pebench.tasks import find_task
from pebench.training.extrapolation import prepared_batches

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = RESULTS / "core"
OUTCOMES = RESULTS / "checks" / "other-examples.ndjson"
SEEDS = {"lm-wikitext2": 2, "text-imdb": 2, "text-sst2": 4, "vit-cifar10": 4}
"""How many of the published seeds are trained again: two tell examples from noise, four do so better."""

HEAD = (
    "task", "encoding", f"minus {REFERENCE_ENCODING}, over seeds", "over seeds and examples", "p over seeds",
    "p over both", "standard error of examples", "examples", "seeds trained again", "moved by, at most",
)  # fmt: skip


def score(module: SequenceModule, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Return the scores and sizes (B,) of a batch's examples, as `Outcome` holds them."""
    *inputs, targets = batch
    logits = module(*inputs).float()
    if isinstance(module, Classifier):
        right = logits.argmax(-1) == targets
        return right.long(), torch.ones_like(targets)
    bits = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="none") / math.log(2)
    sizes = module.token_bytes[targets.clamp(min=0)] * (targets != IGNORE)  # type: ignore[index,operator]
    return bits.view_as(targets).sum(1), sizes.sum(1)  # (B * L,) to (B, L) to (B,)


def measure(
    untrained: SequenceModule, trained: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> dict[str, list[float]]:
    """Score every test example; a record holds this in place of shares."""
    with torch.inference_mode():
        parts = [
            score(trained.eval(), batch) for batch in prepared_batches(data.test_dataloader(), trained, data, stop)
        ]
    scores, sizes = zip(*parts, strict=True)
    return {"scores": torch.cat(scores).tolist(), "sizes": torch.cat(sizes).tolist()}


def retrain(config: RunConfig) -> Outcome:
    """Train one run anew and return the outcome of its examples."""
    record = train_again(config, measure)
    found: Mapping[str, Any] = record.position_shares
    scores, sizes = [round(score, 3) for score in found["scores"]], found["sizes"]
    return Outcome(config.key, record.metrics[metric(config)], scores, sizes, record.environment["device"])


def metric(config: RunConfig) -> str:
    """Return the name of a task's headline metric in records."""
    return f"test/{find_task(config.task).metric}"


def read_outcomes(file: Path) -> dict[str, Outcome]:
    """Return the outcomes that a file holds, by key of the run."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {outcome.key: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def add_outcomes(configs: Sequence[RunConfig], file: Path, jobs: int) -> Iterator[dict[str, Outcome]]:
    """Train the runs that a file lacks, and add the outcome of each to it when it is done.

    Yields:
        All outcomes that the file holds, by key of the run: at once, and after each run.
    """
    known = read_outcomes(file)
    missing = [config for config in configs if config.key not in known]
    yield known
    for done, (_, outcome) in enumerate(as_finished(retrain, missing, jobs), start=1):
        known[outcome.key] = outcome
        lines = [json.dumps(vars(known[key]), separators=(",", ":")) for key in sorted(known)]
        with replacing(file) as out:
            out.write("".join(f"{line}\n" for line in lines).encode())
        report_progress(f"{done} of {len(missing)} runs trained again")
        yield known


def lines(page: Page, table: Table, found: Mapping[str, Outcome]) -> Iterator[list[Any]]:
    """Yield a line for each comparison of a table; they are corrected together."""
    compared = [*comparisons(table, found)]
    if not compared:
        return
    labels, cells = (column.texts for column in differences([table], page).values())
    over_seeds = dict(zip(labels, cells, strict=True))
    margin = page.suite.margin_of(table.task.name) if page.suite else None
    assert margin is not None
    differ, equal = (holm(p) for p in zip(*(comparison.p_values(margin) for comparison in compared), strict=True))
    for comparison, p_differ, p_equal in zip(compared, differ, equal, strict=True):
        row, task = comparison.row, table.task
        outcome = verdict(comparison.difference, p_differ, task.higher_is_better).outcome
        word = outcome.value
        if outcome not in BETTER_OR_WORSE:
            word = "equivalent" if Equivalence(margin, p_equal).holds else ""
        half_width, error, moved = (
            f"{task.scale * figure:.{task.digits}f}"
            for figure in (comparison.half_width, comparison.variance**0.5, comparison.moved)
        )
        yield [
            task.name, row.label, over_seeds[row.label], f"± {half_width} {word}".rstrip(), p_text(row.p_adjusted),
            p_text(p_differ), error, f"{comparison.units:,}", comparison.seeds, moved,
        ]  # fmt: skip


def render(rows: Sequence[Sequence[Any]], arguments: Sequence[str]) -> str:
    """Return the page."""
    grid = tabulate(rows, HEAD, tablefmt="pipe", disable_numparse=True)
    return (
        "# Test examples\n\n"
        f"{circumstances('other_examples', arguments, torch.device('cpu'), 1)}"
        "Differences to the reference in [core](../core/page.md), in bits per byte or points, with intervals over "
        "seeds, as its page has them, and over seeds and test examples together: what other seeds and another test "
        "split of the same source and size would give. Words and p-values as on that page, corrected by Holm's method "
        "over the comparisons of a task. Examples are images, sentences and reviews, which are taken to be "
        f"independent; running text is cut into {BLOCKS} blocks of equal length.\n\n"
        "A standard error of zero is one that the estimate does not tell from zero. A p-value over both may be the "
        "lower one, since two sources of variance have more degrees of freedom than one. The last column: by how much "
        "the metric of a run that was trained again differs from the published one; where it does, another processor "
        "or kernel has rounded otherwise.\n\n"
        f"{grid}\n"
    )


def pages(arguments: Sequence[str], tasks: Sequence[str], file: Path, jobs: int) -> Iterator[str]:
    """Yield the page with what is known, then each time that a run has been trained again."""
    page = Page.of(read_records(PUBLISHED), load_suite(PUBLISHED.stem))
    tables = [table for table in page.tables if table.task.name in tasks]
    runs = [record.config for table in tables for row in table.rows for record in row.finished]
    wanted = sorted((run for run in runs if run.seed < SEEDS[run.task]), key=lambda run: run.seed)
    for found in add_outcomes(wanted, file, jobs):
        rows = [line for table in tables for line in lines(page, table, found)]
        yield render(rows, arguments)


def main(arguments: Sequence[str]) -> int:
    """Train again what is not known, and write the page."""
    parser = argparse.ArgumentParser(description="Intervals over seeds and test examples.")
    parser.add_argument("--tasks", nargs="+", default=[*SEEDS], choices=[*SEEDS])
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--outcomes", type=Path, default=OUTCOMES, help="file of examples' scores, run by run")
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    options = parser.parse_args(arguments)
    return write_page(pages(arguments, options.tasks, options.outcomes, options.jobs), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
