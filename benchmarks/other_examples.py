"""Would other test examples, of the same source, tell the same of the encodings?

Tables take the test split as it is: their intervals are over seeds. Here published runs of `core` are trained again,
what came of every test example is kept, and the differences to the reference get intervals over seeds and examples
together. Outcomes are kept in a file, to which runs that it lacks are added; so an interrupted command goes on, and the
page can be made again without training. In about an hour on two cores (with PEBENCH_DATA_DIR, if data are local), run
    python benchmarks/other_examples.py --output results/other_examples.md
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from scipy.special import stdtr, stdtrit
from tabulate import tabulate
from torch import Tensor
from torch.nn import functional as F

from pebench import runner
from pebench.beyond import ready
from pebench.config import REFERENCE_ENCODING, Options, RunConfig
from pebench.data.base import TensorDataModule
from pebench.data.batches import IGNORE
from pebench.files import replacing
from pebench.modules.base import Classifier, SequenceModule
from pebench.records import Record, read_records
from pebench.results.stats import ALPHA, Difference, holm, paired_difference
from pebench.tasks import find_task
from throughput import circumstances

RESULTS = Path(__file__).parents[1] / "results"
PUBLISHED = RESULTS / "core.jsonl"
OUTCOMES = RESULTS / "checks" / "other-examples.jsonl"
SEEDS = {"lm-wikitext2": 2, "text-imdb": 2, "text-sst2": 4, "vit-cifar10": 4}
"""How many of the published seeds are trained again: two tell examples from noise, four do so better."""

BLOCKS = 60
"""Parts of equal length into which running text is cut: WikiText-2's test split has as many articles."""

