"""Properties of the positions that a model is given: each matters, and nothing else stands for them."""

import torch

from pebench.conformance.bench import Bench, shuffled
from pebench.conformance.comparisons import require_different, require_same
from pebench.conformance.properties.base import (
    both,
    encoding_property,
    has_two_axes,
    ignores_positions,
    is_bidirectional,
    uses_positions,
)
from pebench.conformance.properties.extrapolation import FAR
from pebench.conformance.properties.order import check_permuted
from pebench.encodings.base import grid_positions


@encoding_property("positions", when=both(is_bidirectional, uses_positions))
def _positions(bench: Bench) -> None:
    """Knows positions from the positions alone: tokens moved together with theirs give the same."""
    order = shuffled(bench.length)
    moved = bench.model(bench.content[:, order], bench.positions[order])
    require_same(moved, bench.model(bench.content)[:, order], "tokens moved with their positions to give the same")


@encoding_property("context", when=ignores_positions)
def _context(bench: Bench) -> None:
    """Contextual, or blind, it never asks where tokens are."""
    # apart, out of order, and fractions far out: each would be refused or noticed by an encoding that reads them
    for positions in (3 * bench.positions, bench.positions[shuffled(bench.length)], FAR * bench.positions + 0.5):
        output = bench.model(bench.content, positions)
        require_same(output, bench.model(bench.content), "positions to make no difference")


@encoding_property("defaults")
def _defaults(bench: Bench) -> None:
    """The default positions are 0, 1, 2, ..., or the grid's in row-major order."""
    given = bench.model(bench.content, grid_positions(bench.extent))
    require_same(given, bench.model(bench.content), "the default positions, given, to give the same", 0.0)


@encoding_property("rows first", when=both(has_two_axes, uses_positions))
def _rows_first(bench: Bench) -> None:
    """A grid counted column by column is another one."""
    rows, columns = bench.extent
    by_column = torch.tensor([[r, c] for c in range(columns) for r in range(rows)], dtype=torch.float32)
    output = bench.model(bench.content, by_column)
    require_different(output, bench.model(bench.content), "column-major positions to differ")


@encoding_property("axes", when=both(has_two_axes, uses_positions))
def _axes(bench: Bench) -> None:
    """Every axis matters: moving tokens along it, and giving all the same position on it."""
    for axis in range(len(bench.extent)):
        squashed = bench.positions.clone()
        squashed[:, axis] = 0
        require_different(bench.model(bench.content, squashed), bench.model(bench.content), f"axis {axis} to matter")
        if not bench.causal:
            order = torch.arange(bench.length).view(bench.extent).roll(1, axis).flatten()
            check_permuted(bench, order, noticed=True)


@encoding_property("sparse", when=uses_positions)
def _sparse(bench: Bench) -> None:
    """Sparse positions are not dense ones, with padding or without."""
    model, cut = bench.roomy, 2 * bench.length // 3
    for valid in (None, torch.arange(bench.length).expand(3, -1) < cut):
        one, other = (model(bench.content, step * bench.positions, valid)[:, :cut] for step in (3, 1))
        require_different(one, other, "positions three apart to differ from those one apart")


@encoding_property("state", when=uses_positions)
def _state(bench: Bench) -> None:
    """New positions replace what was prepared for the old ones, and old ones come back."""
    model, near, far = bench.roomy, bench.positions.clone(), 2 * bench.positions
    # a clone has the numbers of the first in another tensor: it must be prepared for by numbers, and not by length
    outputs = [model(bench.content, positions) for positions in (near, far, near.clone(), far)]
    require_different(outputs[0], outputs[1], "other positions to give another output")
    require_same(outputs[2], outputs[0], "the first positions, again, to give the same", 0.0)
    require_same(outputs[3], outputs[1], "the second positions, again, to give the same", 0.0)
