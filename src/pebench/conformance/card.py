"""What can be said of an encoding by running it: where it acts, what it knows, what it costs."""

import statistics
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from pebench.conformance.bench import SETTINGS, Bench, Setting, Subject, noise, perturbed
from pebench.encodings.base import EncodingSpec, PositionalEncoding, build_encoding
from pebench.models.attention import fastest_kernel
from pebench.models.transformer import Transformer

PLACES = {
    "place": "positions", "embed": "the input", "residual": "the residual stream", "query_key": "queries and keys",
    "bias": "attention logits",
}  # fmt: skip
"""What each hook changes."""

LENGTHS = (64, 256)
"""Tokens for which steps are timed; the square numbers serve grids too."""


def card(subject: Subject, rounds: int = 9) -> dict[str, str]:
    """What there is to say of an encoding, by title.

    Args:
        subject: The encoding; it must serve some kind of model.
        rounds: Steps that each time is the median of.
    """
    served = [setting for setting in SETTINGS if subject.serves(setting)]
    bench = Bench(subject, served[0])
    return {
        "acts on": ", ".join(acts_on(bench)) or "nothing",
        "serves": ", ".join(setting.name for setting in served),
        "parameters": parameters(subject, served),
        "invariances": ", ".join(invariances(subject, served)) or "none",
        "beyond training": "asks for no positions" if bench.encoding.contextual else bench.encoding.beyond,
        "attention": attention(bench),
        "a step takes": ", ".join(
            f"{middle:.2f} ({low:.2f} to {high:.2f}) x none's at {n} tokens"
            for n, (low, middle, high) in step_cost(subject, rounds)
        )
        or f"not timed: it refuses {' and '.join(map(str, LENGTHS))} tokens",
    }


def acts_on(bench: Bench) -> list[str]:
    """What it changes: found by watching its hooks, as those of encodings made of others hand on what they get."""
    acting: set[str] = set()
    model = bench.trunk()
    with torch.no_grad(), _watched(model.encoding, acting):
        for training in (*[True] * 8, False):  # a policy may draw by chance what it was given
            model.train(training)(bench.content)
    return [what for hook, what in PLACES.items() if hook in acting]


def _watched(encoding: PositionalEncoding, acting: set[str]) -> Any:
    """A context in which hooks that return something else than they got are noted."""

    def note(hook: str) -> Any:
        plain = getattr(encoding, hook)

        def watched(*arguments: Any) -> Any:
            given = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
            found = plain(*arguments)  # which may write into them
            untouched: Any = {"query_key": given[:2], "bias": None}.get(hook, given[0])
            pairs = zip(found, untouched, strict=True) if isinstance(found, tuple) else [(found, untouched)]
            if any(one is not other and (other is None or not torch.equal(one, other)) for one, other in pairs):
                acting.add(hook)
            return found

        return watched

    return mock.patch.multiple(encoding, **{hook: note(hook) for hook in PLACES})


def parameters(subject: Subject, served: list[Setting]) -> str:
    """How many, in the small models of the settings, and the declared formula."""
    built = {setting.name: subject.build(setting.spec) for setting in served}
    counts = {name: sum(p.numel() for p in encoding.parameters()) for name, encoding in built.items()}
    numbers = "0" if not any(counts.values()) else ", ".join(f"{count:,} ({name})" for name, count in counts.items())
    formulas = {encoding.size for encoding in built.values() if not encoding.wraps} - {numbers}  # of its options
    return f"{numbers}; declared: {', '.join(formulas)}" if formulas else numbers


def invariances(subject: Subject, served: list[Setting]) -> Iterator[str]:
    """What it declares to ignore, and the properties have found it does."""
    texts = {
        "blind": "any order of tokens", "contextual": "all positions (it counts tokens)", "relative": "a shift",
        "isotropic": "rows exchanged with columns", "mirror_blind": "the mirror image",
    }  # fmt: skip
    wide, plain = len(SETTINGS[2].extent), [s for s in served if not s.causal]
    for name, text in texts.items():
        where = {"isotropic": [s for s in served if len(s.extent) == wide], "mirror_blind": plain}.get(name, served)
        found = [s.name for s in where if getattr(subject.build(s.spec), name)]
        if found:
            yield text if found == [s.name for s in where] else f"{text} ({', '.join(found)})"


def attention(bench: Bench) -> str:
    """The path that attention takes in training: on this device, as what is fused depends on it."""
    seen: list[str] = []

    def watch(q: Tensor, mask: Tensor | None) -> str:
        bias = "without a bias" if mask is None else "with a trained bias" if mask.requires_grad else "with a bias"
        kernel = fastest_kernel(q, mask)
        seen.append({"sdpa": "fused", "matmul": "matrix products"}[kernel] + ", " + bias)
        return kernel

    model = bench.trunk().train()
    with model.using_kernel(watch):
        model(bench.content)
    return "; ".join(dict.fromkeys(seen))


def step_cost(subject: Subject, rounds: int) -> Iterator[tuple[int, list[float]]]:
    """Time of a trunk's forward and backward pass as a multiple of that with ``none``, taken in turns.

    Args:
        subject: The encoding.
        rounds: How often each is timed.

    Yields:
        A number of tokens, and the quartiles of the ratios: where they lie far apart, the machine was busy.
    """
    setting = next(setting for setting in SETTINGS if subject.serves(setting))
    for length in LENGTHS:
        extent = (length,) if len(setting.extent) == 1 else (int(length**0.5),) * 2
        spec = EncodingSpec(64, 4, 2, extent, setting.causal)
        try:
            ours = subject.build(spec)
        except ValueError:  # its positions may be fewer
            continue
        both = [perturbed(Transformer(encoding)) for encoding in (ours, build_encoding("none", spec))]
        content = [noise(4, length, model.encoding.content_width) for model in both]
        times = [[_seconds(model, x) for model, x in zip(both, content, strict=True)] for _ in range(rounds + 2)]
        yield length, statistics.quantiles([one / other for one, other in times[2:]])  # the first two warm up


def _seconds(model: Transformer, content: Tensor) -> float:
    model.zero_grad()
    start = time.perf_counter()
    model.train()(content).square().mean().backward()
    return time.perf_counter() - start
