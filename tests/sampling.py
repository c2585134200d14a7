"""Choose which of many combinations the default run tests; the others are marked slow, and `make slow` runs them."""

import hashlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest

Case = Any  # pytest.param(...), whose class pytest keeps to itself


def sampled(cases: Iterable[Case], share: float, *kinds: Callable[..., Hashable]) -> list[Case]:
    """Keep a fixed share of the cases in the default run and mark the others slow.

    A case is chosen by its id alone, so the choice is the same on every machine and in every process, and a new case
    changes that of no other.

    Args:
        cases: Parameter sets, each with an id.
        share: Share of the cases that the default run tests, from 0 to 1.
        kinds: Functions of a case's values. Whatever such a function returns for any case, it returns for at least
            one case of the default run: `lambda name, setting: name` keeps every name in it.

    Returns:
        All cases in their order.
    """
    cases = list(cases)
    chosen = {case.id for case in cases if place(case.id) < share}
    for kind in kinds:
        members: dict[Hashable, list[str]] = {}
        for case in cases:
            members.setdefault(kind(*case.values), []).append(case.id)
        for ids in members.values():
            if chosen.isdisjoint(ids):
                chosen.add(min(ids, key=place))
    return [case if case.id in chosen else slow(case) for case in cases]


def place(name: str) -> float:
    """Return a number from 0 to 1 that depends on the name alone, evenly spread over names."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64


def slow(case: Case) -> Case:
    """Return the same case, marked slow."""
    return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
