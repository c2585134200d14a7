"""How much longer does a training step take with each encoding than with none?

The language model of `throughput.py` (W2) and an image classifier of its shape, at two lengths each with
as many tokens in a batch. Encodings take turns with `none` in random order, so that a busy machine slows
all of them alike. On a machine that does nothing else, run
    python benchmarks/studies/encoding_costs.py --threads 2 --output results/encoding_costs.md
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
from throughput import PATCH, Workload, circumstances, make_tensors, take, time_loop
from torch import Tensor

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
"""What a step at the larger length may cost beside `none`'s."""

BAR_ROUNDS = 5
"""How many times as often those are measured."""


def workload(text: bool, length: int, quick: bool) -> Workload:
    """Width, depth and heads of W2."""
    size, width, depth = length if text else round(length**0.5) * PATCH, 24 if quick else 384, 1 if quick else 6
    batch = 1 if quick else TOKENS // length
    return Workload("", "lm" if text else "image", depth, width, depth, batch, size, 65 if text else 10, 1)


def make(name: str, work: Workload) -> SequenceModule | None:
    """The model with an encoding; None if it does not serve it."""
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


def ratios(work: Workload, names: Sequence[str], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Time of a step beside that of `none` just before and just after, for every encoding and round."""
    data = tuple(tensor.to(device) for tensor in make_tensors(work, 4 * work.batch))
    found: dict[str, list[float]] = {name: [] for name in names}

    def seconds(name: str) -> float | None:
        module = make(name, work)
        return None if module is None else time_loop(work, module.to(device), data, device)

    for turn in range(rounds):
        order = random.Random(turn).sample(names, len(names))
        before = seconds("none") or 0.0
        for start in range(0, len(order), GROUP):
            times = {name: seconds(name) for name in order[start : start + GROUP]}
            after = seconds("none") or 0.0
            for name, time in times.items():
                if time is not None:
                    found[name].append(2 * time / (before + after))
            before = after
    return found


def kernel(name: str, work: Workload) -> str:
    """Which way of computing attention a step with an encoding takes."""
    module, seen = make(name, work), []
    if module is None:
        return "-"

    def watch(q: Tensor, mask: Tensor | None) -> str:
        seen.append(fastest_kernel(q, mask) + (" with bias" if mask is not None else ""))
        return fastest_kernel(q, mask)

    with module.trunk.using_kernel(watch):
        module.loss(take(work, make_tensors(work, work.batch), torch.device("cpu")))
    return " and ".join(sorted(set(seen)))


def cells(values: Sequence[float]) -> str:
    """Median, and from where to where."""
    if not values:
        return "does not serve"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{statistics.median(values):.2f}{spread}"


def page(
    arguments: Sequence[str], names: Sequence[str], rounds: int, device: torch.device, quick: bool
) -> Iterator[str]:
    """Parts of the page, as they are measured."""
    steps = 1 if quick else CUDA_STEPS if device.type == "cuda" else STEPS
    once = "one round; how far rows without work of their own lie from 1 is noise"
    told = f"median of {rounds} rounds (smallest to largest)" if rounds > 1 else once
    yield (
        "# A training step with each encoding, beside one without\n\n"
        f"{circumstances('encoding_costs.py', arguments, device)}"
        f"Seconds of a step over those of `none` just before and after: {told}. 6 layers of width "
        f"384, 6 heads, {TOKENS} tokens in a batch; causal text, and square images. `pebench cite NAME` says where "
        "each is from.\n\n"
    )
    columns = {}
    for text in (True, False):
        for length in LENGTHS:
            work = workload(text, length, quick)
            columns[f"{'text' if text else 'image'}, {length} tokens"] = ratios(
                replace(work, steps=steps), names, rounds, device
            )
    small = {text: replace(workload(text, LENGTHS[0], quick=True), batch=2) for text in (True, False)}
    kernels = {name: "; ".join(dict.fromkeys(kernel(name, work) for work in small.values())) for name in names}
    rows = [[f"`{name}`", *(cells(column[name]) for column in columns.values()), kernels[name]] for name in names]
    yield (
        tabulate(
            rows,
            headers=["Encoding", *columns, "attention on a CPU: text; images"],
            tablefmt="pipe",
            disable_numparse=True,
        )
        + "\n\n"
    )
    work = replace(workload(True, LENGTHS[-1], quick), steps=steps)
    yield f"Those with a bar, on text of {LENGTHS[-1]} tokens, in {BAR_ROUNDS * rounds} rounds of their own:\n\n"
    for name, found in ratios(work, [name for name in BARS if name in names], BAR_ROUNDS * rounds, device).items():
        kept = "kept" if statistics.median(found) <= BARS[name] else "not kept"
        yield f"- `{name}`: {cells(found)}, bar {BARS[name]:.2f}: {kept}.\n"


def main(arguments: Sequence[str]) -> None:
    """Measure, print the page and write it."""
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
    parts = []
    for part in page(arguments, options.pe or everyone, options.rounds, torch.device(options.device), options.quick):
        parts.append(part)
        print(part, end="", flush=True)
    if options.output:
        options.output.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
