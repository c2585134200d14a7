"""Every registered encoding, and compositions of several, have the properties of `pebench.conformance`."""

import pytest

from pebench.conformance import PROPERTIES, SETTINGS, Bench, BrokenError, Property, Setting, Subject, check, checks
from pebench.encodings.registry import encoding_cards
from tests.sampling import place, sampled

NAMES = list(encoding_cards())
COMPOSED = [
    "randomized(of='learned')", "randomized(of='raster')", "randomized(of='alibi')", "shifted(of='alibi')",
    "permuted(of='rope')", "permuted(of='learned')",
    "shifted(of='swin-bias')", "raster(of='t5-bias')", "stack(first='rope',second='shaw')",
    "interpolated(of='add')", "embed-scale(of='concat-wide')", "embed-scale(of='rope',factor=0.5)",
    "widened(of='concat-wide')", "widened(of='rope')",
    "attention-scale(of='add-qk')", "attention-scale(of='shaw',factor=0.5)",
    "some-heads(of='concat-qk')", "some-layers(of='kerple-log')",
    "stack(first='learned',second='alibi')", "stack(first='cope',second='add')",
    "stack(first='concat-wide',second='rope')", "stack(first='rope',second='tupe')",
    "ntk-rope(factor=4.0)", "yarn(factor=4.0)", "deberta(clip=3)", "cope(most=3)", "lie-re(block=2)",
    "t5-bias(num_buckets=8,max_distance=16)", "concat(table='learned')", "concat-wide(table='learned')",
    "add(d_p=8)", "add(preserve_variance=True)", "add-proj(d_p=8,table='learned')", "concat-proj(table='learned')",
    "concat-proj(start='identity')", "concat-qk(table='learned')", "gated-add(table='learned')",
    "gated-add(pace=1.0)", "rope(interleaved=True)", "rope(pairing='neighbours')",
    "randomized(of='rope',fractional=True)", "fope(theta=2.0)",
    "dape(of='rope')", "dape(of='alibi', kernel=3)", "ssmax(of='alibi')", "look-here(view='halves')", "path(taps=1)",
]  # fmt: skip
"""Encodings made of others, and options that change what an encoding is."""


def cases(names: list[str]) -> list:
    """Every encoding with every setting; the default run tests each encoding in one setting at least."""
    every = [
        pytest.param(name, setting, id=f"{name}-{setting.name}".replace(" ", "_"))
        for name in names
        for setting in SETTINGS
    ]
    return sampled(every, 0.1, lambda name, setting: name, lambda name, setting: setting.name)


def required(name: str, setting: Setting) -> list[Property]:
    return [item for item, where in checks(Subject(name)) if where == setting]


def broken_properties(name: str, setting: Setting) -> list[str]:
    """Check an encoding's properties in a setting, on one bench, and return all that do not hold."""
    bench, broken = Bench(Subject(name), setting), []
    for item in required(name, setting):
        if item.slow:  # tested below
            continue
        try:
            check(item, bench)
        except BrokenError as error:
            broken.append(str(error))
    return broken


@pytest.mark.parametrize(("name", "setting"), cases(NAMES))
def test_every_encoding_has_every_property(name: str, setting: Setting):
    assert broken_properties(name, setting) == []


@pytest.mark.parametrize(("name", "setting"), cases(COMPOSED))
def test_so_have_those_made_of_others(name: str, setting: Setting):
    assert broken_properties(name, setting) == []


def slow_cases() -> list:
    every = [
        pytest.param(name, setting, item, id=f"{name}-{item.name}")
        for name in NAMES
        for item, setting in checks(Subject(name))
        if item.slow
    ]
    return sampled(every, 0.1, lambda name, setting, item: item.name)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "setting", "item"), slow_cases())
def test_every_encoding_has_the_properties_that_take_a_second(name: str, setting: Setting, item: Property):
    check(item, Bench(Subject(name), setting))


def test_every_property_is_asked_of_some_encoding():
    asked = {item.name for name in ("rope", "fox", "none") for item, _ in checks(Subject(name))}
    assert asked == set(PROPERTIES)


def test_the_default_run_has_every_encoding_and_every_property():
    chosen = [case for case in (*cases(NAMES), *slow_cases()) if not case.marks]
    assert {case.values[0] for case in chosen} == set(NAMES)
    quick = {item.name for case in chosen for item in required(*case.values[:2]) if not item.slow}
    assert quick | {case.values[2].name for case in chosen if len(case.values) == 3} == set(PROPERTIES)


def test_a_sample_depends_on_ids_alone_and_keeps_every_kind():
    every = [pytest.param(n, n % 10, id=f"case-{n}") for n in range(1000)]
    chosen = {case.id for case in sampled(every, 0.2) if not case.marks}
    assert 150 < len(chosen) < 250
    assert chosen == {case.id for case in sampled(every[::-1], 0.2) if not case.marks}
    assert [case.id for case in sampled(every, 0.2)] == [case.id for case in every]
    assert {case.values[1] for case in sampled(every, 0.0, lambda n, digit: digit) if not case.marks} == {*range(10)}
    assert all(case.marks for case in sampled(every, 0.0))
    assert not any(case.marks for case in sampled(every, 1.0))
    assert 0 <= place("add") < 1
