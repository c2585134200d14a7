"""What a task is, and its budgets by tier. No torch here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.errors import UserError
from pebench.tasks import sources

ROUNDING = 1e-6
"""Metrics closer than this are equal but for rounding: they are computed, and recorded, in single precision."""

EVERY_TENTH = "validation is every tenth training example (the 10th, the 20th, ...); test is the published test split"


@dataclass(frozen=True)
class Budget:
    """Model, data and training settings of a task at one tier."""

    model: ModelConfig
    data: DataConfig
    train: TrainConfig


@dataclass(frozen=True)
class Task:
    """One data set with one metric.

    Args:
        name: ``<kind>-<data set>``.
        summary: One line for a list.
        module: Dotted path of the LightningModule.
        data: Dotted path of the LightningDataModule.
        splits: The rule by which train, validation and test are separate.
        splits_before: The rule in earlier versions of the protocol where it was another one, by version.
        metric: The headline metric, without its split.
        higher_is_better: The direction of the headline metric.
        beyond: How many times as long, or as wide, as in training the test split is measured at too.
        unit: What throughput counts.
        cite: What to cite for the data: keys of `references.bib`.
        budgets: By tier.
        budgets_before: In earlier versions of the protocol where they were others, by version and tier.
        source: Where the data comes from, with the pinned revision or checksum; ``None`` if it is embedded.
        prepared_by: The data settings that the prepared tensors depend on.
        num_classes: Labels; ``None`` for a language model, which is causal and predicts its own tokens.
        image: Channels, and side in pixels; ``None`` for text.
    """

    name: str
    summary: str
    module: str
    data: str
    splits: str
    metric: str
    higher_is_better: bool
    unit: str
    cite: tuple[str, ...]
    budgets: Mapping[str, Budget] = field(repr=False)
    source: sources.Source | None = None
    prepared_by: tuple[str, ...] = ()
    num_classes: int | None = None
    image: tuple[int, int] | None = None
    beyond: tuple[float, ...] = ()
    splits_before: Mapping[str, str] = field(default_factory=dict)
    budgets_before: Mapping[str, Mapping[str, Budget]] = field(default_factory=dict, repr=False)

    def monitored(self, monitor: str) -> tuple[str, str]:
        """What chooses weights and settings: a validation metric, and whether its ``min`` or its ``max`` is best.

        Args:
            monitor: ``loss`` or ``metric``, as in `pebench.config.MONITORS`.
        """
        if monitor == "loss":
            return "val/loss", "min"
        return f"val/{self.metric}", "max" if self.higher_is_better else "min"

    def best(self, scores: Sequence[float], monitor: str) -> int:
        """Which score is best; of those that are equal but for rounding, the first.

        Args:
            scores: Means over seeds of what is monitored, at least one.
            monitor: As in `monitored`.
        """
        lower_is_better = self.monitored(monitor)[1] == "min"
        losses = [score if lower_is_better else -score for score in scores]
        return next(place for place, loss in enumerate(losses) if loss <= min(losses) + ROUNDING)

    @property
    def is_share(self) -> bool:
        """Whether the headline metric is a share of 1, which people read in percent, and differences in points."""
        return self.metric == "accuracy"

    @property
    def scale(self) -> int:
        """What the headline metric is multiplied by where people read it."""
        return 100 if self.is_share else 1

    @property
    def digits(self) -> int:
        """Its digits behind the point there."""
        return 2 if self.is_share else 4

    @property
    def embedded(self) -> bool:
        """Whether it needs no download."""
        return self.source is None

    @property
    def causal(self) -> bool:
        """Whether a token sees only what came before it."""
        return self.num_classes is None

    def extent(self, data: DataConfig) -> tuple[int, ...]:
        """Positions per axis in training: tokens of the longest text, or rows and columns of patches.

        Raises:
            UserError: If patches do not fill the image.
        """
        if self.image is None:
            return (data.max_len or 0,)
        side, patch = self.image[1], data.patch_size or 1
        if side % patch:
            raise UserError(f"data.patch_size must divide the image's {side} pixels, got {patch}.")
        return (side // patch, side // patch)

    def check_available(self, data: DataConfig, data_dir: Path | None) -> None:
        """Find out at once whether the data can be had: prepared before, at hand, or by the network.

        Raises:
            UserError: If it cannot.
        """
        if self.source is not None:
            settings = {name: getattr(data, name) for name in self.prepared_by}
            if not sources.prepared_file(self.source, self.source.title, settings, data_dir).is_file():
                sources.check_available(self.source, data_dir)


def with_smoke(**budgets: Budget) -> dict[str, Budget]:
    """Budgets by tier, and before them two steps of a tiny model: does it run at all?"""
    usual = next(iter(budgets.values()))
    train = replace(usual.train, max_steps=2, evaluations=1, batch_size=min(16, usual.train.batch_size))
    return {"smoke": Budget(ModelConfig(d_model=16, num_layers=1, num_heads=2), usual.data, train), **budgets}
