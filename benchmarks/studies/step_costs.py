"""The cost of a training step with one encoding: its time beside that of `none`, and its peak of memory."""

import contextlib
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from pebench.benchmarks.studies.timing import WARM_UP, make_step, now
from pebench.benchmarks.studies.workloads import PATCH, Tensors, Workload, make_tensors
from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.pairs import PairBias
from pebench.models import LanguageModel, ViT
from pebench.models.attention import fastest_kernel
from pebench.models.base import SequenceModule
from pebench.training import environment

ENOUGH = 10.0
"""Seconds of timed steps after which no further pair is begun."""

UNSERVED = "does not serve"


@dataclass(frozen=True)
class Question:
    """An encoding in a model, to be measured.

    Args:
        name: The encoding.
        work: The model, its batch, and the number of timed pairs of steps.
        device: ``"cpu"`` or ``"cuda"``.
        threads: CPU threads.
        gib: Memory in GiB that the model may take beyond its process, on a CPU with Linux.
        flex: Have biases of long texts go through FlexAttention where they can.
    """

    name: str
    work: Workload
    device: str
    threads: int
    gib: float
    flex: bool = False

    def kernel(self, q: Tensor, bias: Tensor | PairBias | None) -> str:
        """Return the attention kernel for queries and a mask, or a bias of pairs."""
        by_pair = self.flex and isinstance(bias, PairBias) and bias.score() is not None
        return "flex" if by_pair else fastest_kernel(q, bias)


@dataclass(frozen=True)
class StepCost:
    """Cost of a step, or the reason why there is none.

    Args:
        time: Seconds of a step over those of one with `none`, in turns.
        gib: Peak of memory in GiB beyond the process and its imports.
        kernel: Attention kernel, and whether it was given a bias.
        why: Reason why nothing was measured; empty where it was.
    """

    time: float = 0.0
    gib: float = 0.0
    kernel: str = ""
    why: str = ""


def step_cost(question: Question) -> StepCost:
    """Measure the cost of a step, in a process of its own on a CPU."""
    torch.set_num_threads(question.threads)
    device, work = torch.device(question.device), question.work
    _step_tiny(device)  # what the first step of a process loads is not the model's
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        _limit_memory(question.gib)
    before = environment.peak_memory_gib(device) or 0.0
    if (module := make_model(question.name, work)) is None:
        return StepCost(why=UNSERVED)
    try:
        kernel, gib, time = _measure(module, question, device)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "allocate memory" not in str(error):
            raise
        return StepCost(why=f"more than {question.gib:g} GiB")
    return StepCost(time, max(0.0, gib - before), kernel)


def _measure(module: SequenceModule, question: Question, device: torch.device) -> tuple[str, float, float]:
    """Return the attention kernel, the peak of memory in GiB, and the time of a step over that of `none`."""
    work = question.work
    data = tuple(tensor.to(device) for tensor in make_tensors(work, 4 * work.batch))
    step, seen = make_step(work, module.to(device), data, device), set[str]()

    def choose_and_note(q: Tensor, mask: Tensor | PairBias | None) -> str:
        kernel = question.kernel(q, mask)
        seen.add(kernel + (" with bias" if mask is not None else ""))
        return kernel

    with module.trunk.using_kernel(choose_and_note):
        for _ in range(WARM_UP):  # the second has the optimizer's state beside it
            step()
        gib = environment.peak_memory_gib(device) or 0.0
        return " and ".join(sorted(seen)), gib, _time(step, work, data, device)


def _time(step: Callable[[], None], work: Workload, data: Tensors, device: torch.device) -> float:
    """Return the seconds of some steps over those of as many with `none`, in turns with them."""
    none = make_model("none", work)
    assert none is not None
    steps, seconds = (step, make_step(work, none.to(device), data, device)), [0.0, 0.0]
    for _ in range(WARM_UP):
        steps[1]()
    for _ in range(work.steps):
        for place, one in enumerate(steps):
            start = now(device)
            one()
            seconds[place] += now(device) - start
        if sum(seconds) > ENOUGH:
            break
    return seconds[0] / seconds[1]


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


def _step_tiny(device: torch.device) -> None:
    work = Workload("", "lm", depth=1, width=32, heads=1, batch=2, size=16, outputs=65, steps=1)
    module, data = make_model("none", work), make_tensors(work, 8)
    assert module is not None
    make_step(work, module.to(device), tuple(tensor.to(device) for tensor in data), device)()


def _limit_memory(gib: float) -> None:
    """Let allocations of more than this fail, so that no other program is ended for lack of memory."""
    with contextlib.suppress(OSError):  # Linux alone counts data so
        data = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
        most = int(data.split()[1]) * 2**10 + int(gib * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
