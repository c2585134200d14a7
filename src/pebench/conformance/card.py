"""Measure what an encoding does by running it: where it acts, which invariances it has, what a step costs."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from pebench.conformance.bench import SETTINGS, Bench, Setting, Subject, noise, perturbed
from pebench.encodings.base import EncodingSpec
from pebench.encodings.build import build_encoding
from pebench.encodings.pairs import PairBias
from pebench.models.attention import fastest_kernel
from pebench.models.transformer import Transformer

PLACES = {
    "place": "positions", "embed": "the input", "residual": "the residual stream", "query_key": "queries and keys",
    "bias": "attention logits", "value": "values", "output": "outputs of heads",
}  # fmt: skip
"""Description of what each hook changes."""

INVARIANCES = {
    "blind": "any order of tokens", "contextual": "all positions (it counts tokens)", "relative": "a shift",
    "isotropic": "rows exchanged with columns", "mirror_blind": "the mirror image",
}  # fmt: skip
"""Description of what an encoding ignores that declares such an attribute."""

LENGTHS = (64, 256)
"""Numbers of tokens for which steps are timed: squares, which serve grids too."""


def card(subject: Subject, rounds: int = 9) -> dict[str, str]:
    """Describe an encoding by title and text; what cannot be measured, as the encoding fails, is said to be unknown.

    Args:
        subject: The encoding; it must serve at least one setting.
        rounds: Number of timed steps of which each time is the median.
    """
    served = [setting for setting in SETTINGS if subject.serves(setting)]
    bench = Bench(subject, served[0])
    measures: dict[str, Callable[[], str]] = {
        "acts on": lambda: ", ".join(acts_on(bench)) or "nothing",
        "serves": lambda: ", ".join(setting.name for setting in served),
        "parameters": lambda: parameters(subject, served),
        "invariances": lambda: ", ".join(invariances(subject, served)) or "none",
        "beyond training": lambda: "asks for no positions" if bench.encoding.contextual else bench.encoding.beyond,
        "KV cache": lambda: kv_cache(subject),
        "attention": lambda: attention(bench),
        "a step takes": lambda: step_time(subject, rounds),
    }
    return {title: _measured(measure) for title, measure in measures.items()}


def _measured(measure: Callable[[], str]) -> str:
    try:
        return measure()
    except Exception as error:  # of anyone's encoding
        return f"unknown, as it fails: {type(error).__name__}"


def acts_on(bench: Bench) -> list[str]:
    """List what an encoding changes.

    Its hooks are watched while a model runs: an encoding made of others overrides all hooks, and may return from some
    of them what it was given.
    """
    acting: set[str] = set()
    model = bench.trunk()
    hooks: dict[str, Any] = {hook: _watched(hook, getattr(model.encoding, hook), acting) for hook in PLACES}
    with torch.no_grad(), mock.patch.multiple(model.encoding, **hooks):
        for training in (*[True] * 8, False):  # random positions may be drawn as they were given, but not every time
            model.train(training)(bench.content)
    return [text for hook, text in PLACES.items() if hook in acting]


def _watched(hook: str, plain: Callable[..., Any], acting: set[str]) -> Callable[..., Any]:
    """Return a hook that adds its name to `acting` when its output differs from its input."""

    def watched(*arguments: Any) -> Any:
        # Clones, as a hook may write into its arguments.
        given = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
        output = plain(*arguments)
        if hook == "query_key":
            changed = any(map(_differs, output, given[:2]))
        elif hook == "bias":
            changed = _differs(output, None)
        else:
            changed = _differs(output, given[0])
        if changed:
            acting.add(hook)
        return output

    return watched


def _differs(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is not other
    return not torch.equal(one, other)


def parameters(subject: Subject, served: list[Setting]) -> str:
    """Describe the number of parameters in each setting, with the declared formula."""
    built = {setting.name: subject.build(setting.spec) for setting in served}
    counts = {name: sum(p.numel() for p in encoding.parameters()) for name, encoding in built.items()}
    numbers = "0" if not any(counts.values()) else ", ".join(f"{count:,} ({name})" for name, count in counts.items())
    # The formula depends on the options. One that only repeats the number is left out.
    formulas = {encoding.size for encoding in built.values() if not encoding.wraps} - {numbers}
    return f"{numbers}; declared: {', '.join(formulas)}" if formulas else numbers


def invariances(subject: Subject, served: list[Setting]) -> Iterator[str]:
    """Yield the declared invariances, which properties confirm, with the settings of those that not all have."""
    grids = [setting for setting in served if len(setting.extent) > 1]
    bidirectional = [setting for setting in served if not setting.causal]
    possible = {"isotropic": grids, "mirror_blind": bidirectional}
    for attribute, text in INVARIANCES.items():
        candidates = possible.get(attribute, served)
        names = [setting.name for setting in candidates if getattr(subject.build(setting.spec), attribute)]
        if names:
            everywhere = len(names) == len(candidates)
            yield text if everywhere else f"{text} ({', '.join(names)})"


def kv_cache(subject: Subject) -> str:
    """Describe how a cache of keys and values fares during generation, as a property confirms."""
    text = next(setting for setting in SETTINGS if setting.causal and len(setting.extent) == 1)
    if not subject.serves(text):
        return "serves no causal text"
    found = subject.build(text.spec).kv_cache
    return f"{found} than keys and values" if found == "needs more" else found


KERNELS = {"sdpa": "fused", "matmul": "matrix products", "blocks": "blocks of queries", "flex": "FlexAttention"}
"""Names of the kernels of attention on a card."""


def attention(bench: Bench) -> str:
    """Describe the attention kernel that training uses on this device, and the bias that it is given."""
    seen: list[str] = []

    def watch(q: Tensor, mask: Tensor | PairBias | None) -> str:
        bias = "without a bias" if mask is None else "with a trained bias" if mask.requires_grad else "with a bias"
        kernel = fastest_kernel(q, mask)
        seen.append(KERNELS[kernel] + ", " + bias)
        return kernel

    model = bench.trunk().train()
    with model.using_kernel(watch):
        model(bench.content)
    return "; ".join(dict.fromkeys(seen))  # layers may differ


def step_time(subject: Subject, rounds: int) -> str:
    """Describe the time of a training step at each length for which the encoding can be built."""
    texts = [
        f"{middle:.2f} ({low:.2f} to {high:.2f}) x none's at {length} tokens"
        for length, (low, middle, high) in step_cost(subject, rounds)
    ]
    return ", ".join(texts) or f"not timed: it refuses {' and '.join(map(str, LENGTHS))} tokens"


def step_cost(subject: Subject, rounds: int) -> Iterator[tuple[int, list[float]]]:
    """Time a trunk's forward and backward pass as a multiple of that with ``none``.

    Args:
        subject: The encoding.
        rounds: Number of steps of each model, timed in turns so that a slow moment of the machine slows both.

    Yields:
        A number of tokens and the quartiles of the ratios. Quartiles far apart mean that the machine was busy.
    """
    setting = next(setting for setting in SETTINGS if subject.serves(setting))
    for length in LENGTHS:
        extent = (length,) if len(setting.extent) == 1 else (int(length**0.5),) * 2
        spec = EncodingSpec(64, 4, 2, extent, setting.causal)
        try:
            ours = subject.build(spec)
        except ValueError:  # it may serve fewer positions
            continue
        both = [perturbed(Transformer(encoding)) for encoding in (ours, build_encoding("none", spec))]
        content = [noise(4, length, model.encoding.content_width) for model in both]
        ratios = []
        for _ in range(rounds + 2):
            one, other = (_seconds(model, x) for model, x in zip(both, content, strict=True))
            ratios.append(one / other)
        yield length, statistics.quantiles(ratios[2:])  # the first two warm up


def _seconds(model: Transformer, content: Tensor) -> float:
    """Time one training step."""
    model.zero_grad()
    start = time.perf_counter()
    model.train()(content).square().mean().backward()
    return time.perf_counter() - start
