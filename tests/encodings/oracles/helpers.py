"""What the comparisons share: packages that may be missing, layouts that differ, and how far results are apart."""

import logging
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from pebench.compat import import_torchvision
from pebench.encodings import PositionalEncoding
from tests.encodings.values.helpers import Position, noise, state_of

log = logging.getLogger(__name__)


def oracle(module: str) -> Any:
    """Import a package's module, or skip the test where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own business
        import_torchvision()
        return pytest.importorskip(module, reason=f"needs {module}: pip install '.[oracle]'")


def agree(ours: Tensor, theirs: Tensor, tolerance: float = 1e-5) -> None:
    assert ours.shape == theirs.shape
    difference = (ours - theirs).abs().max().item()
    log.info("largest difference %.0e, of values up to %.1f", difference, theirs.abs().max().item())
    assert difference <= tolerance


def steps(length: int) -> list[Position]:
    return [(float(n),) for n in range(length)]


def cells(rows: int, columns: int) -> list[Position]:
    return [(float(r), float(c)) for r in range(rows) for c in range(columns)]


def queries_and_keys(length: int, width: int = 12, heads: int = 2) -> tuple[Tensor, Tensor]:
    return noise(2, heads, length, width), noise(2, heads, length, width, seed=3)


def encoded(encoding: PositionalEncoding, positions: list[Position], layer: int = 0) -> tuple[Tensor, Tensor]:
    q, k = queries_and_keys(len(positions), encoding.spec.head_dim, encoding.spec.num_heads)
    with torch.no_grad():
        return encoding.query_key(q, k, q, state_of(encoding, positions), layer)


def bias_of(encoding: PositionalEncoding, positions: list[Position], layer: int = 0) -> Tensor:
    q, k = queries_and_keys(len(positions), encoding.spec.head_dim, encoding.spec.num_heads)
    with torch.no_grad():
        bias = encoding.bias(
            q, k, noise(2, len(positions), encoding.spec.d_model), state_of(encoding, positions), layer
        )
    assert bias is not None
    return bias


def neighbours(halves: Tensor) -> Tensor:
    """Channel pairs (c, c + K/2), as ours are, to (2c, 2c + 1), as the papers' are."""
    return torch.stack(halves.chunk(2, dim=-1), dim=-1).flatten(-2)


def blocks(interleaved: Tensor, axes: int = 1) -> Tensor:
    """Each axis's (sin, cos, sin, cos, ...) to all its sines and then all its cosines."""
    return interleaved.unflatten(-1, (axes, -1, 2)).mT.flatten(-3)
