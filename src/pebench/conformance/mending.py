"""The line of a class that mends a broken property, where a declaration is missing or wrong; found by trying it."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from pebench.conformance.bench import SETTINGS, Bench
from pebench.conformance.comparisons import BrokenError
from pebench.conformance.properties import PROPERTIES, Property, check
from pebench.encodings.base import BEYOND, KV_CACHE

FLAGS = ("relative", "isotropic", "mirror_blind", "blind")
"""Attributes of an encoding that are True or False, and are tried one by one."""

SIZES = ("d_model", "num_layers", "num_heads", "head_dim", "num_axes", "max_len")
"""Names of which a formula of an encoding's size may be a product."""


def mending_lines(item: Property, bench: Bench, failed: bool) -> list[str]:
    """Return the lines that mend a broken property if they stand in the encoding's class, and break no other one.

    Args:
        item: The broken property.
        bench: The bench on which it is broken.
        failed: True if the encoding raised an exception there.

    Returns:
        One line or two, ``isotropic = True``; none where no declaration would do, or a function makes the encoding.
    """
    maker = bench.subject.maker
    if not isinstance(maker, type):
        return []
    for changes in _candidates(item, bench, failed):
        # only the lines that are not there already
        changed = {name: value for name, value in changes.items() if getattr(maker, name) != value}
        if changed and _mends(item, changed, bench):
            return [f"{name} = {value!r}" for name, value in changed.items()]
    return []


def _candidates(item: Property, bench: Bench, failed: bool) -> Iterator[Mapping[str, Any]]:
    """Yield declarations that may be what is missing, the likeliest first."""
    maker: Any = bench.subject.maker
    if item.name == "size":
        yield from ({"size": formula} for formula in _formulas(bench))
        return
    if item.name == "gradients":
        yield {"idle": ()}
        yield from ({"idle": (name,)} for name, _ in bench.encoding.named_parameters())
        return
    yield from ({name: not getattr(maker, name)} for name in FLAGS)
    yield {"contextual": not maker.contextual, "relative": maker.relative or not maker.contextual}
    yield from ({"beyond": beyond} for beyond in BEYOND)
    yield from ({"kv_cache": kv_cache} for kv_cache in KV_CACHE)
    if failed or item.name == "constructs":  # a kind of model that it does not serve
        yield {"axes": (3 - len(bench.extent),)}  # the other one
        if not bench.causal:
            yield {"causal_only": True}


def _formulas(bench: Bench) -> Iterator[str]:
    """Yield products of a model's sizes that give the number of the encoding's parameters, in two sizes of model."""
    counts = [sum(p.numel() for p in bench.subject.build(spec).parameters()) for spec in (bench.spec, bench.larger)]
    for names in itertools.chain.from_iterable(itertools.combinations(SIZES, n) for n in range(len(SIZES) + 1)):
        one, other = (math.prod(getattr(spec, name) for name in names) for spec in (bench.spec, bench.larger))
        factor, rest = divmod(counts[0], one)
        if not rest and factor * other == counts[1]:
            yield " * ".join([*([str(factor)] if factor != 1 or not names else []), *names])


def _mends(item: Property, changes: Mapping[str, Any], bench: Bench) -> bool:
    """Return True if a class with these attributes has the property wherever it applies, and breaks none anew."""
    subject = bench.subject
    # on the class itself: a subclass that no module has could not be copied to another process
    with mock.patch.multiple(subject.maker, **changes):
        benches = [Bench(subject, setting) for setting in SETTINGS]
        if not any(bench.builds for bench in benches):
            return False
        for other in benches:
            if (item.name == "constructs" or _applies(item, other)) and not _holds(item, other):
                return False
        again = Bench(subject, bench.setting)
        others = [other for other in PROPERTIES.values() if _applies(other, again) and not _holds(other, again)]
    # one that the class as it is does not have either is another matter
    return not any(not _applies(other, bench) or _holds(other, bench) for other in others)


def _applies(item: Property, bench: Bench) -> bool:
    return item.name != "constructs" and bench.builds and item.applies(bench)


def _holds(item: Property, bench: Bench) -> bool:
    try:
        check(item, bench)
    except BrokenError:
        return False
    return True
