"""Tables of positions made for another extent, by interpolation between their rows."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import PositionalEncoding, name_of

LAYOUTS = ("cells", "axes", "offsets")
"""Rows that a parameter may have: one for each cell, for each place on each axis, or for each offset."""

MODES = ("linear", "bilinear", "trilinear")


def resized_state(old: PositionalEncoding, new: PositionalEncoding) -> dict[str, Tensor]:
    """Return the parameters of an encoding for another one that differs from it in the extent alone.

    A table's first and last row keep their vectors, and those in between are linear in the position; the row of offset
    0 stays the row of offset 0. What does not depend on the extent is as it was.

    Args:
        old: The encoding whose parameters are taken.
        new: The same encoding, built for another extent.

    Raises:
        ValueError: Where a parameter depends on the extent in a way that its module does not declare in `layouts`.

    Example:
        >>> from pebench.encodings.base import EncodingSpec, build_encoding
        >>> small, large = (build_encoding("learned", EncodingSpec(2, 1, 1, (n,), causal=True)) for n in (2, 3))
        >>> _ = small.table.data.copy_(torch.tensor([[0.0, 4.0], [2.0, 0.0]]))
        >>> resized_state(small, large)["table"]
        tensor([[0., 4.],
                [1., 2.],
                [2., 0.]])
    """
    state, wanted, owners = old.state_dict(), new.state_dict(), dict(old.named_modules())
    for name, values in state.items():
        if not isinstance(values, Tensor) or values.shape == wanted[name].shape:
            continue
        path, _, own = name.rpartition(".")
        before, after = owners[path], new.get_submodule(path)
        layout = dict(getattr(before, "layouts", ())).get(own)
        if layout is None:
            raise ValueError(f"encoding {name_of(old)!r} has no rule for another size of its parameter {name}")
        state[name] = _resized(values, layout, _extent(before), _extent(after))
    return state


def _extent(owner: nn.Module) -> tuple[int, ...]:
    extent: tuple[int, ...] = owner.spec.extent  # type: ignore[union-attr, assignment]
    return extent


def _resized(table: Tensor, layout: str, old: Sequence[int], new: Sequence[int]) -> Tensor:
    """Return a table whose rows, on the first axis, are those of another extent."""
    if layout == "axes":  # the axes' tables lie one below the other
        parts = table.split(list(old))
        return torch.cat([_between(part, (n,), (m,)) for part, n, m in zip(parts, old, new, strict=True)])
    if layout == "offsets":  # of every layer: (layers, rows, heads)
        old, new = ([2 * n - 1 for n in extent] for extent in (old, new))
        return torch.stack([_between(layer, old, new) for layer in table])
    return _between(table, old, new)


def _between(rows: Tensor, old: Sequence[int], new: Sequence[int]) -> Tensor:
    """Interpolate rows of a grid, in row-major order: (product of old, ...) to (product of new, ...)."""
    grid = rows.flatten(1).T.reshape(1, -1, *old)  # (rows, C) to (1, C, n1, ...)
    # Corners are aligned, so that the first and the last position stay what they are.
    made = F.interpolate(grid.float(), size=tuple(new), mode=MODES[len(old) - 1], align_corners=True)
    return made.reshape(-1, prod(new)).T.reshape(prod(new), *rows.shape[1:]).to(rows.dtype)
