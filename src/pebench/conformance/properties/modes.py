"""Properties of an encoding in training and in evaluation: shapes, types and repeated calls."""

import copy
from unittest import mock

import torch
from torch import nn

from pebench.conformance.bench import Bench
from pebench.conformance.comparisons import require, require_same
from pebench.conformance.properties.base import encoding_property, uses_positions


@encoding_property("shape")
def _shape(bench: Bench) -> None:
    """Keeps shapes and types, in training and evaluation, and gives numbers."""
    model, shape = bench.model, (3, bench.length, bench.encoding.model_width)
    # copies, as `train` and `bfloat16` change a model in place, and this one is shared
    for mode in (copy.deepcopy(model).train(), copy.deepcopy(model).bfloat16(), model):
        dtype = next(mode.blocks.parameters()).dtype
        output = mode(bench.content.to(dtype))
        require(output.shape == shape, f"an output of shape {shape}", tuple(output.shape))
        require(output.dtype == dtype, f"an output in {dtype}", output.dtype)
        require(bool(output.isfinite().all()), f"finite numbers in {dtype}", "infinities or none")


@encoding_property("places", when=uses_positions)
def _places(bench: Bench) -> None:
    """Wherever it takes tokens to be, in training too, their order on every axis stays."""
    encoding = bench.subject.build(bench.spec)
    with torch.no_grad():
        # back and forth, as places kept from one mode must not be used in the other
        for mode in (True, False, True):
            # a clone is another tensor, for which nothing has been kept
            places = encoding.train(mode).place(bench.positions.clone())
            for axis, column in enumerate(bench.positions.T):
                steps = places[column.argsort(stable=True), axis].diff()
                # Equal positions may stay equal, and later ones must stay later.
                kept = bool(((steps > 0) == (column.sort().values.diff() > 0)).all() and (steps >= 0).all())
                require(kept, f"the order on axis {axis} kept", places[:, axis].tolist())


@encoding_property("repeats")
def _repeats(bench: Bench) -> None:
    """In evaluation says the same twice, also after training and inference mode."""
    model, content = bench.trunk(), bench.content
    with torch.inference_mode():
        first = model(content) + 0  # a tensor of its own, as the output may be a view of what is kept
    # a training pass in between, which may leave state behind
    model.train()
    model(content).square().mean().backward()
    require_same(model.eval()(content), first.clone(), "the same output as before training mode")


@encoding_property("training")
def _training(bench: Bench) -> None:
    """In training says what it says in evaluation, where tokens are taken to be at the same places; but for dropout."""
    model = bench.trunk()
    expected = model(bench.content)
    with torch.no_grad():
        places = model.encoding.place(bench.positions)
    # not `train()`, which would turn dropout on as well
    for part in model.modules():
        part.training = not isinstance(part, nn.modules.dropout._DropoutNd)
    # random places differ between modes by design, so both are given the same
    with mock.patch.object(model.encoding, "place", return_value=places):
        require_same(model(bench.content), expected, "the same output in training as in evaluation")
