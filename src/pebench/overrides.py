"""Settings by dotted name, as on the command line and in suites: read, checked and put into a configuration."""

import ast
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from pebench.config import RunConfig
from pebench.errors import UNREADABLE, UserError, unknown_name

EXAMPLES = {
    "--select": "train.learning_rate=1e-3,2e-3,4e-3", "--vary": "model.num_layers=1,2,4",
    "--executor-option": "slurm_partition=gpu",
}  # fmt: skip
"""By flag, of what it expects."""


def parse_settings(assignments: Iterable[str], flag: str) -> dict[str, str]:
    """``["train.max_steps=10"]`` as a mapping; the values are still text. Of ``--set`` the last of a name counts.

    Args:
        assignments: From the command line.
        flag: That they followed.

    Raises:
        UserError: Where an item has no ``=``, or another flag is given twice for one name.
    """
    settings = {}
    for item in assignments:
        name, equals, value = item.partition("=")
        if not equals:
            example = EXAMPLES.get(flag, "train.max_steps=100")
            raise UserError(f"{flag} expects key=value, got {item!r}. Example: {flag} {example}")
        if flag != "--set" and name.strip() in settings:
            raise UserError(f"{flag} {name.strip()} is given twice; give all that it is to be at once.")
        settings[name.strip()] = value.strip()
    return settings


def assignments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as the command line takes them: ``train.max_steps=10``."""
    return [f"{name}={literal(value)}" for name, value in settings.items()]


def literal(value: Any) -> str:
    """A value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def python_value(value: Any) -> Any:
    """An encoding's option as meant by a text, which may write it as `literal` does; anything else as it is.

    Example:
        >>> python_value("0.5"), python_value("true"), python_value("learned")
        (0.5, True, 'learned')
    """
    try:
        words = {"true": "True", "false": "False", "null": "None"}
        return ast.literal_eval(words.get(value, value)) if isinstance(value, str) else value
    except UNREADABLE:
        return value


def sort_key(value: Any) -> tuple[bool, Any]:
    """Where a setting's value sorts: None, the default, first."""
    return value is not None, value


def setting_names(config: RunConfig) -> list[str]:
    """Every dotted name that `override` accepts for this configuration's task."""
    names = []
    for part in ("model", "data", "train"):
        section = getattr(config, part)
        names += [f"{part}.{f.name}" for f in fields(section) if part != "data" or getattr(section, f.name) is not None]
    return names


def override(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """The configuration with some fields replaced.

    Args:
        config: What to start from.
        settings: Dotted name to value, as text or typed: ``{"train.max_steps": "10"}``.

    Raises:
        UserError: For a name that does not exist or a value of the wrong type.
    """
    sections = {part: getattr(config, part) for part in ("model", "data", "train")}
    for name, value in settings.items():
        if name not in setting_names(config):
            raise unknown_name("setting", name, [*setting_names(config), "encoding.<option>"])
        part, leaf = name.split(".")
        kind = next(f.type for f in fields(sections[part]) if f.name == leaf)
        kind = int if part == "data" else kind  # None is what it has where it does not apply
        sections[part] = replace(sections[part], **{leaf: typed(name, value, kind)})
    return replace(config, **sections)  # at once: they are checked together


def typed(name: str, value: Any, kind: Any) -> Any:
    """`value`, which may be text, checked and converted to the type `kind`.

    Raises:
        UserError: Where it does not fit.
    """
    from jsonargparse import ArgumentError  # 0.1 s: not needed for --help

    parser = _parser(kind)
    try:
        if isinstance(value, str) or value is None:  # which the parser would take for no value
            return parser.parse_args([f"--value={literal(value)}"]).value
        return parser.parse_object({"value": value}).value
    except ArgumentError as error:
        expected = getattr(kind, "__name__", str(kind))
        several = " Several values go to --select or --vary." if isinstance(value, str) and "," in value else ""
        raise UserError(f"{name} expects {expected}, got {value!r}.{several}") from error


@functools.cache
def _parser(kind: Any) -> Any:
    """A parser of one value; to make it takes a millisecond, and plans have thousands of values."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=kind)
    return parser
