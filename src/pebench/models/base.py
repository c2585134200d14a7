"""Base of all LightningModules: the trunk, one step, the optimizer, checkpoints that load by themselves."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypedDict, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.compat import import_torchvision

import_torchvision()  # before lightning and torchmetrics, which import it

import lightning  # noqa: E402
from torchmetrics import MeanMetric, Metric  # noqa: E402
from torchmetrics.classification import MulticlassAccuracy  # noqa: E402

from pebench.encodings.base import EncodingSpec  # noqa: E402
from pebench.encodings.build import EncodingLike, build_encoding  # noqa: E402
from pebench.errors import UserError  # noqa: E402
from pebench.layers import initialise  # noqa: E402
from pebench.models.resize import resized_state  # noqa: E402
from pebench.models.transformer import Transformer  # noqa: E402


class TrunkOptions(TypedDict, total=False):
    """Keyword arguments that every module passes on to `SequenceModule`, which documents them."""

    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int | None
    dropout: float
    learning_rate: float
    weight_decay: float
    warmup: float
    seed: int


class SequenceModule(lightning.LightningModule):
    """A trunk with one encoding, trained by AdamW with linear warm-up and cosine decay.

    A subclass makes its input and output layers, calls `finish`, and defines `loss` and `update`. Its arguments are
    saved as hyperparameters, so that ``load_from_checkpoint(path)`` needs no others.

    Args:
        encoding: A registered name, alone or with options, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        extent: Positions per axis in training.
        causal: True if a token attends to itself and the past alone.
        d_model: Width of the residual stream.
        num_layers: Number of blocks.
        num_heads: Attention heads; must divide ``d_model``.
        d_ff: Width of the feed-forward layer; ``None`` means ``4 * d_model``.
        dropout: Probability of dropping a channel.
        learning_rate: Peak learning rate.
        weight_decay: Decoupled decay of weight matrices.
        warmup: Fraction of all steps in which the learning rate rises.
        seed: Seed of every parameter.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, or the encoding cannot serve it.
    """

    inputs: ClassVar[int] = 1
    """Tensors with which a batch begins that `forward` is given to predict; others, such as labels, may follow."""

    def __init__(  # noqa: PLR0913 - every setting of a model, by its name
        self,
        encoding: EncodingLike,
        encoding_args: Mapping[str, Any] | None,
        *,
        extent: tuple[int, ...],
        causal: bool,
        d_model: int = 128,
        num_layers: int = 4,
        num_heads: int = 4,
        d_ff: int | None = None,
        dropout: float = 0.0,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.05,
        warmup: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters(ignore=["extent", "causal"], logger=False)  # a subclass sets these two itself
        # A checkpoint is read with weights_only, which refuses a class that save_hyperparameters would have kept.
        self.hparams["encoding"] = encoding_name(encoding)
        spec = EncodingSpec(d_model, num_heads, num_layers, extent, causal)
        self.trunk = Transformer(build_encoding(encoding, spec, encoding_args), d_ff, dropout)
        self.learning_rate, self.weight_decay, self.warmup, self.seed = learning_rate, weight_decay, warmup, seed
        self.metrics = nn.ModuleDict()  # "val/accuracy" to its torchmetrics Metric

    def finish(self, metrics: Mapping[str, Metric]) -> None:
        """Draw all parameters from the seed and take a copy of each metric for every split.

        Args:
            metrics: Metrics by name, without split.
        """
        initialise(self, self.seed)
        for stage in ("val", "test"):
            for name, metric in metrics.items():
                # Each split has sums of its own: the two must not add up in one metric.
                self.metrics[f"{stage}/{name}"] = metric.clone()

    def finish_classes(self, num_classes: int) -> None:
        """Call `finish` with the metrics of a classifier, of examples or of tokens."""
        # Micro: the share of right ones. Torchmetrics' default, macro, is the mean over classes.
        # Validation of arguments looks at values, for which an accelerator would have to wait.
        accuracy = MulticlassAccuracy(num_classes, average="micro", validate_args=False)
        # By default NaN is left out of a mean: a model that diverged would be judged by its other batches.
        self.finish({"loss": MeanMetric(nan_strategy="error"), "accuracy": accuracy})

    def metric(self, name: str) -> Metric:
        """Return the metric of a split, called ``val/accuracy`` or the like."""
        return cast(Metric, self.metrics[name])

    def loss(self, batch: Any) -> Tensor:
        """Return the training loss of a batch, in nats."""
        raise NotImplementedError

    def update(self, batch: Any, stage: str) -> None:
        """Update the metrics of a stage, ``val`` or ``test``, with a batch."""
        raise NotImplementedError

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the loss of a batch; it is logged as often as the trainer logs, not more."""
        loss = self.loss(batch)
        # log() itself costs time at every call, also at those of which Lightning writes nothing.
        # global_step counts finished steps, hence the present one is the next.
        every = int(self.trainer.log_every_n_steps)  # type: ignore[attr-defined]
        if every and (self.global_step + 1) % every == 0:
            # Processes have parts of one size, so that the plain mean over them is the loss of the batch.
            self.log("train/loss", loss, batch_size=1, sync_dist=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Update the validation metrics with a batch."""
        self.update(batch, "val")

    def test_step(self, batch: Any, batch_idx: int) -> None:
        """Update the test metrics with a batch."""
        self.update(batch, "test")

    def resized(self, *, interpolation: str = "linear", **sizes: Any) -> Self:
        """Return a model of another size with these weights, its tables of positions interpolated.

        The weights are copied, with their type, and frozen ones stay frozen. What an encoding has for each position, or
        offset, is interpolated between the rows that it has here; see `pebench.models.resize.resized_state`.

        Args:
            interpolation: ``linear``, or ``bicubic``, as timm does it.
            sizes: Arguments that are to differ, ``image_size`` or ``max_len``.

        Raises:
            ValueError: Where a parameter has no rule for another size, or the sizes make no model; for an unknown
                interpolation, or another argument.
        """
        known = {"image_size", "max_len"} & {*self.hparams}
        if wrong := sizes.keys() - known:
            raise ValueError(f"expected {' and '.join(sorted(known))} alone to differ, got {', '.join(sorted(wrong))}")
        other = type(self)(**{**self.hparams, **sizes}).to(self.device, next(self.parameters()).dtype)
        tables = resized_state(self.trunk.encoding, other.trunk.encoding, interpolation)
        other.load_state_dict(self.state_dict() | {f"trunk.encoding.{name}": rows for name, rows in tables.items()})
        for ours, theirs in zip(self.parameters(), other.parameters(), strict=True):
            theirs.requires_grad_(ours.requires_grad)
        return other.train(self.training)

    def predict_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the logits of a batch as training has it, or of one without labels."""
        tensors = (batch,) if isinstance(batch, Tensor) else batch
        logits: Tensor = self(*tensors[: self.inputs])
        return logits

    def on_validation_start(self) -> None:
        """Make the metrics 32-bit: Lightning makes them 16-bit with the model, where sums have three digits."""
        self.metrics.to(torch.float32)

    on_test_start = on_validation_start

    def on_validation_epoch_end(self) -> None:
        """Log the validation metrics."""
        self._log_metrics("val")

    def on_test_epoch_end(self) -> None:
        """Log the test metrics."""
        self._log_metrics("test")

    def _log_metrics(self, stage: str) -> None:
        for name in self.metrics:
            if name.startswith(stage):
                # compute() joins the sums of all processes itself; log() is given a number that is final.
                self.log(name, self.metric(name).compute())
                self.metric(name).reset()

    def configure_optimizers(self) -> Any:
        """AdamW without decay on position parameters, norms and biases; the schedule moves every step.

        Raises:
            ValueError: If the trainer has no last step.
        """
        decay: list[nn.Parameter] = []
        keep: list[nn.Parameter] = []
        for name, parameter in self.named_parameters():
            (keep if parameter.ndim < 2 or name.startswith("trunk.encoding.") else decay).append(parameter)
        groups = [{"params": decay, "weight_decay": self.weight_decay}, {"params": keep, "weight_decay": 0.0}]
        # A fused AdamW takes float16's loss scale off within its step, after the clipping, which needs it off before.
        scaled = getattr(self.trainer.precision_plugin, "scaler", None) is not None
        # beta2 as in Vaswani et al. 2017, section 5.3
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate, betas=(0.9, 0.98), fused=not scaled)
        total = self.trainer.estimated_stepping_batches
        if math.isinf(total):
            raise ValueError("the learning rate falls until the last step: give the Trainer max_steps or max_epochs")
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(step, int(total), self.warmup))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip by norm, as Lightning would; it refuses a fused optimizer in 16 bit, though bfloat16 scales nothing.

        Where float16 does scale, `configure_optimizers` fuses nothing, and gradients come here as they are.
        """
        if gradient_clip_val:
            weights = [weight for group in optimizer.param_groups for weight in group["params"]]
            clip = nn.utils.clip_grad_value_ if gradient_clip_algorithm == "value" else nn.utils.clip_grad_norm_
            clip(weights, gradient_clip_val)


class Classifier(SequenceModule):
    """Base of the classifiers. A batch holds the arguments of `forward`, then the labels (B,)."""

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Return the cross-entropy in nats per example."""
        *inputs, labels = batch
        if labels.is_floating_point():  # shares of classes (B, classes), of images that are mixed, in the model's bits
            labels = labels.float()
        # Of a model in 16 bit the logits are too, which is too coarse for the logarithm of a softmax.
        return F.cross_entropy(self(*inputs).float(), labels)

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        """Update loss and accuracy with a batch."""
        *inputs, labels = batch
        logits = self(*inputs).float()
        # By examples, as the last batch is smaller than the others.
        self.metric(f"{stage}/loss").update(F.cross_entropy(logits, labels), weight=len(labels))
        self.metric(f"{stage}/accuracy").update(logits, labels)


