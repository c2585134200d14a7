"""``pebench verify``: check every property of an encoding, and print its card."""

import argparse
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from pebench.config import parse_settings, python_value
from pebench.encodings.registry import load_encoding, normal_options, read_encoding
from pebench.errors import UserError

EXIT_FAILED = 1


def verify_command(options: argparse.Namespace) -> int:
    """Check an encoding and print its card; return 1 if a property is broken."""
    warnings.filterwarnings("ignore")  # of libraries, between the lines
    from pebench.conformance import SETTINGS, Subject
    from pebench.conformance.card import card

    name, chosen = read_options(options.encoding, options.settings)
    load_encoding(name)  # before anything is printed
    subject = Subject(name, chosen)
    if not any(map(subject.serves, SETTINGS)):
        raise UserError(f"{options.encoding} can be built for none of our models: {_refusal(subject)}")
    failed = _run(subject)
    if not failed:
        facts = {"encoding": _title(options, subject), **card(subject)}
        width = max(map(len, facts))
        sys.stdout.writelines(["\n", *(f"{title:{width}}  {text}\n" for title, text in facts.items())])
    sys.stdout.write("\n" + (f"Broken properties: {failed}.\n" if failed else "Every property holds.\n"))
    return EXIT_FAILED if failed else 0


def read_options(encoding: str, settings: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return an encoding's name and options.

    Args:
        encoding: A name, or a name with options: ``concat(d_p=16)``.
        settings: Further options, ``option=value`` or ``encoding.option=value``, which come first.

    Raises:
        UserError: For an option that the encoding does not have.
    """
    given = {name.removeprefix("encoding."): value for name, value in parse_settings(settings, "--set").items()}
    name, own = read_encoding(encoding)
    return name, normal_options(name, own | {option: python_value(value) for option, value in given.items()})


def _title(options: argparse.Namespace, subject: Any) -> str:
    summary = (subject.maker.__doc__ or "").strip().split("\n")[0].replace("``", "")
    return ", ".join([options.encoding, *options.settings]) + (f": {summary}" if summary else "")


def _refusal(subject: Any) -> str:
    from pebench.conformance import SETTINGS

    try:
        subject.build(SETTINGS[0].spec)
    except ValueError as error:
        return str(error)
    return ""


def _run(subject: Any) -> int:
    """Check every property where it applies and print a line for each; return the number of broken ones."""
    from pebench.conformance import PROPERTIES, Bench, BrokenError, check, checks

    benches: dict[Any, Bench] = {}
    told: dict[tuple[str, str], str] = {}
    todo, failed = list(checks(subject)), 0
    for name, item in PROPERTIES.items():
        settings, broken = [setting for other, setting in todo if other is item], None
        for setting in settings:
            try:
                check(item, benches.setdefault(setting, Bench(subject, setting)))
            except BrokenError as error:
                broken = error
                break
        state = "broken" if broken else f"ok x {len(settings)}" if settings else "-"
        print(f"{state:7} {name:18} {item.statement}", flush=True)
        if broken:
            failed += 1
            first = told.setdefault((broken.expected, broken.got), name)
            why = f"        expected {broken.expected}\n        got      {broken.got}"
            print(f"        in {broken.setting}\n{why if first == name else f'        as for {first}'}")
    return failed
