"""Settings by dotted name, as the command line and suites give them: parsed, checked and put into a configuration."""

import ast
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from pebench.config.run import LATER, SECTIONS, RunConfig
from pebench.errors import UNREADABLE, UserError, unknown_name
from pebench.formatting import quoted

EXAMPLES = {
    "--select": "train.learning_rate=1e-3,2e-3,4e-3", "--vary": "model.num_layers=1,2,4",
    "--executor-option": "slurm_partition=gpu",
}  # fmt: skip
"""Valid values of flags, by flag, for error messages."""

LITERALS = {"true": "True", "false": "False", "null": "None"}
"""Python's spelling of JSON's constants."""


def parse_settings(assignments: Iterable[str], flag: str) -> dict[str, str]:
    """Parse ``["train.max_steps=10"]`` to names and values; the values are still text.

    Args:
        assignments: Items of the command line.
        flag: The flag that they followed. With ``--set`` the last value of a name counts.

    Raises:
        UserError: Where an item has no ``=``, or another flag is given twice for one name.
    """
    settings = {}
    for item in assignments:
        # At the first =, as a value may have one too: encoding.first='rope(theta=50)'.
        name, equals, value = item.partition("=")
        if not equals:
            example = EXAMPLES.get(flag, "train.max_steps=100")
            raise UserError(f"{flag} expects key=value, got {quoted(item)}. Example: {flag} {example}")
        if flag != "--set" and name.strip() in settings:
            raise UserError(f"{flag} {name.strip()} is given twice; give all that it is to be at once.")
        settings[name.strip()] = value.strip()
    return settings


def assignments(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as the command line takes them: ``["train.max_steps=10"]``."""
    return [f"{name}={literal(value)}" for name, value in settings.items()]


def literal(value: Any) -> str:
    """Return a value as the command line takes it."""
    # Text stands without quotes, as a user types it. JSON spells the rest as `typed` reads it: true, null, 0.001.
    return value if isinstance(value, str) else json.dumps(value)


def python_value(value: Any) -> Any:
    """Return an encoding's option from its text, which may be as `literal` writes it; other values as they are.

    Example:
        >>> python_value("0.5"), python_value("true"), python_value("learned")
        (0.5, True, 'learned')
    """
    if not isinstance(value, str):
        return value
    try:
        # Evaluates literals alone, never code: the text may come from a command line or from a record of somebody else.
        return ast.literal_eval(LITERALS.get(value, value))
    except UNREADABLE:
        return value


def sort_key(value: Any) -> tuple[bool, Any]:
    """Return the key that sorts a setting's values; None, a default, comes first."""
    # None and numbers do not compare with each other, so a flag in front decides between them.
    return value is not None, value


def setting_names(config: RunConfig) -> list[str]:
    """Return every dotted name that `override` accepts for this configuration's task."""
    # None in the section data means that the setting does not apply to the task; elsewhere it is a value.
    settings = config.settings()
    names = [*settings, *(name for name in LATER if name not in settings)]
    return [name for name in names if not (name.startswith("data.") and settings[name] is None)]


def override(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """Return the configuration with some settings replaced.

    Args:
        config: Configuration to start from.
        settings: Dotted name to value, as text or typed: ``{"train.max_steps": "10"}``.

    Raises:
        UserError: For a name that does not exist or a value of the wrong type.
    """
    valid = setting_names(config)
    sections = {section: getattr(config, section) for section in SECTIONS}
    for name, value in settings.items():
        if name not in valid:
            raise unknown_name("setting", name, [*valid, "encoding.<option>"])
        section, field = name.split(".")
        converted = typed(name, value, _type_of(section, field))
        sections[section] = replace(sections[section], **{field: converted})
    return replace(config, **sections)  # all at once, as some are only valid together


def _type_of(section: str, field: str) -> Any:
    """Return the type of a setting's values."""
    if section == "data":
        return int  # they are annotated `int | None`, and None is for tasks that the setting does not apply to
    return next(f.type for f in fields(SECTIONS[section]) if f.name == field)


def typed(name: str, value: Any, kind: Any) -> Any:
    """Return `value`, which may be text, checked and converted to the type `kind`.

    Args:
        name: The setting's name, for the error message.
        value: Value to convert.
        kind: Type, as a field of a dataclass is annotated.

    Raises:
        UserError: Where the value does not fit the type.
    """
    from jsonargparse import ArgumentError  # imported late: it takes 0.1 s, and --help does not need it

    parser = _parser(kind)
    value = None if value == "None" else value  # as Python and error messages spell it
    try:
        # Text is parsed as a command line is, so that 1e-3 and true mean the same in a suite, in --set and in a file.
        if isinstance(value, str) or value is None:  # parse_object takes None for an absent value
            return parser.parse_args([f"--value={literal(value)}"]).value
        return parser.parse_object({"value": value}).value
    except ArgumentError as error:
        expected = getattr(kind, "__name__", str(kind))
        several = " Several values go to --select or --vary." if isinstance(value, str) and "," in value else ""
        raise UserError(f"{name} expects {expected}, got {quoted(value)}.{several}") from error


@functools.cache
def _parser(kind: Any) -> Any:
    """Return a parser of one value; cached, as making one takes a millisecond and plans have thousands of values."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=kind)
    return parser
