"""Checks of one run's configuration: what cannot work is refused before anything trains."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from pebench.config.augmentation import Augmentation
from pebench.config.protocol import INTERPOLATIONS, MONITORS, PRECISIONS, REGIMES, SEGMENTS, STAGES, TOKEN_TABLES
from pebench.errors import UserError, unknown_name

if TYPE_CHECKING:
    from pebench.config.run import RunConfig


def check_run(config: "RunConfig") -> None:
    """Refuse a configuration that cannot work, before anything trains.

    Raises:
        UserError: With the setting, the expected and the given value.
    """
    _check_positive(config)
    _check_ranges(config)
    _check_names(config)
    Augmentation.of(config.train)  # refuses what cannot be
    check_seed(config.seed)


POSITIVE = (
    "model.d_model", "model.num_heads", "model.d_ff", "model.token_pace", "model.token_scale", "train.max_steps",
    "train.batch_size", "train.learning_rate", "train.evaluations", "train.clip", "data.max_len", "data.vocab_size",
    "data.patch_size",
)  # fmt: skip
"""Settings that must be positive and finite, unless they are None."""

MOST = 10**12
"""End of the whole numbers among them: far beyond what can train, and within what records can hold."""


def _check_positive(config: "RunConfig") -> None:
    for name, value in config.values_of(POSITIVE).items():
        # Written so that NaN is refused too: every comparison with it is false.
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{name} must be positive, got {value}.")
        if isinstance(value, int) and value >= MOST:
            raise UserError(f"{name} must be below {MOST:,}, got {value}.")


def _check_ranges(config: "RunConfig") -> None:
    # The upper ends are excluded: a dropout of 1 leaves nothing of the input, and a warm-up of 1 no step to decay over.
    model, train = config.model, config.train
    for name, value, top in (
        ("model.num_layers", model.num_layers, math.inf),
        ("model.dropout", model.dropout, 1),
        ("train.warmup", train.warmup, 1),
        ("train.weight_decay", train.weight_decay, math.inf),
    ):
        if not 0 <= value < top:
            raise UserError(f"{name} must be in [0, {top}), got {value}.")
    if model.d_model % model.num_heads:
        raise UserError(
            f"model.d_model must be a multiple of model.num_heads, got {model.d_model} and {model.num_heads}."
        )


def _check_names(config: "RunConfig") -> None:
    for name, chosen, known in (
        ("model.segments", config.model.segments or "null", ("null", *SEGMENTS)),
        ("train.precision", config.train.precision, PRECISIONS),
        ("train.token_table", config.train.token_table or "null", ("null", *TOKEN_TABLES)),
        ("train.interpolate", config.train.interpolate or "null", ("null", *INTERPOLATIONS)),
        ("train.monitor", config.train.monitor, MONITORS),
        ("regime", config.regime, REGIMES),
        ("stage", config.stage, STAGES),
    ):
        if chosen not in known:
            raise unknown_name(name, chosen, known)
    size_factors(config.train.beyond)
    if config.train.token_table and config.regime != "width":
        # Matching changes the feed-forward width row by row, and with it the run that the table would be of.
        raise UserError(f"train.token_table needs the regime width, got {config.regime}.")


LARGEST = 64
"""Largest size that is tested, in multiples of the trained one: attention takes its square of memory."""


def size_factors(text: str | None) -> tuple[float, ...]:
    """Return the sizes in ``train.beyond``; none for None.

    Raises:
        UserError: If they are no rising factors above 1 in the form ``2,4,8``, the only one, so that equal runs have
            one key.

    Example:
        >>> size_factors("1.5,2,8"), size_factors(None)
        ((1.5, 2.0, 8.0), ())
    """
    if text is None:
        return ()
    try:
        factors = tuple(float(part) for part in text.split(","))
    except ValueError:
        factors = ()
    rising = all(low < high for low, high in pairwise((1.0, *factors, math.nextafter(LARGEST, math.inf))))
    if not (factors and rising and text == ",".join(f"{factor:g}" for factor in factors)):
        raise UserError(f"train.beyond expects rising factors from above 1 to {LARGEST}, as in 2,4,8, got {text!r}.")
    return factors


def check_seed(seed: int) -> None:
    """Refuse a seed that is out of range.

    Raises:
        UserError: With the limits.
    """
    # The seeds that numpy and Lightning take.
    if not 0 <= seed < 2**32:
        raise UserError(f"a seed must be in [0, 2^32), got {seed}.")
