"""The configuration of one run: frozen, typed settings, their dotted names, and the key that records are found by."""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pebench.config.checks import check_run, check_seed
from pebench.config.names import check_kinds
from pebench.config.protocol import PROTOCOL_VERSION
from pebench.formatting import format_encoding


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the trunk.

    Args:
        d_model: Width of the residual stream.
        num_layers: Number of blocks; with none a classifier is a bag of embeddings.
        num_heads: Attention heads; must divide ``d_model``.
        d_ff: Width of the feed-forward layer; ``None`` means ``4 * d_model``.
        dropout: Probability of dropping a channel, after the input and in each residual branch. The dropout after the
            input also reaches an encoding that is added to the input, but not one that acts inside attention.
        tied: A language model predicts with its token table: `pebench.models.LanguageModel` has the rule.
        token_pace: Pace of the token table of text under Adam, relative to other weights'; ``None`` takes sqrt(width).
        token_scale: Root mean square of a language model's token vectors at the start; ``None`` is 1, which encodings'
            ratios are relative to.
        segments: How a model is given which text of a pair a token is of, one of `SEGMENTS`; ``None`` not at all.
    """

    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    d_ff: int | None = None
    dropout: float = 0.0
    tied: bool = False
    token_pace: float | None = None
    token_scale: float | None = None
    segments: str | None = None


@dataclass(frozen=True)
class DataConfig:
    """How data becomes tokens. A field that a task leaves at ``None`` does not apply to it.

    Args:
        max_len: Longest text in tokens (longer ones are cut), or the context of a language model.
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
        precision: A Lightning precision, one of `PRECISIONS`.
        compile: Compile the trunk with ``torch.compile``, which takes about a minute before the first step.
        monitor: Validation quantity that chooses the weights tested, one of `MONITORS`.
        token_table: Take the token table of the run of ``none`` that is otherwise the same, and keep it as it is or
            train it on, one of `TOKEN_TABLES`; ``None`` draws a table.
        beyond: Lengths (image sides) that are tested without further training, in multiples of the trained one:
            ``2,4,8``; ``None`` takes those of the task.
        rand_augment: RandAugment of training images: ``2@9`` for two operations of magnitude 9; ``None`` for none.
        mixup: Parameter alpha of mixup between training images; 0 for none. See `pebench.config.Augmentation`.
        cutmix: Parameter alpha of CutMix between training images; 0 for none.
        erasing: Probability of erasing a rectangle of a training image.
        label_smoothing: Share of the label of a training image that is spread over all classes.
        capture: Capture the step as CUDA graphs, where the device and the model allow it.
        interpolate: How tables of an encoding that refuses other sizes are interpolated for the test at these, one of
            `INTERPOLATIONS`; ``None`` leaves it at the refusal.
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
    token_table: str | None = None
    beyond: str | None = None
    rand_augment: str | None = None
    mixup: float = 0.0
    cutmix: float = 0.0
    erasing: float = 0.0
    label_smoothing: float = 0.0
    capture: bool = False
    interpolate: str | None = None


SECTIONS: Mapping[str, type] = {"model": ModelConfig, "data": DataConfig, "train": TrainConfig}
"""Sections of a configuration, in the order in which their settings are listed."""


LATER: dict[str, Any] = {
    "model.tied": False, "model.token_pace": None, "model.token_scale": None, "model.segments": None,
    "train.token_table": None, "train.beyond": None, "train.rand_augment": None, "train.mixup": 0.0,
    "train.cutmix": 0.0, "train.erasing": 0.0, "train.label_smoothing": 0.0, "train.capture": False,
    "train.interpolate": None,
}  # fmt: skip
"""Settings that came after published records, by dotted name: at these defaults they stand in no record and no list."""


def section_values(source: Any, section: str) -> dict[str, Any]:
    """Return the settings of one section by name, without those of `LATER` at their defaults.

    Args:
        source: An object that has the section: a `RunConfig`, or a task's budget.
        section: One of `SECTIONS`.
    """
    values = vars(getattr(source, section))
    absent = object()  # equal to no value
    return {name: value for name, value in values.items() if LATER.get(f"{section}.{name}", absent) != value}


