"""The declaration of a task, and its budgets by tier. No torch here."""

import numbers
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.errors import UserError
from pebench.tasks import sources
from pebench.tasks.fields import by_name, check_fields, one, several
from pebench.tasks.kinds import TaskKind
from pebench.tasks.published import Published, TextSize

ROUNDING = 1e-6
"""Metrics closer than this are equal but for rounding: they are computed, and recorded, in single precision."""

EVERY_TENTH = "validation is every tenth training example (the 10th, the 20th, ...); test is the published test split"


@dataclass(frozen=True)
class Budget:
    """The model, data and training settings of a task at one tier."""

    model: ModelConfig
    data: DataConfig
    train: TrainConfig


@dataclass(frozen=True, kw_only=True)
class Task:
    """One data set, a model for it, and the metric by which encodings are compared on it.

    Args:
        name: Name on the command line; pebench's own are ``<kind>-<data set>``.
        summary: One line for a list.
        kind: Model and metric, one of `pebench.tasks.kinds` or your own.
        data: The LightningDataModule, a subclass of `pebench.data.base.TensorDataModule`: its dotted path
            (``my_module:MyData``) or the class itself.
        splits: The rule by which train, validation and test are separate.
        budgets: Model, data and training settings by tier: those of `pebench.config.TIERS`; see `with_smoke`.
        chance: The headline metric on the test split of the best constant prediction, at the default tier: what a model
            reaches that ignores its input. ``None`` where the data tell it: see `TensorDataModule.chance`.
        beyond: Lengths (or image sides) of the length (resolution) extrapolation, in multiples of the trained one.
        cite: Works to cite for the data: keys of `references.bib`.
        source: Where the data comes from, with the pinned revision or checksum; ``None`` if it is embedded.
        prepared_by: The data settings that the prepared tensors depend on; they name the file that keeps the tensors.
        data_args: Keyword arguments of the LightningDataModule besides seed, batch size and the data settings.
        num_classes: Number of labels (1 for a regression); ``None`` where a model predicts tokens of its vocabulary.
        image: Channels, and side in pixels; ``None`` for text.
        published: Results of others on its data, which pages show beside ours.
        test_text: Bytes and words of its test split, where published results count words.
        separator: Token of the prepared data that ends the first text of a pair; the data's `describe` gives it to the
            model, too. ``None`` where an example is no pair.
        splits_before: The rule in earlier versions of the protocol where it was another one, by version.
        budgets_before: Budgets in earlier versions of the protocol where they were others, by version and tier.

    Raises:
        UserError: If a field holds something else than it must.
    """

    name: str
    summary: str
    kind: TaskKind
    data: str | type
    splits: str
    budgets: Mapping[str, Budget] = field(repr=False)
    chance: float | None = None
    beyond: tuple[float, ...] = ()
    cite: tuple[str, ...] = ()
    source: sources.Source | None = None
    prepared_by: tuple[str, ...] = ()
    data_args: Mapping[str, Any] = field(default_factory=dict)
    num_classes: int | None = None
    image: tuple[int, int] | None = None
    published: tuple[Published, ...] = field(default=(), repr=False)
    test_text: TextSize | None = None
    separator: int | None = None
    splits_before: Mapping[str, str] = field(default_factory=dict)
    budgets_before: Mapping[str, Mapping[str, Budget]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_fields(f"task {self.name!r}", self, FIELDS)
        if not self.budgets:
            raise UserError(f"task {self.name!r}: budgets expects one tier at least, got none.")
        for tier, budget in self.budgets.items():
            check_fields(f"task {self.name!r}, budget {tier!r}", budget, SECTIONS)

    def shown(self, value: float) -> str:
        """Return a value of the headline metric as text, in its unit and digits."""
        return f"{self.scale * value:.{self.digits}f}{' %' * self.percent}"

    @property
    def metric(self) -> str:
        """The headline metric, without its split."""
        return self.kind.metric

    @property
    def higher_is_better(self) -> bool:
        """The direction of the headline metric."""
        return self.kind.higher_is_better

    @property
    def percent(self) -> bool:
        """True if the headline metric is a share of 1, which people read in percent, and its differences in points."""
        return self.kind.percent

    @property
    def scale(self) -> int:
        """The factor by which the headline metric is multiplied where people read it."""
        return self.kind.scale

    @property
    def digits(self) -> int:
        """The digits after the decimal point of the headline metric where people read it."""
        return self.kind.digits

    @property
    def unit(self) -> str:
        """The examples that throughput counts."""
        return self.kind.unit

    @property
    def causal(self) -> bool:
        """True if a token sees only the tokens before it."""
        return self.kind.causal

    @property
    def embedded(self) -> bool:
        """True if its data needs no download."""
        return self.source is None

    def model_class(self) -> Any:
        """Import and return the LightningModule."""
        return resolve(self.kind.module)

    def data_class(self) -> Any:
        """Import and return the LightningDataModule."""
        return resolve(self.data)

    def monitored(self, monitor: str) -> tuple[str, str]:
        """Return the validation metric that chooses weights and settings, and whether its ``min`` or ``max`` is best.

        Args:
            monitor: ``loss`` or ``metric``, as in `pebench.config.MONITORS`.
        """
        if monitor == "loss":
            return "val/loss", "min"
        return f"val/{self.metric}", "max" if self.higher_is_better else "min"

    def best(self, scores: Sequence[float], monitor: str) -> int:
        """Return the index of the best score; of scores that are equal but for rounding, the first.

        Args:
            scores: Means over seeds of the monitored metric, at least one.
            monitor: As in `monitored`.
        """
        lower_is_better = self.monitored(monitor)[1] == "min"
        losses = [score if lower_is_better else -score for score in scores]
        return next(place for place, loss in enumerate(losses) if loss <= min(losses) + ROUNDING)

    def extent(self, data: DataConfig) -> tuple[int, ...]:
        """Return the positions per axis in training: tokens of the longest text, or rows and columns of patches.

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
        if self.source is None:
            return
        known = {**vars(data), **self.data_args}
        settings = {name: known[name] for name in self.prepared_by}
        module = self.data.partition(":")[0] if isinstance(self.data, str) else self.data.__module__
        if not sources.prepared_file(self.source, self.source.title, settings, data_dir, module).is_file():
            sources.check_available(self.source, data_dir)


FIELDS = {
    "name": one(str, "a text"),
    "summary": one(str, "a line of text"),
    "kind": one(TaskKind, "a pebench.TaskKind, such as pebench.tasks.TEXT_CLASSIFICATION"),
    "data": one((str, type), "a class, or its place as in my_module:MyData"),
    "splits": one(str, "a line of text"),
    "budgets": by_name(Budget, "pebench.tasks.Budget by tier"),
    "chance": one(numbers.Real, "a number").or_none(),
    "beyond": several(numbers.Real, "a tuple of numbers, such as (2, 4)"),
    "cite": several(str, "a tuple of texts"),
    "source": one(sources.Source, "a pebench.tasks.sources.Source").or_none(),
    "prepared_by": several(str, "a tuple of data settings, such as ('max_len',)"),
    "data_args": by_name(object, "a dict by name"),
    "num_classes": one(numbers.Integral, "a whole number").or_none(),
    "image": several(numbers.Integral, "a tuple of channels and side").or_none(),
    "published": several(Published, "a tuple of pebench.tasks.published.Published"),
    "test_text": one(TextSize, "a pebench.tasks.published.TextSize").or_none(),
    "separator": one(numbers.Integral, "a token's number").or_none(),
}
"""Values that a `Task` may hold, by field."""

SECTIONS = {
    "model": one(ModelConfig, "a pebench.config.ModelConfig"),
    "data": one(DataConfig, "a pebench.config.DataConfig"),
    "train": one(TrainConfig, "a pebench.config.TrainConfig"),
}
"""Values that a `Budget` may hold, by field."""


def resolve(place: str | type) -> Any:
    """Import a class by its dotted path, ``package.module:Class``; a class is returned as it is."""
    return pkgutil.resolve_name(place) if isinstance(place, str) else place


def with_smoke(**budgets: Budget) -> dict[str, Budget]:
    """Return budgets by tier with another before them: two steps of a tiny model, to see that a task runs at all.

    Args:
        budgets: By tier, the first of them the default.
    """
    usual = next(iter(budgets.values()))
    train = replace(usual.train, max_steps=2, evaluations=1, batch_size=min(16, usual.train.batch_size))
    return {"smoke": Budget(ModelConfig(d_model=16, num_layers=1, num_heads=2), usual.data, train), **budgets}


def with_minute(minute: Budget, quick: Budget) -> dict[str, Budget]:
    """Return the budgets of a task that comes with the package; the quickstart's is the first that trains."""
    return {"smoke": with_smoke(quick=quick)["smoke"], "minute": minute, "quick": quick}
