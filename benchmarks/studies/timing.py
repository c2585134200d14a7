"""Seconds of a training step: in a hand-written loop, under pebench's Trainer, and of its matrix products alone."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from pebench.benchmarks.studies.workloads import Tensors, Workload, random_batch
from pebench.config import Options, RunConfig, TrainConfig
from pebench.data.base import loader
from pebench.data.batches import Batches
from pebench.models.base import SequenceModule
from pebench.tasks import find_task
from pebench.training.callbacks import Curve, FiniteLoss, StepSeed
from pebench.training.stopwatch import Stopwatch
from pebench.training.tensorboard import RunLogger
from pebench.training.trainer import best_checkpoint, make_trainer

from lightning.pytorch import Callback, LightningModule, Trainer  # isort: skip  # after pebench, which guards it

WARM_UP = 2  # steps at the start of a block that are not timed
RUN_STEPS = 1000  # of the run that a block begins: long enough to log every 50 steps, as real runs do
TASKS = {"image": "vit-cifar10", "text": "text-imdb", "lm": "lm-shakespeare"}


def now(device: torch.device) -> float:
    """Return the time once the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def time_loop(step: Callable[[], None], steps: int, device: torch.device) -> float:
    """Return seconds per step of a hand-written loop.

    Args:
        step: Makes a step, as that of `make_step` does.
        steps: How many steps are timed.
        device: The device of the step.
    """
    start = 0.0
    for number in range(WARM_UP + steps):
        if number == WARM_UP:
            start = now(device)
        step()
    return (now(device) - start) / steps


def make_step(
    work: Workload,
    model: nn.Module,
    data: Tensors,
    device: torch.device,
    *,
    compiled: bool = False,
    half: bool = False,
    captured: bool = False,
) -> Callable[[], None]:
    """Return a function that makes a step of a hand-written loop, with all data on the device.

    Args:
        work: Batch size.
        model: Model with a method `loss` of a batch.
        data: Tensors of `make_tensors`.
        device: Device of model and data.
        compiled: Compile the loss.
        half: Take the loss under bfloat16 autocast.
        captured: Capture the step as one CUDA graph, and replay it.
    """
    optimizer = make_optimizer(model, captured)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
    take_loss = torch.compile(model.loss) if compiled else model.loss

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            loss = take_loss(random_batch(work, data, device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    replay = capture(step) if captured else step

    def scheduled() -> None:
        replay()
        scheduler.step()

    return scheduled


def make_optimizer(model: nn.Module, captured: bool) -> torch.optim.Optimizer:
    """Return the optimizer of every hand-written loop: AdamW, without decay of vectors.

    Args:
        model: Model of the loop.
        captured: The step will be captured, so that the rate must be a tensor that the graph reads.
    """
    decay = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    keep = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": keep, "weight_decay": 0.0}]
    rate = torch.tensor(1e-3, device=decay[0].device) if captured else 1e-3
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True, capturable=captured)


def capture(step: Callable[[], None]) -> Callable[[], None]:
    """Return a function that replays a step which was captured as one CUDA graph.

    Args:
        step: The step. It is called a few times on a stream of its own before it is captured, as CUDA asks for.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP + 1):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def time_products(work: Workload, dtype: torch.dtype, device: torch.device) -> float:
    """Return the seconds that the matrix products of a step's linear layers take by themselves, forward and backward.

    Left out: attention, what lies between the layers, and the first and the last layer.
    """
    tokens = work.batch * work.positions
    shapes = [(work.width, wide * work.width) for wide in (3, 1, 4)] + [(4 * work.width, work.width)]

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=dtype, device=device)

    operands = [(random(tokens, i), random(i, o), random(tokens, o)) for i, o in shapes]

    def step() -> None:
        for inputs, weight, gradient in operands * work.depth:
            _ = inputs @ weight, gradient @ weight.T, inputs.T @ gradient

    step()
    start = now(device)
    for _ in range(work.steps):
        step()
    return (now(device) - start) / work.steps


class Clock(Callback):
    """Times the steps of a fit after its warm-up, then stops it."""

    def __init__(self, steps: int) -> None:
        self.steps, self.started, self.seconds = steps, 0.0, 0.0

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return True for the two steps at which it is read."""
        return step in (WARM_UP, WARM_UP + self.steps)

    def on_train_batch_end(self, trainer: Trainer, module: LightningModule, *_: Any) -> None:
        """Start and stop; other steps are left alone."""
        if trainer.global_step == WARM_UP:
            self.started = now(module.device)
        elif trainer.global_step == WARM_UP + self.steps:
            self.seconds = now(module.device) - self.started
            trainer.should_stop = True


def time_pebench(
    work: Workload, module: SequenceModule, data: Dataset[Any], device: torch.device, precision: str = "32-true"
) -> float:
    """Return seconds per step of a fit as `pebench.training.runner` makes it: its Trainer, callbacks and logger."""
    steps = max(RUN_STEPS, WARM_UP + work.steps)
    train = TrainConfig(max_steps=steps, batch_size=work.batch, evaluations=1, precision=precision)
    config = RunConfig(TASKS[work.kind], "add", train=train)
    clock = Clock(work.steps)
    batches = Batches(len(data), work.batch, seed=0)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as name:
        best, curve = best_checkpoint(find_task(config.task), config, Path(name)), Curve(lambda step, metrics: None)
        callbacks = [StepSeed(0), FiniteLoss(), curve, Stopwatch(), best, clock]
        trainer = make_trainer(config, Options(Path(name), device=device.type), [RunLogger(Path(name))], callbacks)
        validation = DataLoader(data, sampler=[torch.arange(work.batch)], batch_size=None)
        try:
            trainer.fit(module, loader(data, batches, device.type == "cuda"), validation)
        except SystemExit as error:  # which is what Lightning makes of Ctrl-C
            raise KeyboardInterrupt from error
    return clock.seconds / work.steps
