"""Records of a small suite, and its page, for the tests of pages."""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pebench.results.page import Page
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from pebench.tasks import configure

TASKS = ["text-order", "vit-digits"]


NOISE = [0.001, -0.001, 0.002, -0.002, 0.0005, -0.0005, 0.0015, -0.0015]


MEANS = {"add": 0.6, "concat": 0.6005, "rope": 0.7}


SUITE = Suite(
    "mine", "Does it turn?", TASKS, [*MEANS], seeds=8, tier="smoke", expect="rope ahead", margin={"vit-digits": 0.01}
)


def run(task: str, encoding: str, seed: int, value: float | None, **settings: Any) -> Record:
    """A record of a run that finished with this accuracy, or failed if it is None."""
    config = configure(task, encoding, seed, "smoke", settings)
    if value is None:
        return Record(config, status="failed", error={"kind": "diverged", "reason": "loss is nan"})
    return Record(config, metrics={"test/accuracy": value}, dataset={"fingerprint": "f" * 64})


def runs(seeds: int = 8, tasks: Sequence[str] = TASKS, **values: float) -> list[Record]:
    """Records of the suite; encodings differ by a constant and a little noise of their own."""
    return [
        run(task, encoding, seed, mean + 0.02 * seed + NOISE[(seed + number) % 8])
        for task in tasks
        for number, (encoding, mean) in enumerate((MEANS | values).items())
        for seed in range(seeds)
    ]


def without(records: list[Record], task: str, encoding: str, *seeds: int) -> list[Record]:
    return [r for r in records if (r.config.task, r.config.encoding) != (task, encoding) or r.config.seed not in seeds]


def page(records: list[Record], suite: Suite | None = SUITE) -> Page:
    return Page.of(records, suite)


def heads(text: str) -> list[str]:
    return re.findall(r"^## ([\w-]+)", text, re.MULTILINE)


def section(text: str, task: str, header: str) -> list[str]:
    """The lines of a table of a task that has a column of this name."""
    lines = text[text.index(f"## {task}") :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| Encoding") and f" {header} " in line)
    return lines[first : lines.index("", first)]


DEPTHS = replace(SUITE, tasks=["vit-digits"], vary={"model.num_layers": [1, 4]})


def by_depth(shallow: float = 0.5, deep: float = 0.6, task: str = "vit-digits") -> list[Record]:
    return [
        run(task, encoding, seed, mean + (0.01 if encoding == "rope" else 0) + 0.001 * seed, **settings)
        for settings, mean in (({}, shallow), ({"model.num_layers": 4}, deep))
        for encoding in MEANS
        for seed in range(8)
    ]


@functools.cache
def whole() -> Page:
    """The page of all records of the suite, which tests share."""
    return page(runs())


@functools.cache
def whole_text(write: Callable[[Page], str]) -> str:
    """That page in a format."""
    return write(whole())
