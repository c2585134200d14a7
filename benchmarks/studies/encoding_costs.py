"""Measure what a training step with each encoding takes beside one with none: time and memory, at several lengths.

A small language model on 256, 1,024 and 4,096 tokens and a small image classifier on 256 and 1,024 patches. On a CPU
each encoding has a process of its own, whose peak of memory is that of its steps; then its steps and those of `none`
take turns, so that a busy machine slows both alike. What is known is written after each: --minutes, or Ctrl-C, ends it
early without loss, and --go-on begins with what the last call has found on this machine. With --output the figures
stand beside the page, as JSON, from which the scorecard takes them. On a machine that does nothing else, run
    python -m benchmarks.studies.encoding_costs --threads 2 --minutes 60 --output results/studies/encoding_costs.md
and for an encoding of your own
    python -m benchmarks.studies.encoding_costs --pe my_module:MyEncoding --output runs/studies/encoding_costs.md
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from pebench.benchmarks.studies import step_costs
from pebench.benchmarks.studies.pages import Page, circumstances, report_progress, write_page
from pebench.benchmarks.studies.processes import in_fresh_process
from pebench.benchmarks.studies.step_costs import Question, StepCost, step_cost
from pebench.benchmarks.studies.workloads import PATCH, Workload
from pebench.encodings.registry import encoding_card, encoding_cards
from pebench.errors import UserError
from pebench.training.environment import device_text

TOKENS = 2048  # in a batch, or one text where that is longer
LENGTHS = {"text": (256, 1024, 4096), "image": (256, 1024)}
LONG = 1024  # tokens beyond which the model has one layer
STEPS, CUDA_STEPS = 2, 20  # with an encoding, each beside one with `none`
BARS = dict.fromkeys(("rope", "add", "learned", "concat"), 1.05) | dict.fromkeys(("alibi", "sandwich"), 1.25)
"""The largest ratio of a step on text of the first length to one of `none` that is accepted."""

BAR_ROUNDS = 5
"""Rounds there of those with a bar for each round of all."""

Found = dict[str, list[StepCost]]
"""Costs of an encoding in each round."""


@dataclass(frozen=True)
class Column:
    """A model at one length, and what was measured in it.

    Args:
        kind: ``text`` or ``image``.
        tokens: Number of tokens, or of patches.
        work: The model and its batch.
        found: Costs by encoding and round.
    """

    kind: str
    tokens: int
    work: Workload
    found: Found = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its heading."""
        return f"{self.kind}, {self.tokens:,} {'tokens' if self.kind == 'text' else 'patches'}"

    def why(self, name: str) -> str:
        """Return the reason why an encoding has no cost here; empty if it has one or was not measured yet."""
        return next((cost.why for cost in self.found.get(name, ()) if cost.why), "")

    def times(self, name: str) -> list[float]:
        """Return the time of a step over that of `none`, by round."""
        return [cost.time for cost in self.found.get(name, ()) if not cost.why]

    def memories(self, name: str) -> list[float]:
        """Return the memory of a step over the median of that with `none`, by round."""
        none = statistics.median([cost.gib for cost in self.found.get("none", ())] or [0.0])
        return [cost.gib / none for cost in self.found.get(name, ()) if none and not cost.why]


