"""Properties of numerical precision: attention kernels and 16-bit arithmetic."""

import copy

import torch
from torch import Tensor

from pebench.conformance.bench import DEFAULTS, Bench, default_dtype, noise, perturbed
from pebench.conformance.comparisons import require, require_same
from pebench.conformance.properties.base import encoding_property
from pebench.conformance.properties.extrapolation import VERY_FAR
from pebench.models.transformer import Transformer


@encoding_property("kernels")
def _kernels(bench: Bench) -> None:
    """Fused attention and plain matrix products give the same."""
    outputs = []
    # One padded token in one of three samples: each kernel has a path of its own for masks.
    valid = torch.arange(bench.length).expand(3, -1) >= torch.tensor([[0], [1], [0]])
    for kernel in ("sdpa", "matmul"):
        with bench.model.using_kernel(kernel):
            outputs.append([bench.model(bench.content), bench.model(bench.content, None, valid)[valid]])
    for one, other in zip(*outputs, strict=True):
        require_same(one, other, "fused attention to give the same as plain")


DECLARED = (
    "contextual", "relative", "isotropic", "mirror_blind", "blind", "idle", "beyond", "size",
    "content_width", "model_width",
)  # fmt: skip
"""Attributes of an instance, which some encodings measure when they are built."""


@encoding_property("default dtype", slow=True)
def _default_dtype(bench: Bench) -> None:
    """Draws, says and declares the same whatever type tensors have by default, as 16-bit training sets it."""
    made = bench.trunk(d_model=96, num_heads=12)  # slopes of 4 or 8 heads are powers of 2, which 16 bit hold, too
    expected = _answers(bench, made)
    declared = {name: getattr(bench.encoding, name) for name in DECLARED}
    for dtype in DEFAULTS:
        # a model of 32 bit: its parameters are drawn anew, and its cache is empty, as a copy's is
        model = copy.deepcopy(made)
        with default_dtype(dtype):
            found, built = _answers(bench, perturbed(model)), bench.subject.build(bench.spec)
        for one, other in zip(found, expected, strict=True):
            require(one.dtype == other.dtype, f"an output in {other.dtype} while {dtype} is the default", one.dtype)
            require_same(one, other, f"the same, to the last bit, while {dtype} is the default", 0.0)
        now = {name: getattr(built, name) for name in DECLARED}
        require(now == declared, f"the same attributes where it is built while {dtype} is the default", now)


def _answers(bench: Bench, model: Transformer) -> list[Tensor]:
    """Return what a model says of whole and padded texts; far out too, where its encoding goes on."""
    valid = torch.arange(bench.length).expand(3, -1) < torch.tensor([[bench.length], [2], [5]])
    places = [bench.positions, VERY_FAR + bench.positions] if bench.encoding.beyond == "goes on" else [bench.positions]
    content = noise(3, bench.length, model.encoding.content_width)
    return [model(content, at.clone(), mask).detach() for at in places for mask in (None, valid)]


@encoding_property("16 bit")
def _sixteen_bit(bench: Bench) -> None:
    """16-bit models and autocast stay near 32 bit; far out too, where it goes on: angles are taken in 32 bit.

    The parameters of the 32-bit model are rounded to 16 bit as well: a frequency that is a parameter gives other
    angles far out if it is rounded, whatever the encoding does.
    """
    narrow = copy.deepcopy(bench.model).bfloat16()
    rounded = copy.deepcopy(bench.model)
    with torch.no_grad():
        for parameter in rounded.parameters():
            parameter.copy_(parameter.bfloat16())
    places = [bench.positions.clone()]
    if bench.encoding.beyond == "goes on":
        places.append(VERY_FAR + bench.positions)
    for positions in places:
        exact = rounded(bench.content, positions)
        with torch.autocast("cpu", torch.bfloat16):
            # clones are prepared for anew: tables of the pass in 32 bit would hide what autocast does to them
            cast = rounded(bench.content, positions.clone())
        cut = narrow(bench.content.bfloat16(), positions.clone())
        for output, way in ((cast, "under autocast"), (cut, "in a 16-bit model")):
            # root mean square: the largest of many 16-bit errors varies too much for one bound
            error = (output.float() - exact).square().mean().sqrt().item()
            place = f"an error below 0.05 {way} at position {positions.amax():g}"
            require(error < 0.05, place, f"{error:.2g} (autocast multiplies matrices in 16 bit, by @ and einsum too)")
