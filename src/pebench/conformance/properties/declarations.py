"""Properties of what an encoding declares: the models it serves, its attributes and its size."""

from typing import Any

from pebench.conformance.bench import SETTINGS, Bench, Subject, parts
from pebench.conformance.comparisons import require
from pebench.conformance.properties.base import encoding_property
from pebench.encodings.base import BEYOND, KV_CACHE


@encoding_property("constructs")
def _constructs(bench: Bench) -> None:
    """Is built for the models that its class declares to serve, and refuses others by a ValueError with its name."""
    subject, setting = bench.subject, bench.setting
    usual = not subject.given  # options may narrow what a class serves, so only the defaults are held to it
    names = [part.name for part in _parts_where_served(subject) if hasattr(part, "name")]
    try:
        subject.build(setting.spec)
    except ValueError as error:
        # one that refuses every kind of model would pass all properties, as none would be checked
        require(any(map(subject.serves, SETTINGS)), "one kind of model that it serves", f"none: {error}")
        require(not usual or not subject.declares(setting), "an encoding of this model", f"ValueError: {error}")
        require(not usual or any(n in str(error) for n in names), f"a message that names one of {names}", error)
        return
    require(subject.declares(setting), "a ValueError, as its class does not serve such models", "an encoding")


def _parts_where_served(subject: Subject) -> list[Any]:
    """Return the parts of the encoding in the first setting that it serves, or its class where it serves none."""
    built = (subject.build(setting.spec) for setting in SETTINGS if subject.serves(setting))
    return next((parts(encoding) for encoding in built), [subject.maker])


@encoding_property("declares")
def _declares(bench: Bench) -> None:
    """Declares what is possible, and of its kind."""
    encoding = bench.encoding
    require(encoding.beyond in BEYOND, "beyond 'goes on', 'clamps' or 'refuses'", encoding.beyond)
    require(encoding.kv_cache in KV_CACHE, f"kv_cache one of {KV_CACHE}", encoding.kv_cache)
    for name in ("contextual", "relative", "isotropic", "mirror_blind", "blind"):
        value = getattr(encoding, name)
        require(isinstance(value, bool), f"{name} True or False", repr(value))
    require(encoding.spec == bench.spec, "the spec it was given", encoding.spec)
    require(not encoding.contextual or encoding.relative, "a contextual encoding to ignore a shift", "relative = False")


@encoding_property("size", when=lambda bench: not bench.subject.given)
def _size(bench: Bench) -> None:
    """Has as many parameters as it declares, in two sizes of model."""
    for spec in (bench.spec, bench.larger):
        encoding = bench.subject.build(spec)
        count, declared = sum(p.numel() for p in encoding.parameters()), encoding.parameter_count()
        require(count == declared, f"the {declared} parameters that it declares for {spec}", count)