def columns(quick: bool, steps: int) -> list[Column]:
    """Return the models, tiny ones and a sixteenth of the lengths with `quick`."""
    found = []
    for kind, lengths in LENGTHS.items():
        for length in lengths:
            tokens, text = length // 16 if quick else length, kind == "text"
            size = tokens if text else round(tokens**0.5) * PATCH
            depth, width, heads = (1, 24, 1) if quick else (1 if tokens > LONG else 2, 256, 4)
            batch = 1 if quick else max(1, TOKENS // tokens)
            name, outputs = ("lm", 65) if text else ("image", 10)
            found.append(Column(kind, tokens, Workload("", name, depth, width, heads, batch, size, outputs, steps)))
    return found


def measure(options: argparse.Namespace, names: Sequence[str], found: Sequence[Column]) -> Iterator[None]:
    """Measure every encoding in every column, and yield after each, until no round or no time is left."""
    until = time.monotonic() + 60 * options.minutes
    threads = options.threads or torch.get_num_threads()
    for turn in range(options.rounds):
        for column in found:
            if column.kind != (options.kind or column.kind) or (options.tokens and column.tokens not in options.tokens):
                continue
            left = [name for name in names for _ in range(rounds_left(name, turn, column, column is found[0]))]
            order = random.Random(turn).sample(left, len(left))
            # the ratio of memory needs that of `none`
            for name in ["none"] * rounds_left("none", turn, column, first=False) + order:
                if time.monotonic() > until:
                    report_progress(f"{options.minutes:g} minutes are over: ended in round {turn + 1}, {column.title}")
                    return
                if column.why(name):  # it would be the same
                    continue
                question = Question(name, column.work, options.device, threads, options.gib, options.flex)
                column.found.setdefault(name, []).append(_cost(question))
                shown = median_cell(column.times(name), column.why(name))
                memory = median_cell(column.memories(name), column.why(name))
                report_progress(f"round {turn + 1}, {column.title}, {name}: time {shown}, memory {memory}")
                yield


def rounds_left(name: str, turn: int, column: Column, first: bool) -> int:
    """Return how often an encoding is to be measured until it has all rounds up to a turn.

    Args:
        name: The encoding.
        turn: Number of the round, from 0.
        column: The model.
        first: True for the column in which some encodings have a bar.
    """
    wanted = (turn + 1) * (BAR_ROUNDS if first and name in BARS else 1)
    return max(0, wanted - len(column.found.get(name, ())))


def remember(output: Path, found: Sequence[Column], device: torch.device) -> None:
    """Fill columns with what an earlier call has found.

    Args:
        output: Page of that call, beside which its figures stand.
        found: The columns.
        device: The device, which must be the same.

    Raises:
        SystemExit: If it was another device.
    """
    earlier = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    if earlier["machine"] != device_text(device):
        raise SystemExit(f"{output} was measured on {earlier['machine']}, this is {device_text(device)}.")
    for name, kinds in earlier["costs"].items():
        for column in found:
            if cell := kinds.get(column.kind, {}).get(str(column.tokens)):
                rounds = cell.get("rounds") or [{"why": cell["why"]}]
                column.found[name] = [StepCost(**values) for values in rounds]


def _cost(question: Question) -> StepCost:
    """Measure one encoding; on a CPU in a process of its own, which the system may end for lack of memory."""
    if question.device != "cpu":
        return step_cost(question)
    try:
        return in_fresh_process(step_cost, question, step_costs.__name__)
    except BrokenProcessPool:
        return StepCost(why="its process died")


def median_cell(ratios: Sequence[float], why: str) -> str:
    """Return the median of ratios with the smallest and the largest, or why there are none."""
    if not ratios:
        return why
    around = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{statistics.median(ratios):.2f}{around}"


def tables(names: Sequence[str], found: Sequence[Column]) -> str:
    """Return the tables of time and of memory."""
    heads = ["Encoding", *(column.title for column in found)]
    times, memories = [], []
    for name in names:
        whys = [column.why(name) for column in found]
        cells = [median_cell(column.times(name), why) for column, why in zip(found, whys, strict=True)]
        times.append([f"`{name}`", *cells, kernels(name, found)])
        cells = [median_cell(column.memories(name), why) for column, why in zip(found, whys, strict=True)]
        memories.append([f"`{name}`", *cells])
    shown = {"tablefmt": "pipe", "disable_numparse": True}
    return (
        f"## Time\n\n{tabulate(times, [*heads, 'attention: text; images'], **shown)}\n\n"
        f"## Memory\n\n{tabulate(memories, heads, **shown)}\n"
    )


def kernels(name: str, found: Sequence[Column]) -> str:
    """Return the attention kernels of text and of images, or the one that both take."""
    seen = {
        column.kind: next((cost.kernel for cost in column.found.get(name, ()) if cost.kernel), "-")
        for column in reversed(found)  # the shortest last, as the longest may take too much memory
    }
    return "; ".join(dict.fromkeys(seen[kind] for kind in LENGTHS))


def bars(names: Sequence[str], column: Column) -> str:
    """Return the encodings that have a bar, and whether they keep it."""
    lines = [f"\nThose with a bar on the time, {column.title}, with {BAR_ROUNDS} measurements in each round:\n\n"]
    for name in BARS:
        if name in names and (times := column.times(name)):
            kept = "kept" if statistics.median(times) <= BARS[name] else "not kept"
            lines.append(f"- `{name}`: {median_cell(times, '')}, bar {BARS[name]:.2f}: {kept}.\n")
    return "".join(lines) if len(lines) > 1 else ""


def introduction(arguments: Sequence[str], options: argparse.Namespace, found: Sequence[Column]) -> str:
    """Return the text above the tables."""
    models = {column.work.depth: column.work for column in found}
    layers = " and ".join(f"{depth} layer{'s' * (depth > 1)}" for depth in sorted(models, reverse=True))
    work = found[0].work
    return (
        "# A training step with each encoding, beside one without\n\n"
        f"{circumstances('encoding_costs', arguments, torch.device(options.device), options.threads)}"
        f"A step over one of `none`: seconds of {work.steps} steps of each, in turns, and the peak of memory beyond "
        "the process and its imports. The median where there are several rounds, with the smallest and the largest; "
        "with one round, how far rows without work of their own lie from 1 is noise. Models of "
        f"{layers} (one beyond {LONG:,} tokens), width {work.width}, {work.heads} heads, {TOKENS:,} tokens in a batch, "
        "or one text where that is longer; causal text, and square images. In a deeper model a change of the input "
        "weighs less, and one of every layer the same. `pebench cite NAME` says where each is from.\n\n"
    )


def figures(names: Sequence[str], found: Sequence[Column], options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures, as `pebench.results.scorecard.costs` reads them."""
    costs: dict[str, Any] = {}
    for name in names:
        for column in found:
            cell: dict[str, Any] = {}
            if why := column.why(name):
                cell = {"why": why}
            elif (times := column.times(name)) and (memories := column.memories(name)):
                cell = {"time": statistics.median(times), "memory": statistics.median(memories)}
                cell["rounds"] = [
                    {"time": cost.time, "gib": cost.gib, "kernel": cost.kernel} for cost in column.found[name]
                ]
            if cell:
                costs.setdefault(name, {}).setdefault(column.kind, {})[str(column.tokens)] = cell
    return {"device": options.device, "machine": device_text(torch.device(options.device)), "costs": costs}


def pages(arguments: Sequence[str], options: argparse.Namespace) -> Iterator[Page]:
    """Yield the page and its figures each time that an encoding more has been measured."""
    names = sorted(options.pe or {*encoding_cards()} - {"none"})
    found = columns(options.quick, 1 if options.quick else STEPS if options.device == "cpu" else CUDA_STEPS)
    if options.go_on:
        remember(options.output, found, torch.device(options.device))
    top = introduction(arguments, options, found)
    known = {name for column in found for name in column.found} - {"none"}
    shown = sorted({*names, *known})  # what other encodings cost is not lost
    for _ in measure(options, names, found):
        yield Page(top + tables(shown, found) + bars(shown, found[0]), figures(["none", *shown], found, options))


def encoding(name: str) -> str:
    """Return the name of an encoding, registered or a user's own; refuse others, and ``none``, which is beside each."""
    try:
        encoding_card(name)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if name == "none":
        raise argparse.ArgumentTypeError("every encoding is measured beside none; name others.")
    return name


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description="Measure a training step with each encoding against one without.")
    parser.add_argument(
        "--rounds", type=int, default=1, help="of all encodings; those with a bar have five times as many"
    )
    parser.add_argument("--kind", choices=LENGTHS, help="texts or images alone; by default both")
    parser.add_argument("--tokens", type=int, action="append", help="tokens or patches (repeatable); by default all")
    parser.add_argument("--go-on", action="store_true", help="begin with the figures that stand beside --output")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after so many minutes")
    parser.add_argument(
        "--pe", action="append", type=encoding, metavar="NAME", help="an encoding (repeatable); by default all of ours"
    )
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument(
        "--gib", type=float, default=8.0, help="memory that a model may take on a CPU; by default 8 GiB"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--flex", action="store_true", help="biases of long texts through FlexAttention, on CUDA")
    parser.add_argument("--output", type=Path, help="Markdown file for the page; its figures are written beside it")
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it works")
    options = parser.parse_args(arguments)
    if options.go_on and not (options.output and options.output.with_suffix(".json").is_file()):
        parser.error("--go-on needs the --output of an earlier call, with its figures beside it")
    return write_page(pages(arguments, options), options.output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
