"""Are positions told apart, in language models without an encoding, by their first ones alone?

A causal model can count, or can tell the first token, which much attention falls on, from all others. So runs of `none`
on WikiText-2 that `depth` has are trained again, and the share of their residual stream's variance that lies between
positions is measured as records tell it, and with the first positions of every text left out. In about a quarter of an
hour on two cores (with PEBENCH_DATA_DIR, if data are local), run
    python benchmarks/studies/first_positions.py --output results/first_positions.md
"""

import argparse
import copy
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from tabulate import tabulate
from throughput import circumstances

from pebench.config import Options, RunConfig
from pebench.data.base import TensorDataModule
from pebench.models.base import SequenceModule
from pebench.runs.records import Record, read_records
from pebench.training import runner
from pebench.training.position_share import position_shares

PUBLISHED = Path(__file__).parents[2] / "results" / "depth.jsonl"
LAYERS, SEEDS = (4, 8), (0, 1)
STARTS = (0, 1, 8, 16)
"""How many of the first positions are left out."""

METRIC = "test/bits_per_byte"


def measure(
    untrained: SequenceModule, trained: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> dict[str, list[float | None]]:
    """Shares of the trained model, for each start."""
    return {str(start): position_shares(copy.deepcopy(trained).float(), data, stop, start) for start in STARTS}


def again(config: RunConfig, measure: runner.Measure = measure) -> Record:
    """One run, trained anew, whose record holds as its shares what `measure` finds: shares by start."""
    with tempfile.TemporaryDirectory() as out:
        return runner.train(config, Options(Path(out), device="cpu", threads=1), measure=measure)


def published(layers: Sequence[int], seeds: Sequence[int]) -> list[Record]:
    """The tested runs without an encoding."""
    return [
        record
        for record in read_records(PUBLISHED)
        if (record.config.task, record.config.encoding, record.config.stage) == ("lm-wikitext2", "none", "test")
        and record.config.model.num_layers in layers
        and record.config.seed in seeds
    ]


def grid(first: Sequence[Record], second: Sequence[Record]) -> str:
    """A line for each run and start: its share, in percent, in front of each block and of the output layer."""
    deepest = max(record.config.model.num_layers for record in first)
    head = ["layers", "seed", "bits per byte", "again", "without the first"]
    head += [*(f"block {block + 1}" for block in range(deepest)), "output"]
    rows = []
    for one, other in zip(first, second, strict=True):
        layers = one.config.model.num_layers
        of_run = [layers, one.config.seed, f"{one.metrics[METRIC]:.6f}", f"{other.metrics[METRIC]:.6f}"]
        for start, shares in other.position_shares.items():
            percent = ["" if share is None else f"{100 * share:.2f}" for share in shares]
            rows.append([*of_run, start, *percent[:-1], *[""] * (deepest - layers), percent[-1]])
    return tabulate(rows, head, tablefmt="pipe", disable_numparse=True)


def main(arguments: Sequence[str]) -> None:
    """Train again, measure, and write the page."""
    parser = argparse.ArgumentParser(description="Measure what positions share without the first ones.")
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--output", type=Path, help="Markdown file")
    options = parser.parse_args(arguments)
    first = published(options.layers, options.seeds)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        second = list(pool.map(again, [record.config for record in first]))
    text = (
        "# Positions without an encoding, and the first of them\n\n"
        f"{circumstances('first_positions.py', arguments, torch.device('cpu'), 1)}"
        "Language models without an encoding ([depth](depth.md)), trained again. Of the variance of what is given to "
        "each block, and to the output layer, the percentage that lies between positions, over all of them and without "
        f"the first ones of every text.\n\n{grid(first, second)}\n"
    )
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
