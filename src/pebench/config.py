"""What a run is: frozen, typed settings. Nothing here imports torch."""

import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pebench.errors import UserError, unknown_name
from pebench.formatting import format_encoding

PROTOCOL_VERSION = "0.2"
"""Rules under which records are comparable. A changed default, split, metric or trunk raises it."""

CORE_ENCODINGS = ("add", "concat", "learned", "none", "rope")
"""The five rows every comparison starts from."""

REFERENCE_ENCODING = "add"
"""The row that paired differences are taken to."""

PRECISIONS = ("32-true", "bf16-mixed", "bf16-true", "16-mixed", "64-true")
"""Lightning's names of what a run may compute in."""

REGIMES = ("width", "parameters", "FLOPs")
"""What is equal between the rows of a table: the trunk, the number of parameters, or the cost of a training step."""

SELECTION_SEED = 1_000_000
"""First seed of the runs that select settings; the tested ones have others."""

MONITORS = ("loss", "metric")
"""What chooses weights and settings on validation data: the lowest loss, or the best of the task's headline metric."""

STAGES = ("test", "select")
"""What a run is for: to be tested, or to choose a setting by its validation metrics; that one is never tested."""

TIERS = ("smoke", "quick", "core", "full")
"""Budgets, from two steps to a modern GPU's."""


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the trunk.

    Args:
        d_model: Width of the residual stream.
        num_layers: Number of blocks; with none a classifier is a bag of embeddings.
        num_heads: Attention heads; must divide ``d_model``.
        d_ff: Width of the feed-forward layer; ``None`` means ``4 * d_model``.
        dropout: Probability of dropping a channel, after the input and in each residual branch. After the input that is
            position too where it is written there, and not where attention is told it.
    """

    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    d_ff: int | None = None
    dropout: float = 0.0


@dataclass(frozen=True)
class DataConfig:
    """How data becomes tokens. A field that a task leaves at ``None`` does not apply to it.

    Args:
        max_len: Longest text in tokens (longer ones are cut), or an LM's context.
        vocab_size: Vocabulary, special tokens included.
        patch_size: Side of a square image patch in pixels.
    """

    max_len: int | None = None
    vocab_size: int | None = None
    patch_size: int | None = None


@dataclass(frozen=True)
class TrainConfig:
    """Budget and optimizer (AdamW, linear warm-up, cosine decay to a tenth).

    Args:
        max_steps: Optimizer steps.
        batch_size: Sequences or images in a step.
        learning_rate: Peak learning rate.
        weight_decay: Decoupled decay of weight matrices; norms, biases and all of an encoding have none.
        warmup: Share of ``max_steps`` spent warming up.
        clip: Largest gradient norm.
        evaluations: Validation is measured every ``max_steps // evaluations`` steps, and at the last step: more often
            than asked for where that does not divide, and at most once a step. The best one chooses the weights tested.
        monitor: One of `MONITORS`, by which that one is best.
        precision: A Lightning precision, one of `PRECISIONS`.
        compile: Whether ``torch.compile`` makes one kernel of many; it takes about a minute first.
    """

    max_steps: int = 1000
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup: float = 0.1
    clip: float = 1.0
    evaluations: int = 5
    precision: str = "32-true"
    compile: bool = False
    monitor: str = "loss"


@dataclass(frozen=True)
class RunConfig:
    """One encoding, one task, one seed: everything that decides a run's outcome and what it compares to.

    Args:
        task: Name of the task.
        encoding: Name of the encoding.
        seed: Of data order, initial parameters, augmentation and dropout.
        tier: Of the task's budgets, the one that the settings start from.
        encoding_args: Options of the encoding that are not their defaults.
        model: Shape of the trunk.
        data: How data becomes tokens.
        train: Budget and optimizer.
        regime: One of `REGIMES`; ``model.d_ff`` may differ between rows to reach it.
        selected: Settings whose values were chosen on validation data, so that they may differ between rows.
        stage: One of `STAGES`.
    """

    task: str
    encoding: str
    seed: int = 0
    tier: str = "core"
    encoding_args: Mapping[str, Any] = field(default_factory=dict)
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    regime: str = "width"
    selected: tuple[str, ...] = ()
    stage: str = "test"

    def __post_init__(self) -> None:
        check(self)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain JSON values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {name: dict(vars(values[name])) for name in ("model", "data", "train")}
        return values | parts | {"encoding_args": dict(self.encoding_args), "selected": list(self.selected)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "RunConfig":
        """The configuration that `to_dict` wrote."""
        return RunConfig(
            **{
                **values,
                "model": ModelConfig(**values["model"]),
                "data": DataConfig(**values["data"]),
                "train": TrainConfig(**values["train"]),
                "selected": tuple(values.get("selected", ())),
            }
        )

    def values_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Settings by their dotted names."""
        return {name: getattr(getattr(self, part), leaf) for name in names for part, leaf in [name.split(".")]}

    @property
    def selected_values(self) -> dict[str, Any]:
        """What was chosen for this encoding, or is tried for it, by dotted name."""
        return self.values_of(self.selected)

    @functools.cached_property
    def kind_key(self) -> str:
        """Twelve hex digits that name this configuration, but for the seed, under this protocol."""
        values = {"protocol": PROTOCOL_VERSION} | self.to_dict()
        del values["seed"]
        for name, usual in (("compile", False), ("monitor", "loss")):
            if values["train"][name] == usual:
                del values["train"][name]  # keys are as they were before there was this setting
        return _digest(json.dumps(values, sort_keys=True, separators=(",", ":")))

    @functools.cached_property
    def key(self) -> str:
        """Twelve hex digits that name this configuration under this protocol."""
        return _digest(f"{self.kind_key}/{self.seed}")

    @functools.cached_property
    def label(self) -> str:
        """The encoding as tables name it: ``concat``, or ``concat (d_p=16)``."""
        return format_encoding(self.encoding, dict(sorted(self.encoding_args.items())))

    def with_seed(self, seed: int) -> "RunConfig":
        """The same kind of run with another seed; quick, as a plan may have very many."""
        check_seed(seed)
        other = object.__new__(RunConfig)
        # what is checked and hashed is not done again
        other.__dict__.update(vars(self), seed=seed, kind_key=self.kind_key)
        other.__dict__.pop("key", None)
        return other

    @property
    def directory(self) -> str:
        """Where its record lies under the output folder: task/encoding/seed-key."""
        encoding = self.encoding.replace(":", ".")  # of module:Class; not all systems and shells take it
        return f"{self.task}/{encoding}/{'select-' * (self.stage == 'select')}seed{self.seed}-{self.key}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Options:
    """How runs are made, which decides nothing about their outcome.

    Args:
        out: Output folder.
        data_dir: Local folder that stands in for downloads.
        device: A Lightning accelerator: ``cpu``, ``cuda``, or ``auto`` of these.
        threads: CPU threads of a run; ``None`` leaves PyTorch's choice.
        time_limit_s: Wall-clock time after which a run is ended and counted as failed, in seconds.
        devices: Devices (or processes, on CPUs) of one run, which share its batches by Lightning's DDP.
        folders: To search for modules of encodings, too.
        modules: That register encodings.
    """

    out: Path
    data_dir: Path | None = None
    device: str = "auto"
    threads: int | None = None
    time_limit_s: float | None = None
    devices: int = 1
    folders: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def check(config: RunConfig) -> None:
    """Find what cannot work before anything trains.

    Raises:
        UserError: With the setting, what was expected and what was got.
    """
    model, train = config.model, config.train
    positive = {
        "model.d_model": model.d_model, "model.num_heads": model.num_heads,
        "model.d_ff": model.d_ff, "train.max_steps": train.max_steps, "train.batch_size": train.batch_size,
        "train.learning_rate": train.learning_rate, "train.evaluations": train.evaluations, "train.clip": train.clip,
        **{f"data.{name}": value for name, value in vars(config.data).items()},
    }  # fmt: skip
    for name, value in positive.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{name} must be positive, got {value}.")
    for name, value, top in (
        ("model.num_layers", model.num_layers, math.inf), ("model.dropout", model.dropout, 1),
        ("train.warmup", train.warmup, 1),
        ("train.weight_decay", train.weight_decay, math.inf),
    ):  # fmt: skip
        if not 0 <= value < top:
            raise UserError(f"{name} must be in [0, {top}), got {value}.")
    if model.d_model % model.num_heads:
        raise UserError(
            f"model.d_model must be a multiple of model.num_heads, got {model.d_model} and {model.num_heads}."
        )
    for name, chosen, known in (
        ("train.precision", train.precision, PRECISIONS), ("train.monitor", train.monitor, MONITORS),
        ("regime", config.regime, REGIMES), ("stage", config.stage, STAGES),
    ):  # fmt: skip
        if chosen not in known:
            raise unknown_name(name, chosen, known)
    check_seed(config.seed)


def check_seed(seed: int) -> None:
    """Refuse what is no seed.

    Raises:
        UserError: With the limits.
    """
    if not 0 <= seed < 2**32:
        raise UserError(f"a seed must be in [0, 2^32), got {seed}.")
