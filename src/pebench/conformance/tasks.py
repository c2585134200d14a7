"""The properties that every task must have: of what it declares, of its data and of its metric."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pebench.config import section_values
from pebench.conformance.comparisons import BrokenError, require
from pebench.conformance.constant import fit_constant
from pebench.conformance.examples import batches_of, equal, fingerprints, first_batches, labels_of
from pebench.data import datamodule_of
from pebench.data.base import SPLITS, TensorDataModule
from pebench.data.batches import IGNORE
from pebench.data.checks import check_classes
from pebench.errors import UserError, with_place
from pebench.models.base import SequenceModule
from pebench.tasks import configure, default_tier, find_task
from pebench.tasks.sources import data_folder

SMALL = {"model.d_model": 16, "model.num_heads": 2, "model.num_layers": 1, "model.dropout": 0.0, "model.d_ff": None}
"""The model that tasks are tested with; their data is that of the default tier."""

SHARED = 0.05
"""Largest share of a split that may occur in another: published data sets hold some texts twice."""

SAME = 1e-5
"""How far apart two measurements may be that should be equal, absolutely or relative to their size."""

NEAR_CHANCE = 0.02
"""How far a constant prediction may be from the declared chance level: as a share of 1, else relative to it."""

EXAMPLES = 500
"""Validation examples that batches of different sizes are made of."""


class TaskBench:
    """One task with its data and small models for it.

    Args:
        name: The task's name.
        data_dir: Local folder that stands in for the download; ``None`` takes ``PEBENCH_DATA_DIR`` if set.
    """

    def __init__(self, name: str, data_dir: Path | None = None) -> None:
        self.task = find_task(name)
        self.data_dir = data_folder(data_dir)

    @functools.cached_property
    def config(self) -> Any:
        """The configuration of a small model at the default tier."""
        return configure(self.task.name, "none", tier=default_tier(self.task), settings=SMALL)

    def missing_data(self) -> str:
        """Return why the data cannot be had; empty if it can."""
        try:
            self.task.check_available(self.config.data, self.data_dir)
        except UserError as error:
            return str(error)
        return ""

    def data(self, **options: Any) -> TensorDataModule:
        """Return the prepared data; `options` replace those of the configuration, such as ``seed``."""
        data = datamodule_of(self.config, self.data_dir, **options)
        data.model_arguments()
        return data

    @functools.cached_property
    def usual(self) -> TensorDataModule:
        """The data as it is usually made, which properties leave as it is."""
        return self.data()

    @property
    def chance(self) -> float:
        """The chance level that the task declares, else that its data tell; NaN if neither does."""
        found = self.task.chance
        return self.usual.chance().get(self.task.metric, math.nan) if found is None else found

    def model(self) -> SequenceModule:
        """Return a small model in evaluation, with an output layer that is not zero, as it is at first."""
        sizes = {name: value for name, value in section_values(self.config, "model").items() if name != "dropout"}
        model = self.task.model_class()("none", {}, **self.usual.model_arguments(), **sizes, seed=0)
        noise = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                # an output layer of zeros would predict the same for all, and hide what depends on batches
                parameter += 0.2 * torch.randn(parameter.shape, generator=noise, dtype=torch.float32)
        return model.eval()  # type: ignore[no-any-return]

    def measure(self, model: SequenceModule, batches: Iterable[Any], split: str) -> float:
        """Return the headline metric over some batches."""
        metric = model.metric(f"{split}/{self.task.metric}")
        metric.reset()
        with torch.no_grad():
            for batch in batches:
                model.update(self.usual.on_after_batch_transfer(batch, 0), split)
        return float(metric.compute())


@dataclass(frozen=True)
class TaskProperty:
    """A property that a task must have.

    Args:
        name: A word for it.
        statement: The property in a line.
        run: Raises `BrokenError` where it does not hold.
        needs_data: True if the data must be at hand.
    """

    name: str
    statement: str
    run: Callable[[TaskBench], None]
    needs_data: bool = True


TASK_PROPERTIES: dict[str, TaskProperty] = {}
"""All properties of tasks by name, in the order in which they are checked."""


def _property(
    name: str, needs_data: bool = True
) -> Callable[[Callable[[TaskBench], None]], Callable[[TaskBench], None]]:
    """Decorator: the function is a property, the first line of its docstring the statement."""

    def decorate(run: Callable[[TaskBench], None]) -> Callable[[TaskBench], None]:
        statement = (run.__doc__ or "").split("\n")[0].rstrip(".")
        TASK_PROPERTIES[name] = TaskProperty(name, statement, run, needs_data)
        return run

    return decorate


def check_task(item: TaskProperty, bench: TaskBench) -> None:
    """Check one property.

    Raises:
        BrokenError: If it does not hold, or the task fails with an exception of its own.
    """
    try:
        item.run(bench)
    except BrokenError as error:
        error.property, error.setting = item.name, bench.task.name
        raise
    # a task's own exception is a broken property, and the remaining ones are still checked
    except Exception as error:
        told = with_place(f"{type(error).__name__}: {error}", error)
        broken = BrokenError("no exception", str(error) if isinstance(error, UserError) else told)
        broken.property, broken.setting = item.name, bench.task.name
        raise broken from error


@_property("declares", needs_data=False)
def declares(bench: TaskBench) -> None:
    """It declares itself: classes, splits, budgets, chance level and lengths of extrapolation."""
    task = bench.task
    for name, text in (("summary", task.summary), ("splits", task.splits), ("unit", task.unit)):
        require(bool(text.strip()) and "\n" not in text, f"a line of text as its {name}", repr(text))
    require(issubclass(task.data_class(), TensorDataModule), "data as a TensorDataModule", task.data)
    require(issubclass(task.model_class(), SequenceModule), "a model as a SequenceModule", task.kind.module)
    for tier in task.budgets:
        configure(task.name, "none", tier=tier)
    told = task.data_class().chance is not TensorDataModule.chance
    # NaN fails the comparison below, with the usual message
    chance = (0.0 if told else math.nan) if task.chance is None else task.chance
    require(math.isfinite(chance), "a chance level", task.chance)
    require(0 <= chance <= 1 or not task.percent, "a chance level from 0 to 1, as the metric is a share", chance)
    require(all(factor > 1 for factor in task.beyond), "lengths beyond the trained one", task.beyond)


@_property("splits")
def splits(bench: TaskBench) -> None:
    """Train, validation and test are not empty, and share no examples."""
    found = {name: fingerprints(bench.usual, name) for name in SPLITS}
    for name, examples in found.items():
        require(bool(examples), f"examples in the split {name}", "none")
    for one, other in (("val", "train"), ("test", "train"), ("test", "val")):
        share = sum(example in found[other] for example in found[one]) / len(found[one])
        expected = f"at most {SHARED:.0%} of the examples of {one} in {other} too"
        require(share <= SHARED, expected, f"{share:.1%}")


@_property("labels")
def labels(bench: TaskBench) -> None:
    """Its labels are whole numbers from 0 to one less than the number of classes that it declares."""
    described = bench.usual.describe()
    check_classes(bench.task, described)
    if (told := described.get("num_classes")) is None:  # tokens of a vocabulary, or numbers
        return
    found = torch.cat([labels_of(bench.usual, name) for name in SPLITS])
    found = found[found != IGNORE]
    if found.is_floating_point() or not len(found):  # of a kind that is no classification
        return
    least, most = int(found.min()), int(found.max())
    got = f"labels from {least} to {most}"
    require(least >= 0 and most < told, f"labels from 0 to {told - 1}, as num_classes={told}", got)
    require(most == told - 1, f"num_classes={most + 1}, as labels in the splits go to {most}", f"num_classes={told}")


@_property("fingerprint")
def fingerprint(bench: TaskBench) -> None:
    """Reading the source again gives the same tensors, whatever seed and batch size."""
    again = bench.data(seed=bench.config.seed + 1, batch_size=3)
    torch.manual_seed(1)  # reading must not draw from the global generator
    found = again.read().fingerprint
    require(found == bench.usual.fingerprint, f"the fingerprint {bench.usual.fingerprint[:12]}", found[:12])


@_property("order")
def order(bench: TaskBench) -> None:
    """The order of training examples is a function of the seed alone."""
    first, same, other = (first_batches(bench.data(seed=seed)) for seed in (0, 0, 1))
    require(equal(first, same), "the same batches for the same seed", "others")
    require(not equal(first, other), "other batches for another seed", "the same")


@_property("metric")
def metric(bench: TaskBench) -> None:
    """The metric does not depend on how examples are batched, nor on their padding."""
    rows, _ = bench.usual.split("val")
    index = torch.arange(min(EXAMPLES, len(rows)))  # type: ignore[arg-type]
    mixed = index[torch.randperm(len(index), generator=torch.Generator().manual_seed(0))]  # of all lengths in a batch
    model = bench.model()
    expected = bench.measure(model, batches_of(rows, index, 64), "val")
    require(math.isfinite(expected), "a finite metric", expected)
    # 7 leaves a smaller last batch, which a mean of batch means would weigh too much; 1 has no padding
    for chosen, size in ((index, 7), (mixed, 16), (mixed, 1)):
        found = bench.measure(model, batches_of(rows, chosen, size), "val")
        close = math.isclose(found, expected, rel_tol=SAME, abs_tol=SAME)
        require(
            close, f"{bench.task.metric} of {expected:.6f}, as in batches of 64", f"{found:.6f} in batches of {size}"
        )


@_property("chance")
def chance(bench: TaskBench) -> None:
    """A constant prediction, the best on the training split, reaches the declared chance level on the test split."""
    model, expected = bench.model(), bench.chance
    fit_constant(model, bench.usual)
    found = bench.measure(model, bench.usual.test_dataloader(), "test")
    allowed = NEAR_CHANCE * (1 if bench.task.percent else abs(expected))
    require(abs(found - expected) <= allowed, f"{bench.task.metric} of {expected:.4g} ± {allowed:.2g}", f"{found:.4f}")


@_property("extrapolation")
def extrapolation(bench: TaskBench) -> None:
    """The test split is there at every declared size that data can have, and at no other."""
    factors = {f"{factor:g}x": factor for factor in bench.task.beyond}
    usual = next(iter(bench.usual.test_dataloader()))[0][0].numel()
    axes = 2 if bench.task.image else 1
    sized, model = set[str](), bench.model()
    for label, batches in bench.usual.beyond(bench.task.beyond):
        batch = next(iter(batches))
        value = bench.measure(model, [batch], "test")
        require(math.isfinite(value), f"a finite metric at {label}", value)
        if not label[0].isdigit():
            continue  # a control, such as tokens in random order
        require(label in factors, f"one of the declared sizes {list(factors)}", label)
        # a factor is per axis, so an image grows by its square; 5 % is for sizes that are rounded
        ratio = batch[0][0].numel() / usual
        require(
            math.isclose(ratio, factors[label] ** axes, rel_tol=0.05), f"examples {label} as large", f"{ratio:.3g}x"
        )
        sized.add(label)
    possible = len(factors) - len(bench.usual.untestable(bench.task.beyond))
    require(bool(sized) or not possible, f"some of the declared sizes {list(factors)}", "none")


@_property("trains")
def trains(bench: TaskBench) -> None:
    """A training step has a finite loss, and gradients in the output of the model."""
    model = bench.model()
    batch = next(iter(bench.usual.train_dataloader()))
    loss = model.loss(bench.usual.on_after_batch_transfer(batch, 0))
    loss.backward()  # type: ignore[no-untyped-call]
    require(bool(loss.isfinite()), "a finite loss", loss.item())
    moved = [
        name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.abs().sum() > 0
    ]
    require(bool(moved), "gradients in some parameter", "none")