def encoding_name(encoding: EncodingLike) -> str:
    """Return the text from which an encoding can be built again, as checkpoints hold no classes.

    Args:
        encoding: A name, which is returned as it is, or a class: registered by a name, or else in a module.

    Raises:
        UserError: For anything else.

    Example:
        >>> from pebench.encodings.rope import RotaryEncoding
        >>> encoding_name(RotaryEncoding), encoding_name("rope(theta=500.0)")
        ('rope', 'rope(theta=500.0)')
    """
    if isinstance(encoding, str):
        return encoding
    if not callable(encoding):
        raise UserError(f"expected an encoding's name, such as 'rope(theta=500.0)', or its class, got {encoding!r}")
    place = f"{encoding.__module__}:{getattr(encoding, '__qualname__', type(encoding).__qualname__)}"
    return str(getattr(encoding, "__dict__", {}).get("name", place))  # its own name: a subclass inherits its parent's


def schedule(step: int, total: int, warmup: float) -> float:
    """Return the factor of the learning rate: a linear warm-up to 1, then a cosine to 0.1.

    Args:
        step: Step, from 0.
        total: Number of steps.
        warmup: Fraction of the steps in which it rises.

    Example:
        >>> [round(schedule(step, 100, 0.1), 2) for step in (0, 9, 10, 55, 100)]
        [0.1, 1.0, 1.0, 0.55, 0.1]
    """
    rising = max(1, round(warmup * total))
    if step < rising:
        # From 1 / rising, not from 0: the first step must not be lost.
        return (step + 1) / rising
    # The scheduler is asked once more after the last step; and all steps may be warm-up.
    done = min(1.0, (step - rising) / max(1, total - rising))
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def masked_mean(x: Tensor, valid: Tensor | None) -> Tensor:
    """Return the mean over the tokens that are not padding: (B, L, D), (B, L) to (B, D)."""
    if valid is None:
        return x.mean(dim=1)
    weights = valid.unsqueeze(-1).to(x.dtype)  # (B, L) to (B, L, 1)
    return (x * weights).sum(dim=1) / weights.sum(dim=1)
