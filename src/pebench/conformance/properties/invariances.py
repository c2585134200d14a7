"""Properties of declared invariances: a shift, an exchange of axes, a reflection."""

from typing import Any

import torch

from pebench.conformance.bench import Bench
from pebench.conformance.comparisons import DIFFERENT, gap, require, require_different, require_same
from pebench.conformance.properties.base import both, encoding_property, has_two_axes, is_bidirectional, uses_positions
from pebench.encodings.base import grid_positions


@encoding_property("shift")
def _shift(bench: Bench) -> None:
    """A shift of all positions changes nothing where it declares to be relative, and something elsewhere."""
    encoding, content, axes = bench.encoding, bench.content, len(bench.extent)
    if encoding.relative:
        for shift, tolerance in (([7.0, 13.0], 1e-4), ([1000.0, 1024.0], 3e-3)):  # angles in 32 bit lose digits far out
            moved = bench.model(content, bench.positions + torch.tensor(shift, dtype=torch.float32)[:axes])
            require_same(moved, bench.model(content), f"a shift by {shift[:axes]} to change nothing", tolerance)
        return
    # a slow wave or a wide bucket may not notice one position
    steps = (1.0, 1000.0) if encoding.beyond == "goes on" else (1.0,)
    for axis in range(axes):
        moves = [step * torch.eye(axes, dtype=torch.float32)[axis] for step in steps]
        # built for a longer extent, so that the shifted positions still have rows
        gaps = [gap(bench.roomy(content, bench.positions + m), bench.roomy(content, bench.positions)) for m in moves]
        require(
            max(gaps) > DIFFERENT,
            f"a shift on axis {axis} to be noticed, as relative is False",
            f"differences of {gaps}",
        )


@encoding_property("isotropic", when=both(has_two_axes, uses_positions))
def _isotropic(bench: Bench) -> None:
    """Exchanging rows and columns changes nothing where it declares so, and something elsewhere."""
    # a square: exchanged axes must stay within the trained extent
    model, positions = bench.trunk(extent=(4, 4)), grid_positions((4, 4))
    content = bench.noise(3, 16)
    compare: Any = require_same if bench.encoding.isotropic else require_different
    expected = f"rows and columns exchanged, as isotropic is {bench.encoding.isotropic}, to give"
    expected += " the same" if bench.encoding.isotropic else " another output"
    compare(model(content, positions.flip(-1)), model(content, positions), expected)


@encoding_property("mirror", when=is_bidirectional)
def _mirror(bench: Bench) -> None:
    """A sequence and its mirror image give the same where it declares to be blind to that, and not elsewhere."""
    blind = bench.encoding.mirror_blind
    compare: Any = require_same if blind else require_different
    expected = f"the mirror image, as mirror_blind is {blind}, to give {'the same' if blind else 'another output'}"
    one, other = bench.model(bench.content.flip(1)), bench.model(bench.content).flip(1)
    compare(one, other, expected)
    compare(one.mean(1), other.mean(1), expected + " in the mean")
