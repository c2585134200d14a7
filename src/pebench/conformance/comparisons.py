"""Comparisons of model outputs, which raise `BrokenError` where a property does not hold."""

from torch import Tensor

SAME = 2e-5
"""Largest difference of outputs that count as equal: outputs are of scale 1, and 32-bit noise is a tenth of this."""

DIFFERENT = 1e-3
"""Least difference of outputs that count as different. One between `SAME` and this fails either comparison."""


class BrokenError(Exception):
    """A property does not hold.

    Args:
        expected: Description of the expected behaviour.
        got: Description of the observed behaviour.

    Attributes:
        property: Name of the property.
        setting: Name of the setting in which it was tested.
        failed: True if the encoding raised an exception of its own.
    """

    property = setting = ""
    failed = False

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected, got)
        self.expected, self.got = expected, got

    def __str__(self) -> str:
        return f"{self.property} ({self.setting}): expected {self.expected}, got {self.got}"


def gap(a: Tensor, b: Tensor) -> float:
    """Return the largest difference between two tensors of one shape; NaN where either holds a NaN.

    Raises:
        BrokenError: If their shapes differ.
    """
    if a.shape != b.shape:
        raise BrokenError(f"outputs of one shape, {tuple(b.shape)}", f"{tuple(a.shape)}")
    return (a.detach().float() - b.detach().float()).abs().max().item()


def require_same(a: Tensor, b: Tensor, expected: str, tolerance: float = SAME) -> None:
    """Raise `BrokenError` unless two outputs are equal up to rounding."""
    found = gap(a, b)
    if not found <= tolerance:  # written so that NaN fails
        raise BrokenError(expected, f"a difference of {found:.2g}, above {tolerance:g}")


def require_different(a: Tensor, b: Tensor, expected: str) -> None:
    """Raise `BrokenError` unless two outputs differ by far more than rounding."""
    found = gap(a, b)
    if not found > DIFFERENT:  # written so that NaN fails
        raise BrokenError(expected, f"a difference of {found:.2g}, not above {DIFFERENT:g}")


def require(condition: bool, expected: str, got: object) -> None:
    """Raise `BrokenError` unless the condition holds."""
    if not condition:
        raise BrokenError(expected, str(got))
