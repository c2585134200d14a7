"""Time a training step with each encoding against one with none.

The language model of `throughput` (W2) and an image classifier of its shape, at two lengths each with as many tokens in
a batch. Encodings take turns with `none` in random order, so that a busy machine slows all of them alike. On a machine
that does nothing else, run
    python -m benchmarks.studies.encoding_costs --threads 2 --output results/studies/encoding_costs.md
"""

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tabulate import tabulate
from torch import Tensor

from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page
from pebench.benchmarks.studies.timing import time_loop
from pebench.benchmarks.studies.workloads import PATCH, Workload, make_tensors, random_batch
from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.registry import encoding_cards
from pebench.models import LanguageModel, ViT
from pebench.models.attention import fastest_kernel
from pebench.models.base import SequenceModule

TOKENS = 2048  # in a batch
LENGTHS = (64, 256)
GROUP = 3  # encodings between two blocks of `none`
STEPS, CUDA_STEPS = 2, 20  # of a block
BARS = dict.fromkeys(("rope", "add", "learned", "concat"), 1.05) | dict.fromkeys(("alibi", "sandwich"), 1.25)
"""The largest ratio of a step at the larger length to one of `none` that is accepted."""

BAR_ROUNDS = 5
"""Rounds of those with a bar for each round of all."""

Ratios = dict[str, list[float]]
"""Seconds of a step over those of `none`, in each round; no ratios where an encoding does not serve the model."""


def workload(text: bool, length: int, quick: bool) -> Workload:
    """Return the width, depth and heads of W2, for text or images of a length."""
    size, width, depth = length if text else round(length**0.5) * PATCH, 24 if quick else 384, 1 if quick else 6
    batch = 1 if quick else TOKENS // length
    return Workload("", "lm" if text else "image", depth, width, depth, batch, size, 65 if text else 10, 1)


