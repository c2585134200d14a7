"""What pebench declares to the outside: its tasks, and the arguments and defaults of public names.

Records are known by settings that start from these, and programs count on them: a change must be meant. Where it is,
`python -m tests.contracts.test_declarations` writes the files anew.
"""

import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import pebench
from pebench.config import SECTIONS, Options, RunConfig, section_values
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.tasks import TASKS, Task, TaskKind, find_task, kinds

GOLDEN = Path(__file__).parent / "golden"


def declared(task: Task) -> dict[str, str]:
    """What a task says of itself but for its words, with each tier's settings on a line of their own."""
    found = {field.name: repr(getattr(task, field.name)) for field in fields(task)}
    del found["budgets"], found["summary"]
    for tier, budget in task.budgets.items():
        found[f"budget {tier}"] = repr({section: section_values(budget, section) for section in SECTIONS})
    return found


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


def all_signatures() -> dict[str, str]:
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


def all_kinds() -> dict[str, str]:
    return {name: repr(kind) for name, kind in vars(kinds).items() if isinstance(kind, TaskKind)}


def golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


@pytest.mark.parametrize("name", [*TASKS])
def test_a_task_is_what_it_was(name: str) -> None:
    assert declared(find_task(name)) == golden("tasks.json")[name]


def test_every_task_is_held_and_nothing_in_it_differs_from_call_to_call() -> None:
    tasks = golden("tasks.json")
    assert [*tasks] == [*TASKS]
    assert " at 0x" not in json.dumps(tasks)


def test_arguments_and_defaults_are_what_they_were() -> None:
    found = all_signatures()
    assert found == golden("signatures.json")
    assert " at 0x" not in json.dumps(found)


def test_kinds_of_tasks_are_what_they_were() -> None:
    assert all_kinds() == golden("kinds.json")


def write() -> None:
    for name, found in (
        ("kinds.json", all_kinds()),
        ("tasks.json", {name: declared(find_task(name)) for name in TASKS}),
        ("signatures.json", all_signatures()),
    ):
        (GOLDEN / name).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    write()
