"""Sizes that data decide: batches, steps, and powers of two. No torch here."""

import math
from collections.abc import Mapping

EPOCHS = 10
"""Epochs of a budget, within its limits."""


def power_of_two(value: float, least: int, most: int) -> int:
    """Return the smallest power of two that is not below a value, within limits.

    Example:
        >>> power_of_two(33, 8, 512), power_of_two(3, 8, 512), power_of_two(9999, 8, 512)
        (64, 8, 512)
    """
    return min(most, max(least, 2 ** math.ceil(math.log2(max(value, 1)))))


def batch_and_steps(examples: int, most: int = 64) -> tuple[int, int]:
    """Return the examples in a batch, of which an epoch has ten where it can, and the steps of a budget.

    Args:
        examples: Number of training examples.
        most: Largest batch.

    Example:
        >>> batch_and_steps(45_000), batch_and_steps(8000), batch_and_steps(100), batch_and_steps(3)
        ((64, 2000), (64, 1300), (8, 200), (2, 200))
    """
    batch = most
    while batch > examples / 10 and batch > 8:
        batch //= 2
    while batch > examples and batch > 1:
        batch //= 2
    steps = math.ceil(EPOCHS * examples / batch / 100) * 100
    return batch, min(2000, max(200, steps))


SETTINGS = {
    "max_len": "data.max_len", "vocab_size": "data.vocab_size", "patch": "data.patch_size",
    "steps": "train.max_steps", "batch_size": "train.batch_size",
}  # fmt: skip
"""Settings of runs by the option of a task that decides them."""


def sizes_text(options: Mapping[str, object]) -> str:
    """Return the sentence on sizes that data decide, and on how a user changes them; empty if they decide none."""
    sizes = ", ".join(f"{SETTINGS[name]}={value}" for name, value in options.items() if name in SETTINGS)
    return f"from the data: {sizes} (change them with --set)" if sizes else ""
