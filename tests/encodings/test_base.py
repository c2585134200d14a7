"""The base class of encodings: the state of positions, and the formula of parameters."""

import pytest
import torch
from torch import Tensor, nn

from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.encodings.formulas import evaluate
from pebench.errors import UserError
from pebench.models.base import encoding_name

SPEC = EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=(3,), causal=True)


class Steps(PositionalEncoding):
    """Notes the calls that make a state."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.rate = nn.Parameter(torch.ones(()))
        self.calls: list[tuple[str, torch.dtype, bool]] = []

    def place(self, positions: Tensor) -> Tensor:
        self.calls.append(("place", positions.dtype, torch.is_grad_enabled()))
        return positions + 1

    def prepare(self, positions: Tensor) -> Tensor:
        self.calls.append(("prepare", positions.dtype, torch.is_grad_enabled()))
        return positions * self.rate

    def forward(self, state: Tensor) -> Tensor:
        self.calls.append(("forward", state.dtype, torch.is_grad_enabled()))
        return state * self.rate


@pytest.mark.parametrize("extent", [128, None, "128"])
def test_an_extent_that_is_no_tuple_is_refused(extent):
    with pytest.raises(ValueError, match=rf"extent expects a tuple of lengths, such as \(128,\), got {extent!r}"):
        EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=extent, causal=True)


def test_a_state_is_made_by_place_prepare_and_forward_and_only_the_last_has_gradients():
    encoding = Steps(SPEC)
    state = encoding.state(torch.arange(3)[:, None])
    assert state.flatten().tolist() == [1, 2, 3]
    assert encoding.calls == [
        ("place", torch.int64, False), ("prepare", torch.float32, False), ("forward", torch.float32, True),
    ]  # fmt: skip
    state.sum().backward()
    assert encoding.rate.grad == 6  # of the one multiplication in forward


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("0", 0),
        ("(3 ** num_axes + 1) * d_model", 80),
        ("d_model // 2 * num_axes + 32 * d_model", 264),
        ("num_heads * prod(2 * n - 1 for n in extent)", 30),
        ("max(n for n in range(2, min(8, d_model) + 1) if d_model % n == 0) - 1", 7),
        ("d_model if num_axes == 2 else -extent[0]", 8),
    ],
)
def test_a_formula_is_arithmetic(formula: str, value: int):
    assert evaluate(formula, {"num_axes": 2, "d_model": 8, "num_heads": 2, "extent": (2, 3)}) == value


@pytest.mark.parametrize(
    "formula", ["d_modl", "__import__('os')", "extent.count(1)", "open('x')", "lambda: 1", "'text'"]
)
def test_other_expressions_are_refused(formula: str):
    with pytest.raises(ValueError, match="a formula of parameters may have numbers, names and arithmetic, got "):
        evaluate(formula, {"extent": (2, 3)})


@pytest.mark.parametrize("shape", [(3,), (3, 2), (1, 1, 3, 1)])
def test_positions_of_another_shape_are_refused(shape: tuple[int, ...]):
    for name in ("rope", "add"):
        with pytest.raises(ValueError, match=r"expected positions of shape \(L, 1\), got"):
            build_encoding(name, SPEC).state(torch.zeros(shape))


def test_an_option_that_an_encoding_has_not_is_refused_however_it_is_given():
    for name, options in (("rope(thet=1.0)", {}), ("rope", {"thet": 1.0})):
        with pytest.raises(UserError, match=r"unknown option of encoding 'rope': 'thet'\. Did you mean 'theta'"):
            build_encoding(name, SPEC, options)


def test_what_is_no_encoding_or_could_not_be_found_again_is_told():
    with pytest.raises(UserError, match="expected an encoding's name, such as"):
        encoding_name(None)
    with pytest.raises(UserError, match="It was a class inside a function, which cannot be imported"):
        build_encoding("__main__:make.<locals>.Mine", SPEC)
