"""Runs of seconds that the tests of training share."""

from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from pebench.config import Options, RunConfig
from pebench.tasks import configure
from pebench.training.runner import train

EMBEDDED = ("vit-digits", "text-order", "lm-grammar")
UNLIKE = ("add", "concat", "learned", "none", "rope", "cpe", "concat-qk", "cope", "lie-re", "randomized", "swin-bias")
"""Encodings that differ in hooks, parameters and draws; concat-wide would have more channels to drop."""
LOGGED = {"train.max_steps": 12, "train.evaluations": 3}


def smoke(task: str = "vit-digits", encoding: str = "add", seed: int = 0, **settings: Any) -> RunConfig:
    """A run of seconds; ``max_steps=3`` stands for ``train.max_steps=3``."""
    return configure(task, encoding, seed, "smoke", {f"train.{name}": value for name, value in settings.items()})


def options(out: Path) -> Options:
    return Options(out, device="cpu", threads=1)


def outcome(config: RunConfig, out: Path) -> tuple[Any, ...]:
    """What must repeat."""
    record = train(config, options(out))
    return record.metrics, record.curve, record.parameters, record.flops_per_sample, record.dataset


def event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def scalars(folder: Path) -> list[tuple[str, Any]]:
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return [(tag, point) for tag in found.Tags()["scalars"] for point in found.Scalars(tag)]
