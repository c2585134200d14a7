"""The pace of this machine, measured by a few training steps, and what runs take by it before anything is recorded."""

import contextlib
import ctypes
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pebench.config import RunConfig
from pebench.engine.execution import Execution, cores, runs_at_a_time
from pebench.formatting import counted, duration_text
from pebench.runs.costs import Cost, check_costs
from pebench.tasks import configure, find_task

LONG_S = 4 * 3600.0
"""Time above which runs are announced before they start, in seconds."""

LONG_FLOPS = 1e14
"""Operations below which no machine of today takes that long."""

MEASURED_S = 1.0
"""Time that a measurement takes, in seconds."""

STEP_FLOPS = 5e9
"""Operations of a step that is measured on processors, about; a larger batch would only take longer."""


def operations(runs: Iterable[RunConfig], costs: Mapping[str, Cost]) -> float:
    """Return the floating-point operations of the training steps of runs, those of encodings' hooks left out.

    Hooks are counted one encoding at a time, which takes seconds for many encodings, and are a small part of a step.

    Args:
        runs: The runs.
        costs: The cost of each kind of them, by `RunConfig.kind_key`.
    """
    examples = ((config.train.max_steps * config.train.batch_size, costs[config.kind_key]) for config in runs)
    return float(sum(number * cost.layers() for number, cost in examples))


def operations_per_second(
    config: RunConfig, device: str, threads: int, seconds: float = MEASURED_S, half: bool = False
) -> float:
    """Measure how many operations a second this machine makes while it trains a run's model; loads torch.

    Args:
        config: The run; its model's blocks are trained on noise.
        device: ``cpu`` or ``cuda``.
        threads: Threads that the run has on processors.
        seconds: Time that a measurement takes, unless one step takes longer.
        half: True for products in bfloat16, as in the precision bf16-mixed.
    """
    import torch

    from pebench.encodings.base import EncodingSpec
    from pebench.encodings.build import build_encoding
    from pebench.models.counting import count_flops
    from pebench.models.transformer import Transformer

    task, sizes = find_task(config.task), config.model
    extent = task.extent(config.data)
    spec = EncodingSpec(sizes.d_model, sizes.num_heads, sizes.num_layers, extent, task.causal)
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), _threads(threads):
        model = Transformer(build_encoding("add", spec), sizes.d_ff).to(device)
        shape = (1, math.prod(extent), model.encoding.content_width)
        content = torch.randn(shape, dtype=torch.float32, device=device)
        with model.using_kernel("matmul"):  # the counter cannot look into the fused kernel
            one = count_flops(lambda: model(content).sum())
        examples = config.train.batch_size
        if device == "cpu":
            examples = max(1, min(examples, int(STEP_FLOPS / one)))
        content = content.expand(examples, -1, -1).contiguous()
        with torch.autocast(device, torch.bfloat16, enabled=half):
            model(content).sum().backward()  # a warm-up
            start, steps = time.monotonic(), 0
            while not steps or time.monotonic() - start < seconds:
                model(content).sum().backward()
                steps += 1
                if device == "cuda":
                    torch.cuda.synchronize()
        return one * examples * steps / (time.monotonic() - start)


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    """Have PyTorch use so many threads within the context."""
    import torch

    usual = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def has_cuda_driver() -> bool:
    """Return True if this machine has NVIDIA's driver, without which CUDA has no device; does not load torch."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def device_here(device: str = "auto") -> str:
    """Return the device that runs of this machine take, ``cpu`` or ``cuda``; loads torch."""
    import torch

    return "cuda" if device in ("auto", "cuda") and torch.cuda.is_available() else "cpu"


def expected_seconds(runs: Sequence[RunConfig], costs: Mapping[str, Cost], how: Execution) -> float:
    """Return about how long the training of runs takes on this machine, by a step of each task's largest model.

    The optimizer, validation and the start of a run are left out, which count for little where training is long.

    Args:
        runs: The runs to make, on this machine.
        costs: The cost of each kind of them.
        how: How they are made: as many at a time, each with its part of the processors.
    """
    device, at_a_time = device_here(how.device), runs_at_a_time(len(runs), how)
    threads = how.worker_options(at_a_time).threads or cores()
    tasks: dict[str, list[RunConfig]] = {}
    for config in runs:
        tasks.setdefault(config.task, []).append(config)
    seconds = 0.0
    for same in tasks.values():
        largest = max(same, key=lambda config: (config.model.d_model, config.model.num_layers))
        pace = operations_per_second(largest, device, threads) * how.devices
        seconds += operations(same, costs) / (pace * at_a_time)
    return seconds


def long_wait(runs: Sequence[RunConfig], costs: Mapping[str, Cost], how: Execution) -> str:
    """Return a warning that runs take very long on this machine, and what to do instead; empty if they do not.

    Args:
        runs: The runs to make, on this machine.
        costs: The cost of each kind of them.
        how: How they are made.
    """
    found = operations(runs, costs)
    if found < LONG_FLOPS:
        return ""
    here = device_here(how.device)
    seconds = expected_seconds(runs, costs, how)
    if seconds < LONG_S:
        return ""
    ways = [f"--tier {tier} (about {duration_text(shorter)})" for tier, shorter in _shorter(runs, seconds, found)]
    ways += ["a GPU"] if here == "cpu" else []
    ways += ["fewer seeds, encodings or tasks"]
    return (
        f"{counted(len(runs), 'run')}: about {duration_text(seconds)} here, on {here}, going by a step that was just "
        f"measured. Shorter: {', or '.join(ways)}. Ctrl-C stops at any time; the same command goes on."
    )


def _shorter(runs: Sequence[RunConfig], seconds: float, found: float) -> list[tuple[str, float]]:
    """Return the lower tiers that all tasks of the runs have, with the seconds that each takes, the largest first."""
    tasks = {config.task: find_task(config.task) for config in runs}
    pace, tiers = seconds / found, list[tuple[str, float]]()
    common = [tier for tier in next(iter(tasks.values())).budgets if all(tier in t.budgets for t in tasks.values())]
    for tier in reversed(common):
        kinds = {name: configure(name, "add", 0, tier) for name in tasks}
        costs = check_costs(kinds.values())
        shorter = pace * operations([kinds[config.task] for config in runs], costs)
        if shorter < seconds / 2 and tier != "smoke":  # which learns nothing
            tiers.append((tier, shorter))
    return tiers
