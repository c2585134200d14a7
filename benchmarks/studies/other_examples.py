"""Would other test examples, of the same source, tell the same of the encodings?

Tables take the test split as it is: their intervals are over seeds. Here published runs of `core` are trained again,
what came of every test example is kept, and the differences to the reference get intervals over seeds and examples
together. Outcomes are kept in a file, to which runs that it lacks are added; so an interrupted command goes on, and the
page can be made again without training. In 90 minutes on two cores (with PEBENCH_DATA_DIR, if data are local), run
    python benchmarks/studies/other_examples.py --output results/other_examples.md
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import first_positions
import numpy as np
import torch
from scipy.special import stdtr, stdtrit
from tabulate import tabulate
from throughput import circumstances
from torch import Tensor
from torch.nn import functional as F

from pebench.atomic import replacing
from pebench.config import REFERENCE_ENCODING, RunConfig
from pebench.data.base import TensorDataModule
from pebench.data.batches import IGNORE
from pebench.models.base import Classifier, SequenceModule
from pebench.results.grids import differences, p_text
from pebench.results.page import Equivalence, Page
from pebench.results.stats import ALPHA, BETTER_OR_WORSE, Difference, holm, verdict
from pebench.results.tables import Row, Table
from pebench.runs.records import read_records
from pebench.runs.suite import load_suite
from pebench.tasks import find_task
from pebench.training.extrapolation import prepared_batches

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = RESULTS / "core.jsonl"
OUTCOMES = RESULTS / "checks" / "other-examples.jsonl"
SEEDS = {"lm-wikitext2": 2, "text-imdb": 2, "text-sst2": 4, "vit-cifar10": 4}
"""How many of the published seeds are trained again: two tell examples from noise, four do so better."""

BLOCKS = 60
"""Parts of equal length into which running text is cut: WikiText-2's test split has as many articles."""

HEAD = (
    "task", "encoding", f"minus {REFERENCE_ENCODING}, over seeds", "over seeds and examples", "p over seeds",
    "p over both", "standard error of examples", "examples", "seeds trained again", "moved by, at most",
)  # fmt: skip

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Outcome:
    """What came of every test example in one run.

    Args:
        key: Of the run.
        metric: Of the whole split, as the run measured it.
        scores: (N,) 1 where an example was classified rightly, 0 elsewhere; of a window of text its loss in bits.
        sizes: (N,) bytes of a window's text; 1 for an example that was classified.
        device: Where it ran.
    """

    key: str
    metric: float
    scores: Sequence[float]
    sizes: Sequence[int]
    device: str = ""

    def __post_init__(self) -> None:
        mean = sum(self.scores) / sum(self.sizes)
        if not math.isclose(mean, self.metric, rel_tol=1e-4):
            raise RuntimeError(f"expected examples of {self.key} to have the mean {self.metric}, got {mean}")

    @property
    def units(self) -> tuple[Values, Values]:
        """Scores and sizes of what may be taken for independent: of examples, or of blocks of running text."""
        scores, sizes = np.array(self.scores, float), np.array(self.sizes, float)
        if (sizes == 1).all():
            return scores, sizes
        edges = np.linspace(0, len(sizes), BLOCKS, endpoint=False).astype(int)
        return np.add.reduceat(scores, edges), np.add.reduceat(sizes, edges)


def outcomes(module: SequenceModule, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Scores and sizes (B,) of a batch's examples."""
    *inputs, targets = batch
    logits = module(*inputs).float()
    if isinstance(module, Classifier):
        right = logits.argmax(-1) == targets
        return right.long(), torch.ones_like(targets)
    bits = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="none") / math.log(2)
    sizes = module.token_bytes[targets.clamp(min=0)] * (targets != IGNORE)  # type: ignore[index,operator]
    return bits.view_as(targets).sum(1), sizes.sum(1)


