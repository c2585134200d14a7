"""Properties of positions outside the trained extent."""

import torch

from pebench.conformance.bench import Bench, parts, shuffled
from pebench.conformance.comparisons import BrokenError, require, require_different, require_same
from pebench.conformance.properties.base import both, encoding_property, has_one_axis, uses_positions

FAR = 100
"""Factor by which the extrapolation properties exceed the trained positions."""

VERY_FAR = 15990
"""Shift to positions so far out that neighbours are one number in 16 bit."""


@encoding_property("beyond", when=uses_positions)
def _beyond(bench: Bench) -> None:
    """Beyond the trained extent it does what it declares: goes on, clamps to the extent, or refuses by name."""
    model, content, far = bench.model, bench.content, FAR * bench.positions
    if bench.encoding.beyond == "refuses":
        # of a wrapped encoding, either the wrapper or the inner one may refuse
        names = [part.name for part in parts(bench.encoding) if hasattr(part, "name")]
        try:
            model(content, far)
        except ValueError as error:
            require(any(name in str(error) for name in names), f"a message that names one of {names}", error)
            return
        raise BrokenError("a ValueError beyond the trained extent", "an output")
    output = model(content, far)
    require(bool(output.isfinite().all()), "finite numbers beyond the trained extent", "infinities or none")
    if bench.encoding.beyond == "goes on":
        require_different(output, model(content), "positions beyond the trained extent to differ from those within")
        # positions exchanged among neighbours: equal outputs would mean that rounding made them one
        very_far = VERY_FAR + bench.positions
        moved = model(content, very_far[shuffled(bench.length)])
        require_different(moved, model(content, very_far), "neighbours far out to be told apart")
        return
    clamped = far.minimum(torch.tensor(bench.extent) - 1.0)
    require_same(output, model(content, clamped), "positions beyond the trained extent to be clamped to it")


def _goes_further(bench: Bench) -> bool:
    return bench.encoding.beyond != "refuses"


@encoding_property("longer", when=both(has_one_axis, _goes_further))
def _longer(bench: Bench) -> None:
    """Where it does not refuse, a longer text gives numbers, and its tokens are still told apart."""
    content = bench.noise(2, 3 * bench.length)
    output = bench.model(content)
    require(bool(output.isfinite().all()), "finite numbers in a longer text", "infinities or none")
    # a causal model knows an order without any encoding
    if not (bench.causal or bench.encoding.blind):
        order = shuffled(content.shape[1])
        require_different(bench.model(content[:, order]), output[:, order], "the order of a longer text to be noticed")
