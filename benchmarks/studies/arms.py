"""Arms of the study of throughput: each trains the same model on the same batches, in its own way."""

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import Dataset, TensorDataset

from pebench.benchmarks.studies.peers import PEERS
from pebench.benchmarks.studies.plain import PlainTransformer, make_module
from pebench.benchmarks.studies.throughput_tables import ARMS, BEST, HAND, MODULE, PEBENCH, PRODUCTS, TUNED
from pebench.benchmarks.studies.timing import make_step, time_loop, time_pebench, time_products
from pebench.benchmarks.studies.workloads import Workload, make_tensors
from pebench.data.batches import Windows

DTYPES = dict(zip(PRODUCTS, (torch.float32, torch.bfloat16), strict=True))


def make_arm(work: Workload, name: str, device: torch.device) -> Callable[[], float]:
    """Return a function that runs a block of an arm and returns its seconds per step."""
    if name in DTYPES:
        return lambda: time_products(work, DTYPES[name], device)
    tensors = make_tensors(work, min(45_000, work.batch * max(64, 2 * work.steps)))  # CIFAR-10 has 45,000
    if name == PEBENCH or name in TUNED:
        data: Dataset[Any] = Windows(tensors[0], work.size, 1) if work.kind == "lm" else TensorDataset(*tensors)
        settings, module = TUNED.get(name, {}), make_module(work)
        if settings.get("compile"):
            module.trunk.compile()  # as the runner does
        return lambda: time_pebench(work, module, data, device, settings.get("precision", "32-true"))
    make = PlainTransformer if name == HAND or name in BEST else {MODULE: make_module, **PEERS[work.kind]}[name]
    on_device, model = tuple(tensor.to(device) for tensor in tensors), make(work).to(device)
    how = BEST.get(name, {})
    return lambda: time_loop(make_step(work, model, on_device, device, **how), work.steps, device)


def arms(work: Workload, options: argparse.Namespace) -> dict[str, Callable[[], float]]:
    """Return every arm that the options select, by name, without peers that are not installed."""
    names = [*ARMS]
    if options.tuned:
        names += [*TUNED, *(name for name in BEST if options.device == "cuda" or "captured" not in BEST[name])]
        names += PRODUCTS
    if options.peers:
        names += PEERS[work.kind]
    found: dict[str, Callable[[], float]] = {}
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            found[name] = make_arm(work, name, torch.device(options.device))
    return found
