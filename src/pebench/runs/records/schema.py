"""The schema of a record: what each of its fields may be, and its checksum. Everything that is read is held to it."""

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

from pebench.config.names import is_text
from pebench.errors import UserError
from pebench.formatting import quoted

CHECKSUM = "checksum"
"""Field with the SHA-256 of the others, in records since schema 2."""

LARGE = 1e100
"""Largest number in a record, so that squares and sums of numbers are finite."""

Check = Callable[[str, Any], None]
"""A function of a field's name and value, which raises a `UserError` for what the field cannot be."""


def checksum(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record's values, however they are laid out in a file.

    Args:
        values: Plain JSON values by name, without the checksum.
    """
    # `default`: numbers of other libraries, such as numpy's, which are subclasses of float.
    return hashlib.sha256(orjson.dumps(values, float, orjson.OPT_SORT_KEYS)).hexdigest()


def check_fields(values: Mapping[str, Any]) -> None:
    """Refuse fields of a record that are not what they may be, by type and by range.

    Args:
        values: Some fields by name, without the configuration, which checks itself.

    Raises:
        UserError: With the field, and the expected and the given value.
    """
    for name, value in values.items():
        if name not in FIELDS:
            raise UserError(f"{quoted(name)} is no field of a record.")
        FIELDS[name](name, value)


def _wrong(where: str, expected: str, value: Any) -> UserError:
    return UserError(f"{where} is {quoted(value)}, expected {expected}")


def number(low: float = -LARGE, high: float = LARGE, *, none: bool = False) -> Check:
    """Return a check for finite numbers from `low` to `high`, or None."""

    def check(where: str, value: Any) -> None:
        # By its type: True is an int, too. No comparison with NaN holds.
        if (type(value) not in (int, float) or not low <= value <= high) and not (none and value is None):
            raise _wrong(where, f"a number from {low:g} to {high:g}", value)

    return check


def whole(low: int = 0, *, none: bool = False) -> Check:
    """Return a check for whole numbers from `low`, or None."""

    def check(where: str, value: Any) -> None:
        if (type(value) is not int or not low <= value < 2**63) and not (none and value is None):
            raise _wrong(where, f"a whole number from {low}", value)

    return check


def words(where: str, value: Any) -> None:
    """Refuse anything but a text on one line, or None."""
    if value is not None and not is_text(value):
        raise _wrong(where, "a text on one line", value)


def version(where: str, value: Any) -> None:
    """Refuse anything but a version as text."""
    if not is_text(value) or not re.fullmatch(r"\d[\w.+-]*", value):
        raise _wrong(where, "a version as in 0.2", value)


def anything_written(where: str, value: Any) -> None:
    """Refuse anything but a text; what is read from a log may have any characters."""
    if not isinstance(value, str):
        raise _wrong(where, "a text", value)


def one_of(*known: Any) -> Check:
    """Return a check for a few values."""

    def check(where: str, value: Any) -> None:
        if not any(type(value) is type(one) and value == one for one in known):
            raise _wrong(where, f"one of {', '.join(map(repr, known))}", value)

    return check


def names_to(each: Check, own: Mapping[str, Check] | None = None) -> Check:
    """Return a check for a mapping of names.

    Args:
        each: Check of its values.
        own: Checks of the values of some names.
    """
    named = own or {}
    return lambda where, values: _check_named(where, values, "names and values", lambda name: named.get(name, each))


def _check_named(where: str, values: Any, expected: str, check_of: Callable[[str], Check]) -> None:
    """Refuse anything but a mapping of names whose values pass the check of their name."""
    if not isinstance(values, Mapping):
        raise _wrong(where, expected, values)
    for name, value in values.items():
        if not is_text(name):
            raise _wrong(f"a name in {where}", "a text on one line", name)
        check_of(name)(f"{where}.{name}", value)


def list_of(each: Check) -> Check:
    """Return a check for a list."""

    def check(where: str, values: Any) -> None:
        if not isinstance(values, list | tuple):
            raise _wrong(where, "a list", values)
        for value in values:
            each(where, value)

    return check


@functools.cache
def _metric(name: str) -> Check:
    """Return the check of a metric, by its name without split and size."""
    bare = name.rpartition("/")[2].partition("@")[0]
    return {"accuracy": number(0, 1), "step": whole(), "best_step": number(0)}.get(bare, number())


def _metrics(where: str, values: Any) -> None:
    _check_named(where, values, "names and numbers", _metric)


def _point(where: str, values: Any) -> None:
    _metrics(where, values)
    if "step" not in values:
        raise _wrong(where, "points with their step", values)


def _plain(where: str, value: Any) -> None:
    """Refuse what is no plain value: facts that another version of pebench records are read, too."""
    if isinstance(value, Mapping):
        names_to(_plain)(where, value)
    elif isinstance(value, list):
        list_of(_plain)(where, value)
    else:
        single(where, value)


def single(where: str, value: Any) -> None:
    """Refuse what is no number, text on one line, True, False or None."""
    if not isinstance(value, bool):
        (words if value is None or isinstance(value, str) else number())(where, value)


def _figure(where: str, value: Any) -> None:
    """Refuse what is no figure of an analysis: a number, or lists of them."""
    (LAYERS if isinstance(value, list | tuple) else NUMBER)(where, value)


def figures(each: Check, own: Mapping[str, Check] | None = None) -> Check:
    """Return a check for the figures of a measure by name, or None; see `names_to`."""
    named = names_to(each, own)
    return lambda where, value: None if value is None else named(where, value)


def _start(where: str, value: Any) -> None:
    # Pages compare it with the time at which a suite was declared; without a zone that would be an exception.
    try:
        zoned = value == "" or datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        zoned = False
    if not zoned:
        raise _wrong(where, "a time as in 2026-01-01T00:00:00+00:00", value)


def _error(where: str, value: Any) -> None:
    if value is not None:
        names_to(anything_written, {"kind": words})(where, value)


SIZES = names_to(whole())
TEXTS = names_to(words)
NUMBER = number(none=True)
LAYERS = list_of(NUMBER)
HEADS = figures(list_of(LAYERS))
"""Figures that have a number for each layer and head."""

MEASURES: Mapping[str, Check] = {
    "terms": HEADS, "attention": HEADS, "ablation": figures(NUMBER),
    "energies": figures(NUMBER, {"content_channels": list_of(NUMBER), "position_channels": list_of(NUMBER)}),
    "subspaces": figures(NUMBER), "collisions": figures(NUMBER), "constant_channels": figures(NUMBER),
    "shift": figures(_figure, {"held_out": LAYERS}), "position_mean": figures(_figure, {"position": LAYERS}),
    "probes": figures(_figure, {"position": LAYERS, "token": LAYERS}),
}  # fmt: skip
"""Check of each measure of an analysis that tables show, by name."""

FIELDS: Mapping[str, Check] = {
    "status": one_of("ok", "failed"),
    "metrics": _metrics,
    "curve": list_of(_point),
    "parameters": SIZES,
    "flops_per_sample": whole(none=True),
    "throughput": number(0, none=True),
    "peak_memory_gib": number(0, none=True),
    "duration_s": number(0, none=True),
    "dataset": names_to(
        _plain, {"fingerprint": words, "sizes": SIZES, "padding": number(0, 1, none=True), "chance": number()}
    ),
    "environment": names_to(
        _plain,
        {
            "versions": TEXTS,
            "commit": words,
            "source": words,
            "device": words,
            "precision": words,
            "attention": words,
            "compiled": single,
            "captured": single,
            "devices": whole(1, none=True),
            "threads": number(0, none=True),
            "plugins": names_to(TEXTS),
            "task": TEXTS,
        },
    ),
    "started": _start,
    "error": _error,
    "protocol": version,
    "schema": whole(1),
    "matched_flops": whole(none=True),
    "position_shares": names_to(list_of(number(none=True))),
    "analysis": names_to(names_to(_plain, MEASURES)),
    "beyond": names_to(_plain, {"policy": words, "by_position": names_to(names_to(list_of(NUMBER)))}),
}
"""Check of each field but the configuration, by name."""
