"""A memo of the last tensor: keeps the result of a computation while its input stays the same."""

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")


class Memo(Generic[Made]):
    """Keeps what was made of the last tensor, and returns it for the same tensor.

    Tensors are compared by identity, as comparing numbers would make an accelerator wait. One that was written in place
    since is another one: PyTorch counts how often it is written, but for tensors made in inference mode, and not in
    compiled graphs. A copy or a pickle begins empty: everything can be made again.

    Args:
        uncounted: Keep what was made of tensors from inference mode too, until `end_pass` drops it.
    """

    def __init__(self, uncounted: bool = False) -> None:
        self.uncounted = uncounted
        self.clear()

    def __reduce__(self) -> "tuple[type[Memo[Made]], tuple[bool]]":
        """Copy and pickle as an empty one."""
        return type(self), (self.uncounted,)

    def clear(self) -> None:
        """Keep nothing."""
        # the tensor itself, not its id: a number is given to another tensor once this one is gone
        self._kept: tuple[Tensor, int | None, Made] | None = None

    @property
    def source(self) -> Tensor | None:
        """The tensor of which something is kept."""
        return None if self._kept is None else self._kept[0]

    def made_of(self, source: Tensor, make: Callable[[], Made]) -> Made:
        """Return what was made of a tensor, made now unless it is kept.

        Args:
            source: The tensor that it depends on.
            make: Function that makes it; where it raises, what was kept before stays.
        """
        version = _version(source)
        if self._kept is not None and source is self._kept[0] and version == self._kept[1]:
            return self._kept[2]
        made = make()
        self._kept = None if version is None and not self.uncounted else (source, version, made)
        return made

    def end_pass(self) -> None:
        """Drop what the next pass may not have: of a source with a gradient, or one whose writes are not counted."""
        if self._kept is not None and (self._kept[1] is None or self._kept[0].requires_grad):
            self.clear()


def _version(source: Tensor) -> int | None:
    """Return how often a tensor was written in place; None where PyTorch does not count it."""
    if torch.compiler.is_compiling():  # a graph has no such numbers, and compares by identity alone
        return 0
    return None if source.is_inference() else source._version