HEAD = (
    "task", "encoding", f"minus {REFERENCE_ENCODING}", "± over seeds", "± over both", "standard error of examples",
    "p over seeds", "p over both", "examples", "seeds trained again",
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
    """In place of the runner's shares: what came of every test example."""
    with torch.inference_mode():
        parts = [outcomes(trained.eval(), batch) for batch in ready(data.test_dataloader(), trained, data, stop)]
    return {
        name: torch.cat(part).tolist() for name, part in zip(("scores", "sizes"), zip(*parts, strict=True), strict=True)
    }


def again(config: RunConfig) -> Outcome:
    """One run, trained anew."""
    with tempfile.TemporaryDirectory() as out, mock.patch.object(runner, "measure_shares", measure):
        record = runner.run(config, Options(Path(out), device="cpu", threads=1))
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


def add_outcomes(configs: Sequence[RunConfig], file: Path, jobs: int) -> None:
    """Train what a file lacks, and add each to it when it is done."""
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
    """A published difference to the reference, and what is known of it.

    Args:
        task: Where.
        encoding: Of what.
        difference: Over all published seeds, at the published examples.
        variance: What examples add to its variance.
        units: How many of them there are.
        seeds: How many seeds were trained again.
    """

    task: str
    encoding: str
    difference: Difference
    variance: float
    units: int
    seeds: int

    def over_both(self) -> tuple[float, float]:
        """Half the 95 % interval over seeds and test examples, and the p-value of no difference.

        Source:
            Satterthwaite 1946, An Approximate Distribution of Estimates of Variance Components, Biometrics 2(6).

        Example:
            >>> difference = Difference(0.3, 0.1 * 2.306004, 9, None)  # standard error 0.1, t(0.975; 8)
            >>> [round(value, 3) for value in Comparison("", "", difference, 0.0, 100, 2).over_both()]
            [0.231, 0.017]
            >>> # the sum of both is 0.02, its degrees of freedom 0.02^2 / (0.01^2 / 8 + 0.01^2 / 99) = 29.6
            >>> [round(value, 3) for value in Comparison("", "", difference, 0.01, 100, 2).over_both()]
            [0.289, 0.042]
        """
        n, half_width = self.difference.n, self.difference.half_width
        assert half_width is not None
        of_seeds = (half_width / stdtrit(n - 1, 1 - ALPHA / 2)) ** 2
        both = of_seeds + self.variance
        degrees = both**2 / (of_seeds**2 / (n - 1) + self.variance**2 / (self.units - 1))
        error = both**0.5
        p_value = 2 * stdtr(degrees, -abs(self.difference.mean) / error)
        return float(stdtrit(degrees, 1 - ALPHA / 2) * error), float(p_value)


def comparisons(records: Sequence[Record], found: Mapping[str, Outcome]) -> Iterator[Comparison]:
    """Those of one task for which two seeds or more were trained again.

    Args:
        records: Published, of that task.
        found: By key of the run.
    """
    rows: dict[str, dict[int, Record]] = {}
    for record in records:
        rows.setdefault(record.config.encoding, {})[record.config.seed] = record
    reference = rows.pop(REFERENCE_ENCODING)
    for encoding, row in rows.items():
        values = [{seed: run.metrics[metric(run.config)] for seed, run in runs.items()} for runs in (row, reference)]
        seeds = [seed for seed in row if {row[seed].config.key, reference[seed].config.key} <= found.keys()]
        if (difference := paired_difference(*values)) and len(seeds) > 1:
            pair = [[found[runs[seed].config.key] for seed in seeds] for runs in (row, reference)]
            yield Comparison(record.config.task, encoding, difference, *variance_of_examples(*pair), len(seeds))


def lines(compared: Sequence[Comparison]) -> Iterator[list[Any]]:
    """One for each comparison of a task, which are corrected together."""
    over_both = [comparison.over_both() for comparison in compared]
    alone = holm([comparison.difference.p_value for comparison in compared])
    together = holm([p for _, p in over_both])
    for row, (half_width, _), *p_values in zip(compared, over_both, alone, together, strict=True):
        digits, unit = (4, 1) if find_task(row.task).metric == "bits_per_byte" else (2, 100)
        figures = [row.difference.half_width, half_width, row.variance**0.5]
        told = [f"{unit * figure:.{digits}f}" for figure in figures if figure is not None]
        mean, chances = f"{unit * row.difference.mean:+.{digits}f}", [f"{p:.3f}" for p in p_values]
        yield [row.task, row.encoding, mean, *told, *chances, row.units, row.seeds]


def main(arguments: Sequence[str]) -> None:
    """Train again what is not known, and write the page."""
    parser = argparse.ArgumentParser(description="Intervals over seeds and test examples.")
    parser.add_argument("--tasks", nargs="+", default=[*SEEDS], choices=[*SEEDS])
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--outcomes", type=Path, default=OUTCOMES, help="what came of examples, run by run")
    parser.add_argument("--output", type=Path, help="Markdown file")
    options = parser.parse_args(arguments)
    records = [
        record
        for record in read_records(PUBLISHED)
        if record.ok and record.config.stage == "test" and record.config.task in options.tasks
    ]
    published = {record.config.key: record.metrics[metric(record.config)] for record in records}
    wanted = [record.config for record in records if record.config.seed < SEEDS[record.config.task]]
    wanted.sort(key=lambda config: (options.tasks.index(config.task), config.seed))
    add_outcomes(wanted, options.outcomes, options.jobs)
    found = read_outcomes(options.outcomes)
    by_task = [[record for record in records if record.config.task == task] for task in options.tasks]
    grid = tabulate(
        [line for task in by_task for line in lines([*comparisons(task, found)])],
        HEAD, tablefmt="pipe", disable_numparse=True,
    )  # fmt: skip
    moved = max(abs(found[config.key].metric - published[config.key]) for config in wanted)
    text = (
        "# Test examples\n\n"
        f"{circumstances('other_examples.py', arguments, torch.device('cpu'), 1)}"
        "Differences to the reference in [core](core.md), with intervals over seeds, as its page has them, and over "
        "seeds and test examples together: what other seeds and another test split of the same source and size would "
        "give. In bits per byte or points; p-values are corrected by Holm's method over the comparisons of a task. "
        "Examples are images, sentences and reviews; running text is cut into blocks of equal length.\n\n"
        f"{grid}\n\n"
        f"The metrics of the runs that were trained again are within {moved:.2g} of the published ones.\n"
    )
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
