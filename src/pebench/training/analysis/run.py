"""Every measure on one model, beside the same model untrained."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pebench.data.base import TensorDataModule
from pebench.errors import UserError
from pebench.layers import initialise
from pebench.models.base import SequenceModule
from pebench.training.analysis.ablation import ablation
from pebench.training.analysis.attention import attention
from pebench.training.analysis.capture import Capture, capture
from pebench.training.analysis.collisions import collisions
from pebench.training.analysis.constant_channels import constant_channels
from pebench.training.analysis.energies import energies
from pebench.training.analysis.position_mean import position_mean
from pebench.training.analysis.probes import probes
from pebench.training.analysis.shift import shift
from pebench.training.analysis.subspaces import subspaces
from pebench.training.analysis.terms import terms

TRAINED_ALONE = ("ablation", "constant_channels", "position_mean")
"""Measures of the loss, which say nothing of an untrained model, whose output layer is zero."""

Measure = Callable[[Capture], dict[str, Any] | None]
"""A function of a capture that returns figures by name; None where the measure does not apply to the encoding."""

MEASURES: dict[str, Measure] = {
    "energies": energies,
    "subspaces": subspaces,
    "shift": shift,
    "collisions": collisions,
    "terms": terms,
    "ablation": ablation,
    "attention": attention,
    "probes": probes,
    "position_mean": position_mean,
    "constant_channels": constant_channels,
}
"""Measures by name, in the order in which results show them."""


@dataclass(frozen=True)
class Analysis:
    """The figures of a model, and of the same model before training.

    Args:
        trained: Figures by measure; None for a measure that does not apply to the encoding.
        untrained: The same of the model with its initial parameters, the control.
    """

    trained: dict[str, Any]
    untrained: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return both as a record holds them: numbers that are not finite, which JSON has not, become None."""
        return {"trained": _finite(self.trained), "untrained": _finite(self.untrained)}


def _finite(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _finite(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


SIZES = ("image_size", "max_len")
"""Arguments of a model that data of another size may have others of."""


def analyze(model: SequenceModule, data: TensorDataModule, untrained: SequenceModule | None = None) -> Analysis:
    """Measure where a model keeps content and position, and how its attention uses the two.

    Args:
        model: A trained model: one of a run, or one of your own with any encoding. It is not changed.
        data: Data of its task.
        untrained: The same model as it was before training; by default its weights are drawn anew, from its seed.

    Raises:
        UserError: If it is no model of ours or of a subclass, or one for other data.
    """
    if not isinstance(model, SequenceModule):
        raise UserError(f"expected a model of pebench.models, or of a subclass, got {type(model).__name__}")
    for name, value in data.model_arguments().items():  # which prepares them if need be
        if name not in SIZES and model.hparams.get(name, value) != value:
            raise UserError(f"expected a model for these data, with {name}={value}, got {model.hparams[name]}")
    trained = copy.deepcopy(model).float()
    before = copy.deepcopy(untrained or trained).float().to(trained.device)
    if untrained is None:
        initialise(before, model.seed)
    of_untrained = {name: take for name, take in MEASURES.items() if name not in TRAINED_ALONE}
    return Analysis(measure(trained, data, MEASURES), measure(before, data, of_untrained))


def measure(model: SequenceModule, data: TensorDataModule, measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Return the figures of some measures, by their names, on one model, which is put into evaluation mode."""
    seen = capture(model, data)
    return {name: take(seen) for name, take in measures.items()}
