"""Properties of the state of an instance: saved, copied, bounded in size and shared with no other."""

import copy
import inspect
import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pebench.conformance.bench import Bench, noise
from pebench.conformance.comparisons import DIFFERENT, gap, require, require_same
from pebench.conformance.properties.base import encoding_property


@encoding_property("saves")
def _saves(bench: Bench) -> None:
    """A fresh instance that loads the state of a used one gives the same, whatever the length it was used at."""
    used, fresh = bench.trunk(), bench.trunk(seed=5)
    output = used(bench.content)
    # Each has prepared for another length last: nothing of that may be part of the state.
    used(bench.content[:, :2], bench.positions[:2].clone())
    fresh(bench.content[:, :3], bench.positions[:3].clone())
    fresh.load_state_dict(used.state_dict())
    require_same(fresh(bench.content), output, "a model that loads another's state to give the same", 0.0)
    names = set(used.state_dict()) - set(bench.trunk().state_dict())
    require(not names, "a state of the same names after use", f"{sorted(names)} on top")


@encoding_property("copies")
def _copies(bench: Bench) -> None:
    """A copy of a used model gives the same, and so does one that was pickled."""
    model = bench.trunk()
    output = model(bench.content)
    # after a forward pass, as caches filled by it must survive copying, or be left out
    twins = [copy.deepcopy(model)]
    if "<locals>" not in getattr(bench.subject.maker, "__qualname__", ""):  # which Python cannot pickle
        twins.append(pickle.loads(pickle.dumps(model)))
    for twin in twins:
        require_same(twin(bench.content), output, "a copy to give the same", 0.0)
    # zeros in the copy show whether it shares storage with the original
    with torch.no_grad():
        for parameter in twins[0].parameters():
            parameter.zero_()
    require_same(model(bench.content), output, "a change of the copy to leave the original alone", 0.0)


@encoding_property("memory", once=True)
def _memory(bench: Bench) -> None:
    """Keeps no more memory after many positions than after few."""
    model, sizes = bench.trunk(), []
    for step in range(1, 12):
        # three lengths, all of which occur in the first six steps: later ones have no reason to keep more
        n = 2 + step % 3
        model(bench.content[:, :n], bench.positions[:n] + (0 if bench.encoding.beyond == "refuses" else step % 5))
        sizes.append(_kept_bytes(model.encoding))
    require(max(sizes[6:]) <= max(sizes[:6]), "as many bytes kept after many positions as after few", sizes)


def _kept_bytes(module: nn.Module) -> int:
    """Count the bytes of tensors in attributes of modules and their classes, and 8 for each entry of a collection."""
    seen: dict[int, int] = {}
    # caches may hang on classes, too; those of torch itself are left out
    classes = {base for part in module.modules() for base in type(part).__mro__} - set(nn.Module.__mro__)
    stack: list[Any] = [vars(part) for part in module.modules()] + [dict(vars(cls)) for cls in classes]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            # by address: views of one storage from the same start count once
            seen[item.data_ptr()] = item.untyped_storage().nbytes()
        elif id(item) not in seen and isinstance(item, dict | list | tuple | set):
            seen[id(item)] = 8 * len(item)
            stack += item.values() if hasattr(item, "values") else item
    return sum(seen.values())


@encoding_property("instances", once=True)
def _instances(bench: Bench) -> None:
    """Instances with other options, or in other models, share nothing."""
    size: dict[str, Any] = {"num_heads": 2, "extent": tuple(8 * n for n in bench.extent)}
    model, positions = bench.trunk(**size), 8 * bench.positions  # wide and far enough for every option to matter
    before, gaps = model(bench.content, positions), {}
    for options, changes in _variations(bench, size):
        other = bench.trunk(options=options, **{**size, **changes})
        between = other(noise(3, bench.length, other.encoding.content_width), positions)
        after = model(bench.content, positions)
        require_same(after, before, f"another instance with {options or changes} to change nothing", 0.0)
        if options:  # other parameters are a difference, too
            alike = [p.shape for p in other.parameters()] == [p.shape for p in model.parameters()]
            gaps[str(options)] = gap(between, before) if alike else math.inf
    require(not gaps or max(gaps.values()) > DIFFERENT, "some other option to make a difference", gaps)


def _variations(bench: Bench, size: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield options, or changes of the model, that build another instance: each number is doubled, and halved."""
    tries: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {"num_heads": 1}), ({}, {"d_model": 64})]
    built = bench.subject.build(replace(bench.spec, **size))
    for name, option in inspect.signature(bench.subject.maker).parameters.items():
        now = bench.subject.given.get(name, option.default)
        # None stands for a value that the constructor works out, which instances keep under the option's name
        now = getattr(built, name, None) if now is None else now
        if option.kind == option.KEYWORD_ONLY and isinstance(now, int | float) and not isinstance(now, bool):
            # twice zero is zero again, hence the 1
            tries += [({name: 2 * now or 1}, {}), ({name: now // 2 if isinstance(now, int) else now / 2}, {})]
    for options, changes in tries:
        try:
            bench.subject.build(replace(bench.spec, **{**size, **changes}), **options)
        # not every combination is allowed: half of a width may be odd, say
        except (ValueError, TypeError):
            continue
        yield options, changes
