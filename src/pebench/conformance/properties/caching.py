"""Properties of a text that goes on token by token, with a cache of the keys and values so far."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from pebench.conformance.bench import Bench, noise
from pebench.conformance.comparisons import SAME, gap, require
from pebench.conformance.properties.base import both, encoding_property, has_one_axis, is_causal
from pebench.encodings.base import grid_positions
from pebench.models.transformer import Transformer

ASKED = {
    "embed": (0,), "residual": (0,), "query_key": (0, 1, 2), "bias": (0, 2), "value": (0, 1), "output": (0, 2),
}  # fmt: skip
"""Arguments of each hook that no cache holds of earlier tokens. Bias is given their keys, and output their values."""


@encoding_property("cache", when=both(is_causal, has_one_axis))
def _cache(bench: Bench) -> None:
    """In causal text a cache of keys and values works, needs more beside it, or goes stale, as it declares."""
    model, content = bench.model, bench.noise(2, 3 * bench.length)
    positions = grid_positions((len(content[0]),))
    try:
        model(content, positions)
    except ValueError:  # "beyond" checks which encodings may refuse a longer text
        content, positions = content[:, : bench.length], positions[: bench.length]
    found, why = _found(model, content, positions)
    declared = bench.encoding.kv_cache
    require(found == declared, f"a cache that {declared}, as kv_cache declares", f"one that {found}: {why}")


def _found(model: Transformer, content: Tensor, positions: Tensor) -> tuple[str, str]:
    """Return how a cache fares, in the words of `kv_cache`, and what shows it."""
    whole = _cached(model, content, positions)
    for n in range(1, len(positions)):
        part = _cached(model, content[:, :n], positions[:n])
        if any(gap(long[..., :n, :], short) > SAME for long, short in zip(whole, part, strict=True)):
            return "goes stale", f"keys or values of {n} tokens change until there are {len(positions)}"
    if hooks := dict.fromkeys(_asking(model, content, positions)):
        return "needs more", f"{' and '.join(hooks)} of the last token changes with other content of earlier ones"
    return "works", "keys and values stay, and the last token needs nothing else of earlier ones"


def _cached(model: Transformer, content: Tensor, positions: Tensor) -> list[Tensor]:
    """Return the keys and the values of every layer, (B, H, L, K) each, as attention is given them."""
    found: list[Tensor] = []

    def kept(hook: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            output = hook(*given)
            found.append(output[1] if isinstance(output, tuple) else output)
            return output

        return run

    hooks: dict[str, Any] = {name: kept(getattr(model.encoding, name)) for name in ("query_key", "value")}
    with torch.no_grad(), mock.patch.multiple(model.encoding, **hooks):
        model(content, positions)
    return found


def _asking(model: Transformer, content: Tensor, positions: Tensor) -> Iterator[str]:
    """Yield the hooks whose output for the last token depends on more of earlier ones than a cache holds."""
    asking: list[str] = []

    def watched(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            others = [_replaced(one) if place in ASKED[name] else one for place, one in enumerate(given)]
            output = hook(*given)
            pairs = zip(_tensors(output), _tensors(hook(*others)), strict=True)
            if any(gap(one[..., -1, :], other[..., -1, :]) > SAME for one, other in pairs):
                asking.append(name)
            return output

        return run

    hooks: dict[str, Any] = {name: watched(name, getattr(model.encoding, name)) for name in ASKED}
    with torch.no_grad(), mock.patch.multiple(model.encoding, **hooks):
        model(content, positions)
    yield from asking


def _replaced(given: Tensor) -> Tensor:
    """Return a tensor (..., L, D) with noise in place of all tokens but the last."""
    return torch.cat((noise(*given[..., :-1, :].shape, seed=11).to(given.dtype), given[..., -1:, :]), dim=-2)


def _tensors(output: Any) -> list[Tensor]:
    """Return what a hook returned as a list: two tensors, one, or none."""
    return [] if output is None else [*output] if isinstance(output, tuple) else [output]
