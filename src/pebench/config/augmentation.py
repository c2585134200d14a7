"""Augmentation of training images: its settings, which are those of `TrainConfig` by the same names. Torch-free."""

import math
import re
from dataclasses import dataclass, fields
from typing import Any

from pebench.errors import UserError

STRONGEST = 30
"""Largest magnitude of RandAugment, as in torchvision: its operations have 31 strengths, from 0."""

WRITTEN = re.compile(r"([1-9][0-9]?)@(30|[12]?[0-9])")
"""Operations and magnitude, each written in one way alone, so that equal runs have one key."""


@dataclass(frozen=True)
class Augmentation:
    """How training images are augmented besides a task's crops and flips; the default is not at all.

    Args:
        rand_augment: RandAugment (Cubuk et al. 2020): operations on each image, and their magnitude from 0 to 30, as in
            ``2@9``.
        mixup: Parameter alpha of mixup (Zhang et al. 2018); 0 for none.
        cutmix: Parameter alpha of CutMix (Yun et al. 2019); 0 for none. With mixup too, each image draws one of both.
        erasing: Probability of erasing a rectangle of an image (Zhong et al. 2020).
        label_smoothing: Share of a label that is spread over all classes (Szegedy et al. 2016).

    Raises:
        UserError: For a value that cannot be.

    Example:
        >>> Augmentation(rand_augment="2@9", cutmix=1.0).operations
        (2, 9)
    """

    rand_augment: str | None = None
    mixup: float = 0.0
    cutmix: float = 0.0
    erasing: float = 0.0
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        self.operations  # noqa: B018 - refuses a text that says none
        # Written so that NaN is refused too: every comparison with it is false.
        for name, fits, expected in (
            ("mixup", 0 <= self.mixup < math.inf, "0 or more"),
            ("cutmix", 0 <= self.cutmix < math.inf, "0 or more"),
            ("erasing", 0 <= self.erasing <= 1, "from 0 to 1"),
            ("label_smoothing", 0 <= self.label_smoothing < 1, "from 0 to below 1"),
        ):
            if not fits:
                raise UserError(f"train.{name} must be {expected}, got {getattr(self, name)}.")

    @staticmethod
    def of(train: Any) -> "Augmentation":
        """Return the augmentation that a run's `TrainConfig` asks for."""
        return Augmentation(**{f.name: getattr(train, f.name) for f in fields(Augmentation)})

    @property
    def operations(self) -> tuple[int, int]:
        """RandAugment's operations on each image, and their magnitude; ``(0, 0)`` without it."""
        if self.rand_augment is None:
            return 0, 0
        if not (found := WRITTEN.fullmatch(self.rand_augment)):
            raise UserError(
                f"train.rand_augment expects a number of operations and a magnitude up to {STRONGEST}, as in 2@9, "
                f"got {self.rand_augment!r}."
            )
        return int(found[1]), int(found[2])

    @property
    def mixes(self) -> bool:
        """True if images are mixed with others."""
        return bool(self.mixup or self.cutmix)