def make_model(name: str, work: Workload) -> SequenceModule | None:
    """Build the model with an encoding, or return None if the encoding does not serve it."""
    extent = (work.size,) if work.kind == "lm" else (work.size // PATCH,) * 2
    try:
        build_encoding(name, EncodingSpec(work.width, work.heads, work.depth, extent, causal=work.kind == "lm"))
    except ValueError:
        return None
    if work.kind == "lm":
        shape = {"d_model": work.width, "num_layers": work.depth, "num_heads": work.heads}
        return LanguageModel(name, vocab_size=work.outputs, max_len=work.size, **shape)
    return ViT(
        name, image_size=work.size, patch_size=PATCH, d_model=work.width, num_layers=work.depth, num_heads=work.heads
    )


def measure_ratios(work: Workload, names: Sequence[str], rounds: int, device: torch.device) -> Iterator[Ratios]:
    """Time every encoding beside `none` just before and just after, and yield all ratios after each few of them."""
    data = tuple(tensor.to(device) for tensor in make_tensors(work, 4 * work.batch))
    ratios: Ratios = {}

    def seconds(name: str) -> float | None:
        module = make_model(name, work)
        return None if module is None else time_loop(work, module.to(device), data, device)

    for turn in range(rounds):
        order = random.Random(turn).sample(names, len(names))
        before = seconds("none") or 0.0
        for start in range(0, len(order), GROUP):
            times = {name: seconds(name) for name in order[start : start + GROUP]}
            after = seconds("none") or 0.0
            for name, time in times.items():
                found = ratios.setdefault(name, [])
                if time is not None:
                    found.append(2 * time / (before + after))
                report_progress(f"{work.kind}, {work.positions} positions, {name}: {median_cell(ratios, name)}")
            before = after
            yield ratios


def attention_kernel(name: str, work: Workload) -> str:
    """Return the name of the attention kernel that a step with an encoding takes on a CPU."""
    module, seen = make_model(name, work), []
    if module is None:
        return "-"

    def choose_and_note(q: Tensor, mask: Tensor | None) -> str:
        seen.append(fastest_kernel(q, mask) + (" with bias" if mask is not None else ""))
        return fastest_kernel(q, mask)

    with module.trunk.using_kernel(choose_and_note):
        module.loss(random_batch(work, make_tensors(work, work.batch), torch.device("cpu")))
    return " and ".join(sorted(set(seen)))


def attention_kernels(name: str) -> str:
    """Return the attention kernels of text and of images, or the one that both take."""
    small = [replace(workload(text, LENGTHS[0], quick=True), batch=2) for text in (True, False)]
    return "; ".join(dict.fromkeys(attention_kernel(name, work) for work in small))


def median_cell(ratios: Ratios, name: str) -> str:
    """Return the median of an encoding's ratios with the smallest and the largest."""
    if name not in ratios:
        return ""  # not measured yet
    values = ratios[name]
    if not values:
        return "does not serve"
    around = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{statistics.median(values):.2f}{around}"


def introduction(arguments: Sequence[str], rounds: int, device: torch.device) -> str:
    """Return the text above the table."""
    once = "one round; how far rows without work of their own lie from 1 is noise"
    repeated = f"median of {rounds} rounds (smallest to largest)" if rounds > 1 else once
    return (
        "# A training step with each encoding, beside one without\n\n"
        f"{circumstances('encoding_costs', arguments, device)}"
        f"Seconds of a step over those of `none` just before and after: {repeated}. 6 layers of width "
        f"384, 6 heads, {TOKENS} tokens in a batch; causal text, and square images. `pebench cite NAME` says where "
        "each is from.\n\n"
    )


def table(names: Sequence[str], columns: dict[str, Ratios], kernels: dict[str, str]) -> str:
    """Return the table of every encoding's ratios and attention kernel."""
    rows = []
    for name in names:
        cells = [median_cell(ratios, name) for ratios in columns.values()]
        rows.append([f"`{name}`", *cells, kernels[name]])
    head = ["Encoding", *columns, "attention on a CPU: text; images"]
    return tabulate(rows, head, tablefmt="pipe", disable_numparse=True) + "\n"


def bars(ratios: Ratios, rounds: int) -> str:
    """Return the encodings that have a bar, and whether they keep it."""
    lines = [f"\nThose with a bar, on text of {LENGTHS[-1]} tokens, in {rounds} rounds of their own:\n\n"]
    for name, found in ratios.items():
        kept = "kept" if statistics.median(found) <= BARS[name] else "not kept"
        lines.append(f"- `{name}`: {median_cell(ratios, name)}, bar {BARS[name]:.2f}: {kept}.\n")
    return "".join(lines)


def pages(
    arguments: Sequence[str], names: Sequence[str], rounds: int, device: torch.device, quick: bool
) -> Iterator[str]:
    """Yield the page each time that a few encodings more have been measured."""
    steps = 1 if quick else CUDA_STEPS if device.type == "cuda" else STEPS
    page = introduction(arguments, rounds, device)
    kernels = {name: attention_kernels(name) for name in names}
    columns: dict[str, Ratios] = {}
    for text in (True, False):
        for length in LENGTHS:
            work = replace(workload(text, length, quick), steps=steps)
            for ratios in measure_ratios(work, names, rounds, device):
                columns[f"{'text' if text else 'image'}, {length} tokens"] = ratios
                yield page + table(names, columns, kernels)
    page += table(names, columns, kernels)
    work = replace(workload(True, LENGTHS[-1], quick), steps=steps)
    barred = [name for name in BARS if name in names]
    for ratios in measure_ratios(work, barred, BAR_ROUNDS * rounds, device):
        in_order = {name: ratios[name] for name in barred if name in ratios}
        yield page + bars(in_order, BAR_ROUNDS * rounds)


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description="Time a training step with each encoding against one without.")
    parser.add_argument(
        "--rounds", type=int, default=1, help="of all encodings; those with a bar have five times as many"
    )
    everyone = sorted(set(encoding_cards()) - {"none"})
    parser.add_argument("--pe", action="append", choices=everyone, help="an encoding (repeatable); by default all")
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, help="Markdown file for the page")
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it works")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    names, device = options.pe or everyone, torch.device(options.device)
    return write_page(pages(arguments, names, options.rounds, device, options.quick), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
