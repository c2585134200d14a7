"""Measure whether language models without an encoding tell positions apart by the first ones alone.

A causal model can count, or can tell the first token, which much attention falls on, from all others. So runs of `none`
on WikiText-2 that `depth` has are trained again, and the share of their residual stream's variance that lies between
positions is measured as records hold it, and with the first positions of every text left out. In about a quarter of an
hour on two cores (with PEBENCH_DATA_DIR, if data are local), run
    python -m benchmarks.studies.first_positions --output results/studies/first_positions.md
"""

import argparse
import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from tabulate import tabulate

from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page
from pebench.benchmarks.studies.processes import as_finished, train_again
from pebench.config import RunConfig
from pebench.data.base import TensorDataModule
from pebench.models.base import SequenceModule
from pebench.runs.records import Record, read_records
from pebench.training.position_share import position_shares

PUBLISHED = Path(__file__).parents[2] / "results" / "depth"
LAYERS, SEEDS = (4, 8), (0, 1)
STARTS = (0, 1, 8, 16)
"""Numbers of first positions that are left out."""

METRIC = "test/bits_per_byte"


def measure(
    untrained: SequenceModule, trained: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> dict[str, list[float | None]]:
    """Measure the position variance share of the trained model, for each start."""
    return {str(start): position_shares(copy.deepcopy(trained).float(), data, stop, start) for start in STARTS}


def retrain(config: RunConfig) -> Record:
    """Train one run anew; its record holds position variance shares by start."""
    return train_again(config, measure)


def published(layers: Sequence[int], seeds: Sequence[int]) -> list[Record]:
    """Return the tested runs without an encoding."""
    return [
        record
        for record in read_records(PUBLISHED)
        if (record.config.task, record.config.encoding, record.config.stage) == ("lm-wikitext2", "none", "test")
        and record.config.model.num_layers in layers
        and record.config.seed in seeds
    ]


def grid(first: Sequence[Record], second: Sequence[Record]) -> str:
    """Return the table of shares, in percent, before each block and of the output layer.

    Args:
        first: Published runs.
        second: The same runs trained again.
    """
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


def pages(arguments: Sequence[str], first: Sequence[Record], jobs: int) -> Iterator[str]:
    """Yield the page each time that a run has been trained again."""
    introduction = (
        "# Positions without an encoding, and the first of them\n\n"
        f"{circumstances('first_positions', arguments, torch.device('cpu'), 1)}"
        "Language models without an encoding ([depth](../depth/page.md)), trained again. Of the variance of what is "
        "given to each block, and to the output layer, the percentage that lies between positions, over all of them "
        "and without the first ones of every text.\n\n"
    )
    again: dict[int, Record] = {}
    for place, record in as_finished(retrain, [record.config for record in first], jobs):
        again[place] = record
        report_progress(f"{len(again)} of {len(first)} runs trained again")
        places = sorted(again)
        yield f"{introduction}{grid([first[i] for i in places], [again[i] for i in places])}\n"


def main(arguments: Sequence[str]) -> int:
    """Train again, measure, and write the page."""
    parser = argparse.ArgumentParser(description="Measure the position variance share without the first positions.")
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    options = parser.parse_args(arguments)
    first = published(options.layers, options.seeds)
    return write_page(pages(arguments, first, options.jobs), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
