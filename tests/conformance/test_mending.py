"""The declaration that mends a broken property: each that properties rely on is left out or made wrong, and found."""

from typing import Any

import pytest
import torch

from pebench.conformance import PROPERTIES, SETTINGS, Bench, BrokenError, Subject, check
from pebench.conformance.mending import mending_lines
from pebench.encodings.add import AddEncoding
from pebench.encodings.base import PositionalEncoding
from pebench.encodings.registry import load_encoding

CASES: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("alibi", {"relative": False}, "shift", ["relative = True"]),
    ("add", {"relative": True}, "shift", ["relative = False"]),
    ("alibi", {"isotropic": False}, "isotropic", ["isotropic = True"]),
    ("alibi", {"mirror_blind": False}, "mirror", ["mirror_blind = True"]),
    ("none", {"blind": False}, "constructs", ["blind = True"]),
    ("fox", {"contextual": False}, "sparse", ["contextual = True"]),
    ("fox", {"contextual": False, "relative": False}, "sparse", ["contextual = True", "relative = True"]),
    ("learned", {"beyond": "goes on"}, "beyond", ["beyond = 'refuses'"]),
    ("fox", {"kv_cache": "works"}, "cache", ["kv_cache = 'needs more'"]),
    ("xpos", {"kv_cache": "works"}, "cache", ["kv_cache = 'goes stale'"]),
    ("kerple-log", {"size": "0"}, "size", ["size = '2 * num_layers * num_heads'"]),
    ("fire", {"idle": ()}, "gradients", ["idle = ('second.bias',)"]),
]


def broken(subject: Subject, name: str) -> tuple[Bench, bool]:
    """The bench of the first setting in which a property is broken, and True if the encoding raised an exception."""
    for setting in SETTINGS:
        bench = Bench(subject, setting)
        if name == "constructs" or (subject.serves(setting) and PROPERTIES[name].applies(bench)):
            try:
                check(PROPERTIES[name], bench)
            except BrokenError as error:
                return bench, error.failed
    raise AssertionError(f"{name} holds")


def found(maker: Any, name: str) -> list[str]:
    return mending_lines(PROPERTIES[name], *broken(Subject(maker), name))


@pytest.mark.parametrize(
    ("encoding", "changes", "name", "lines"),
    [*CASES[:3], *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[3:])],
)
def test_the_line_that_is_missing_or_wrong_is_found(
    encoding: str, changes: dict[str, Any], name: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for attribute, value in changes.items():
        monkeypatch.setattr(load_encoding(encoding), attribute, value)
    assert found(load_encoding(encoding), name) == lines


class TextAlone(AddEncoding):
    """Cannot be built for a grid, and does not say so."""

    name = "text-alone"

    def __init__(self, spec):
        super().__init__(spec)
        if len(spec.extent) > 1:
            raise ValueError("encoding 'text-alone' serves text")


class CausalAlone(AddEncoding):
    """Cannot be built for a bidirectional model, and does not say so."""

    name = "causal-alone"

    def __init__(self, spec):
        super().__init__(spec)
        if not spec.causal:
            raise ValueError("encoding 'causal-alone' serves causal models")


class Leaky(PositionalEncoding):
    """Tells tokens apart by nothing but the first position of all: a fault, which no declaration covers."""

    def prepare(self, positions):
        return positions[:, 0]

    def embed(self, x, state):
        first = torch.nn.functional.pad((state == 0).to(x.dtype)[:, None], (0, x.shape[-1] - 1))
        return x + first + x.mean(1, keepdim=True)


def test_models_that_are_not_served_are_named() -> None:
    assert found(TextAlone, "constructs") == ["axes = (1,)"]
    assert found(CausalAlone, "constructs") == ["causal_only = True"]


def test_a_fault_is_not_declared_away() -> None:
    assert found(Leaky, "future") == []
    assert found(Leaky, "axes") == []


def test_a_function_has_no_class_to_write_a_line_in() -> None:
    kerple = load_encoding("kerple-log")
    assert found(lambda spec: type("Changed", (kerple,), {"size": "0"})(spec), "size") == []