def measure(
    untrained: SequenceModule, trained: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> dict[str, list[float]]:
    """What came of every test example, in place of shares."""
    with torch.inference_mode():
        parts = [
            outcomes(trained.eval(), batch) for batch in prepared_batches(data.test_dataloader(), trained, data, stop)
        ]
    return {
        name: torch.cat(part).tolist() for name, part in zip(("scores", "sizes"), zip(*parts, strict=True), strict=True)
    }


def again(config: RunConfig) -> Outcome:
    """One run, trained anew."""
    record = first_positions.again(config, measure)
    found: Mapping[str, Any] = record.position_shares
    scores, sizes = [round(score, 3) for score in found["scores"]], found["sizes"]
    return Outcome(config.key, record.metrics[metric(config)], scores, sizes, record.environment["device"])


def metric(config: RunConfig) -> str:
    """What a task is judged by."""
    return f"test/{find_task(config.task).metric}"


def read_outcomes(file: Path) -> dict[str, Outcome]:
    """Those that a file holds, by key of the run."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {outcome.key: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def add_outcomes(configs: Sequence[RunConfig], file: Path, jobs: int) -> dict[str, Outcome]:
    """Train what a file lacks, and add each to it when it is done; then all that it holds, by key of the run."""
    known = read_outcomes(file)
    missing = [config for config in configs if config.key not in known]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        running = [pool.submit(again, config) for config in missing]
        for done, future in enumerate(as_completed(running), start=1):
            known[future.result().key] = future.result()
            lines = [json.dumps(vars(known[key]), separators=(",", ":")) for key in sorted(known)]
            with replacing(file) as out:
                out.write("".join(f"{line}\n" for line in lines).encode())
            sys.stderr.write(f"{done} of {len(missing)} runs done\n")
    return known


def variance_of_examples(first: Sequence[Outcome], second: Sequence[Outcome]) -> tuple[float, int]:
    """How much a mean difference, over any number of seeds, would vary with the test examples.

    Seeds and examples are crossed: the difference of one seed at one unit is a mean, a part of the seed, a part of the
    unit and a rest. The variance of the units' part is that of the means over seeds less what the rest adds to it. For
    running text a unit's value is its part of the ratio of sums that bits per byte are.

    Args:
        first: Of one encoding, seed by seed.
        second: Of the other, at the same seeds.

    Returns:
        The variance, of a mean over all units; and the number of units.

    Source:
        Cornfield and Tukey 1956, Average Values of Mean Squares in Factorials, Ann. Math. Stat. 27(4):907-949.

    Example:
        >>> right = lambda *scores: Outcome("", sum(scores) / 4, scores, [1] * 4)
        >>> variance_of_examples([right(1, 1, 0, 0)] * 2, [right(0, 1, 0, 0)] * 2)  # 1, 0, 0, 0: 0.25 over four
        (0.0625, 4)
        >>> variance_of_examples([right(1, 0, 0, 0), right(0, 0, 0, 1)], [right(0, 0, 0, 0)] * 2)  # units do not agree
        (0.0, 4)
    """
    sizes = first[0].units[1]
    differences = np.array([one.units[0] - other.units[0] for one, other in zip(first, second, strict=True)])
    ratios = differences.sum(1, keepdims=True) / sizes.sum()
    values = (differences - ratios * sizes) / sizes.mean()  # each seed's mean is zero
    seeds, units = values.shape
    means = values.mean(0)
    rest = ((values - means) ** 2).sum() / ((seeds - 1) * (units - 1))
    return max(0.0, float(means.var(ddof=1) - rest / seeds) / units), units


@dataclass(frozen=True)
class Comparison:
    """A published difference to the reference, and what test examples add to its variance.

    Args:
        row: Of the published table.
        variance: That examples add.
        units: How many examples there are.
        seeds: How many seeds were trained again.
        moved: By how much the metric of one that was is from the published one, at most: rounding's doing.
    """

    row: Row
    variance: float
    units: int
    seeds: int
    moved: float

    @property
    def difference(self) -> Difference:
        """Over all published seeds, at the published examples."""
        assert self.row.difference is not None
        return self.row.difference

    @property
    def error(self) -> tuple[float, float]:
        """The standard error of the difference over seeds and test examples, and its degrees of freedom.

        Source:
            Satterthwaite 1946, An Approximate Distribution of Estimates of Variance Components, Biometrics 2(6).
        """
        assert self.difference.standard_error is not None
        last, of_seeds = self.difference.n - 1, self.difference.standard_error**2
        both = of_seeds + self.variance
        return both**0.5, both**2 / (of_seeds**2 / last + self.variance**2 / (self.units - 1))

    @property
    def half_width(self) -> float:
        """Of the 95 % interval over both."""
        error, degrees = self.error
        return float(stdtrit(degrees, 1 - ALPHA / 2) * error)

    def p_values(self, margin: float) -> tuple[float, float]:
        """Over both, of no difference, and of one as large as a margin or larger; as over seeds alone."""
        error, degrees = self.error
        size = abs(self.difference.mean)
        return float(2 * stdtr(degrees, -size / error)), float(stdtr(degrees, (size - margin) / error))


def comparisons(table: Table, found: Mapping[str, Outcome]) -> Iterator[Comparison]:
    """Those of a table for which two seeds or more were trained again.

    Args:
        table: Published.
        found: By key of the run.
    """
    runs = {
        row.label: {record.config.seed: found.get(record.config.key) for record in row.records} for row in table.rows
    }
    for row in table.rows:
        pairs = [(runs[row.label][seed], runs[table.reference].get(seed)) for seed in runs[row.label]]
        known = [(one, other) for one, other in pairs if one and other]
        if row.difference and len(known) > 1:
            first, second = zip(*known, strict=True)
            moved = max(abs(run.metric - row.values[seed]) for seed, run in runs[row.label].items() if run)
            yield Comparison(row, *variance_of_examples(first, second), len(known), moved)


def lines(page: Page, table: Table, found: Mapping[str, Outcome]) -> Iterator[list[Any]]:
    """One for each comparison of a table, which are corrected together."""
    compared, (labels, cells) = [*comparisons(table, found)], differences([table], page).values()
    over_seeds = dict(zip(labels, cells, strict=True))
    margin = page.suite.margin_of(table.task.name) if page.suite else None
    assert margin is not None
    differ, equal = (holm(p) for p in zip(*(comparison.p_values(margin) for comparison in compared), strict=True))
    unit, digits = table.task.scale, table.task.digits
    for comparison, p_differ, p_equal in zip(compared, differ, equal, strict=True):
        row = comparison.row
        word = verdict(comparison.difference, p_differ, table.task.higher_is_better)
        said = word if word in BETTER_OR_WORSE else "equivalent" * Equivalence(margin, p_equal).holds
        half_width, error, moved = (
            f"{unit * figure:.{digits}f}"
            for figure in (comparison.half_width, comparison.variance**0.5, comparison.moved)
        )
        yield [
            table.task.name, row.label, over_seeds[row.label], f"± {half_width} {said}".rstrip(),
            p_text(row.p_adjusted), p_text(p_differ), error, f"{comparison.units:,}", comparison.seeds, moved,
        ]  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Train again what is not known, and write the page."""
    parser = argparse.ArgumentParser(description="Intervals over seeds and test examples.")
    parser.add_argument("--tasks", nargs="+", default=[*SEEDS], choices=[*SEEDS])
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--outcomes", type=Path, default=OUTCOMES, help="what came of examples, run by run")
    parser.add_argument("--output", type=Path, help="Markdown file")
    options = parser.parse_args(arguments)
    suite = load_suite(PUBLISHED.stem)
    page = Page.of(read_records(PUBLISHED), suite)
    tables = [table for table in page.tables if table.task.name in options.tasks]
    runs = [record.config for table in tables for row in table.rows for record in row.finished]
    wanted = [run for run in runs if run.seed < SEEDS[run.task]]
    found = add_outcomes(sorted(wanted, key=lambda run: run.seed), options.outcomes, options.jobs)
    grid = tabulate(
        [line for table in tables for line in lines(page, table, found)], HEAD, tablefmt="pipe", disable_numparse=True
    )
    text = (
        "# Test examples\n\n"
        f"{circumstances('other_examples.py', arguments, torch.device('cpu'), 1)}"
        "Differences to the reference in [core](core.md), in bits per byte or points, with intervals over seeds, as "
        "its page has them, and over seeds and test examples together: what other seeds and another test split of the "
        "same source and size would give. Words and p-values as on that page, corrected by Holm's method over the "
        "comparisons of a task. Examples are images, sentences and reviews, which are taken to be independent; running "
        f"text is cut into {BLOCKS} blocks of equal length.\n\n"
        "A standard error of zero is one that the estimate does not tell from zero. A p-value over both may be the "
        "lower one, since two sources of variance have more degrees of freedom than one. The last column: by how much "
        "the metric of a run that was trained again differs from the published one; where it does, another processor "
        "or kernel has rounded otherwise.\n\n"
        f"{grid}\n"
    )
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
