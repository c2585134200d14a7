"""Tables of positions made for another extent, by interpolation between their rows."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import PositionalEncoding, name_of

MODES = {"linear": ("linear", "bilinear", "trilinear"), "bicubic": ("bicubic", "bicubic")}
"""Torch's name of each interpolation, by the number of axes."""


def resized_state(old: PositionalEncoding, new: PositionalEncoding, interpolation: str = "linear") -> dict[str, Tensor]:
    """Return the parameters of an encoding for another one that differs from it in the extent alone.

    A parameter may have a row for each cell, for each place on each axis, or for each offset, as the encoding's
    ``layouts`` say: ``cells``, ``axes`` or ``offsets``. The row of offset 0 stays the row of offset 0. What does not
    depend on the extent is as it was.

    Args:
        old: The encoding whose parameters are taken.
        new: The same encoding, built for another extent.
        interpolation: ``linear`` between rows, of which the first and the last keep their vectors; or ``bicubic``, as
            images are resampled, whose pixels have a width: timm's, for tables as in its `resample_abs_pos_embed` and
            for biases as in its `resize_rel_pos_bias_table_simple`.

    Raises:
        ValueError: Where a parameter depends on the extent in a way that its module does not declare in `layouts`; for
            an unknown interpolation.

    Example:
        >>> from pebench.encodings import EncodingSpec, build_encoding
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
        state[name] = _resized(values, layout, _extent(before), _extent(after), interpolation)
    return state


def _extent(owner: nn.Module) -> tuple[int, ...]:
    extent: tuple[int, ...] = owner.spec.extent  # type: ignore[union-attr, assignment]
    return extent


def _resized(table: Tensor, layout: str, old: Sequence[int], new: Sequence[int], interpolation: str) -> Tensor:
    """Return a table whose rows, on the first axis, are those of another extent."""
    if layout == "axes":  # the axes' tables lie one below the other
        parts = table.split(list(old))
        return torch.cat(
            [_between(part, (n,), (m,), interpolation) for part, n, m in zip(parts, old, new, strict=True)]
        )
    if layout == "offsets":  # of every layer: (layers, rows, heads)
        old, new = ([2 * n - 1 for n in extent] for extent in (old, new))
        return torch.stack([_between(layer, old, new, interpolation, antialias=False) for layer in table])
    return _between(table, old, new, interpolation)


def _between(
    rows: Tensor, old: Sequence[int], new: Sequence[int], interpolation: str, antialias: bool = True
) -> Tensor:
    """Interpolate rows of a grid, in row-major order: (product of old, ...) to (product of new, ...)."""
    if interpolation not in MODES:
        raise ValueError(f"interpolation must be one of {', '.join(MODES)}, got {interpolation!r}")
    size, cubic = tuple(new), interpolation == "bicubic"
    grid = rows.flatten(1).T.reshape(1, -1, *old).float()  # (rows, C) to (1, C, n1, ...)
    if cubic and len(size) == 1:  # torch knows it for images alone
        grid, size = grid[..., None], (*size, 1)
    turned = cubic and 1 in (grid.shape[-1], size[-1])
    if turned:  # torch 2.15 resamples images one pixel wide wrongly, and those one pixel high as it should
        grid, size = grid.mT, size[::-1]
    # Linear ones align corners, so that the first and the last position stay what they are.
    made = F.interpolate(
        grid, size=size, mode=MODES[interpolation][len(old) - 1], align_corners=not cubic, antialias=cubic and antialias
    )
    made = made.mT if turned else made
    return made.reshape(-1, prod(new)).T.reshape(prod(new), *rows.shape[1:]).to(rows.dtype)
