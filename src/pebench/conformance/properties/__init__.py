"""All properties, cheap ones first. Which of them apply follows from what the built instance declares."""

from collections.abc import Iterator

from pebench.conformance.bench import SETTINGS, Bench, Setting, Subject
from pebench.conformance.comparisons import BrokenError
from pebench.conformance.properties import (
    caching,
    declarations,
    extrapolation,
    gradients,
    instances,
    invariances,
    models,
    modes,
    numerics,
    order,
    positions,
    visibility,
)
from pebench.conformance.properties.base import Property
from pebench.encodings.checks import blame

THEMES = (
    declarations, modes, order, positions, invariances, visibility, caching,
    numerics, extrapolation, gradients, instances, models,
)  # fmt: skip
"""Modules of properties, in the order in which their properties are checked and printed."""

PROPERTIES: dict[str, Property] = {
    item.name: item for theme in THEMES for item in vars(theme).values() if isinstance(item, Property)
}
"""All properties by name, in the order of the themes and, within one, of their definitions."""


__all__ = ["PROPERTIES", "THEMES", "Property", "check", "checks"]


def checks(subject: Subject) -> Iterator[tuple[Property, Setting]]:
    """Yield the properties that an encoding must have, with a setting each: all of a setting, then the next."""
    # the first stands for all where a property is checked once
    served = [setting for setting in SETTINGS if subject.serves(setting)]
    for setting in SETTINGS:
        yield PROPERTIES["constructs"], setting  # also where it refuses: the refusal must be one that it declares
        bench = Bench(subject, setting)
        if setting not in served or not bench.builds:
            continue
        for name, item in PROPERTIES.items():
            if name != "constructs" and (not item.once or setting == served[0]) and item.applies(bench):
                yield item, setting


def check(item: Property, bench: Bench) -> None:
    """Check one property.

    Raises:
        BrokenError: If it does not hold, or the encoding fails with an exception of its own.
    """
    try:
        item.run(bench)
    except BrokenError as error:
        error.property, error.setting = item.name, bench.setting.name
        raise
    except Exception as error:
        # an encoding's own exception is a broken property too: the remaining ones are still checked
        broken = BrokenError("no exception", blame(error))
        broken.property, broken.setting, broken.failed = item.name, bench.setting.name, True
        raise broken from error
