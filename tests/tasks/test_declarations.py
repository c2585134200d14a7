"""What tasks and their kinds declare: records are known by settings that start from these, so a change must be meant.

Where it is, `python -m tests.tasks.test_declarations` writes the file anew.
"""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from pebench.config import SECTIONS, section_values
from pebench.tasks import TASKS, Task, TaskKind, find_task, kinds

GOLDEN = Path(__file__).parent / "golden" / "tasks.json"


def declared(task: Task) -> dict[str, str]:
    """What a task says of itself but for its words, with each tier's settings on a line of their own."""
    found = {field.name: repr(getattr(task, field.name)) for field in fields(task)}
    del found["budgets"], found["summary"]
    for tier, budget in task.budgets.items():
        found[f"budget {tier}"] = repr({section: section_values(budget, section) for section in SECTIONS})
    return found


def everything() -> dict[str, dict[str, str]]:
    own = {name: repr(kind) for name, kind in vars(kinds).items() if isinstance(kind, TaskKind)}
    return {"kinds": own, **{name: declared(find_task(name)) for name in TASKS}}


@pytest.mark.parametrize("name", ["kinds", *TASKS])
def test_a_declaration_is_what_it_was(name: str) -> None:
    assert everything()[name] == json.loads(GOLDEN.read_text())[name]


def test_nothing_that_is_declared_differs_from_call_to_call() -> None:
    text = GOLDEN.read_text()
    assert [*json.loads(text)] == ["kinds", *TASKS]
    assert " at 0x" not in text


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(everything(), indent=1) + "\n")
