"""The arguments and defaults of public names, of settings and of data: programs count on them, a change must be meant.

Where it is, `python -m tests.contracts.test_signatures` writes the file anew.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import pebench
from pebench.config import Options, RunConfig
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.tasks import TASKS, find_task

GOLDEN = Path(__file__).parent / "golden" / "signatures.json"


def signatures(name: str, public: Any) -> dict[str, str]:
    """The arguments, with their defaults, of a function, or of a class and its public methods."""
    found = {name: arguments(public)}
    if inspect.isclass(public):
        for method, function in vars(public).items():
            if not method.startswith("_") and inspect.isfunction(function):
                found[f"{name}.{method}"] = arguments(function)
    return found


def arguments(function: Any) -> str:
    parameters = inspect.signature(function).parameters.values()
    return ", ".join(str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters)


def everything() -> dict[str, str]:
    found = {}
    for name in pebench.__all__:
        public = getattr(pebench, name)
        if callable(public) and not (inspect.isclass(public) and issubclass(public, Exception)):
            found |= signatures(name, public)
    for public in (Options, RunConfig, *{find_task(name).data_class: None for name in TASKS}):
        found[f"{public.__module__}.{public.__qualname__}"] = arguments(public)
    for name in encoding_cards():
        found[f"encoding {name}"] = arguments(load_encoding(name))
    return found


def test_arguments_and_defaults_are_what_they_were() -> None:
    assert everything() == json.loads(GOLDEN.read_text())
    assert " at 0x" not in GOLDEN.read_text()


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(everything(), indent=1) + "\n")