def dotted_settings(source: Any) -> dict[str, Any]:
    """Return the settings of all sections by dotted name, as `section_values` has them: ``{"model.d_model": 64, ...}``.

    Args:
        source: An object that has the sections: a `RunConfig`, or a task's budget.

    Example:
        >>> found = dotted_settings(RunConfig("vit-digits", "rope"))
        >>> found["model.d_model"], found["data.patch_size"], found["train.clip"]
        (128, None, 1.0)
    """
    settings = {}
    for section in SECTIONS:
        for name, value in section_values(source, section).items():
            settings[f"{section}.{name}"] = value
    return settings


@dataclass(frozen=True)
class RunConfig:
    """One task, one encoding, one seed: everything that decides a run's outcome and what it compares to.

    Args:
        task: Name of the task.
        encoding: Name of the encoding.
        seed: Seed of data order, initial parameters, augmentation and dropout.
        tier: The task's budget that the settings start from, one of `TIERS`.
        encoding_args: Options of the encoding that differ from their defaults.
        model: Shape of the trunk.
        data: How data becomes tokens.
        train: Budget and optimizer.
        regime: One of `REGIMES`; ``model.d_ff`` may differ between rows to reach it.
        selected: Settings whose values were chosen on validation data, so that they may differ between rows.
        stage: One of `STAGES`.

    Raises:
        UserError: For a value that cannot work.
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
        check_kinds(self, SECTIONS, LATER | self.settings())
        check_run(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain JSON values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for section in SECTIONS:
            values[section] = section_values(self, section)
        return values | {"encoding_args": dict(self.encoding_args), "selected": list(self.selected)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "RunConfig":
        """Return the configuration that `to_dict` wrote."""
        sections = {name: section(**values[name]) for name, section in SECTIONS.items()}
        # Records of protocol 0.1 have no regime, stage or selected settings: the defaults are what they were made with.
        return RunConfig(**{**values, **sections, "selected": tuple(values.get("selected", ()))})

    def settings(self) -> dict[str, Any]:
        """Return the settings of model, data and training by dotted name: ``{"model.d_model": 64, ...}``."""
        return dotted_settings(self)

    def values_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Return some settings by their dotted names, in the order of these."""
        settings = LATER | self.settings()
        return {name: settings[name] for name in names}

    @property
    def selected_values(self) -> dict[str, Any]:
        """Settings that were chosen for this encoding, or are tried for it, by dotted name."""
        return self.values_of(self.selected)

    @functools.cached_property
    def kind_key(self) -> str:
        """Twelve hex digits that name this configuration apart from its seed, under this protocol."""
        # The protocol is part of the key, so that a run made under older rules never passes for one of today's.
        values = {"protocol": PROTOCOL_VERSION} | self.to_dict()
        del values["seed"]
        # Settings that came later are left out at their defaults, so that the keys of older records stay as they are.
        for name, default in (("compile", False), ("monitor", "loss")):
            if values["train"][name] == default:
                del values["train"][name]
        return _digest(json.dumps(values, sort_keys=True, separators=(",", ":")))

    @functools.cached_property
    def key(self) -> str:
        """Twelve hex digits that name this configuration under this protocol."""
        # Made of the other key, not of the settings again: a plan of very many seeds hashes its settings once.
        return _digest(f"{self.kind_key}/{self.seed}")

    @functools.cached_property
    def label(self) -> str:
        """The encoding as tables name it: ``concat``, or ``concat (d_p=16)``."""
        return format_encoding(self.encoding, dict(sorted(self.encoding_args.items())))

    def with_seed(self, seed: int) -> "RunConfig":
        """Return the same kind of run with another seed; quick, as a plan may have very many."""
        check_seed(seed)
        # The seed alone is new, so the rest is neither checked nor hashed again as `dataclasses.replace` would do.
        other = object.__new__(RunConfig)
        other.__dict__.update(vars(self), seed=seed, kind_key=self.kind_key)
        other.__dict__.pop("key", None)
        return other

    @property
    def directory(self) -> str:
        """The run's folder under the output folder: ``task/encoding/seed0-key``."""
        encoding = self.encoding.replace(":", ".")  # not every file system and shell takes the colon of module:Class
        # For people who look at the folder: the stage is in the keys, which differ anyway.
        prefix = "select-" if self.stage == "select" else ""
        task = self.task.partition("(")[0].replace(":", ".")  # the key at the end stands for a task's options, too
        return f"{task}/{encoding}/{prefix}seed{self.seed}-{self.key}"


def _digest(text: str) -> str:
    # 48 bits: of a million configurations, two have the same key with a probability of about 0.2 %.
    return hashlib.sha256(text.encode()).hexdigest()[:12]
