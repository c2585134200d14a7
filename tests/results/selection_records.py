"""Records of a small suite that selects settings or matches costs, and readers of its page."""

import functools
from collections.abc import Callable
from typing import Any

from pebench.config import RunConfig
from pebench.results.page import Page
from pebench.results.writers import markdown as report
from pebench.results.writers.csv import to_csv as write_csv
from pebench.results.writers.json import to_json as write_json
from pebench.runs.costs import Cost, cost
from pebench.runs.plan import Plan
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from pebench.tasks import TASKS

RATE, DECAY = "train.learning_rate", "train.weight_decay"


BEST = {"add": 1e-3, "concat": 1e-2, "learned": 1e-3, "none": 1e-2, "rope": 1e-2}


FORMATS: dict[str, Callable[..., str]] = {
    name: lambda records, allow_unmatched=False, write=write: write(Page.of(records, allow_unmatched=allow_unmatched))
    for name, write in (
        ("markdown", report.markdown), ("csv", write_csv), ("json", write_json), ("overview", report.overview),
    )
}  # fmt: skip


markdown, to_csv, to_json, overview = FORMATS.values()


_costs: dict[str, Cost] = {}


def loss(config: RunConfig) -> float | None:
    """A validation loss, lowest for the encoding's best learning rate and the usual decay."""
    best = abs(config.train.learning_rate - BEST[config.encoding]) + abs(config.train.weight_decay - 0.05)
    return round(0.5 + best, 6)


def record(config: RunConfig, value: float | None, **changes: Any) -> Record:
    """A run that finished with this test metric (or validation loss, if it selects), or failed if it is None."""
    if value is None:
        return Record(config, status="failed", error={"kind": "diverged", "reason": "loss is nan", "log": ""})
    if config.kind_key not in _costs:
        _costs[config.kind_key] = cost(config)
    found = _costs[config.kind_key]
    metric = TASKS[config.task].metric
    metrics = {f"test/{metric}": value, "val/loss": 1.0}
    if config.stage == "select":
        metrics = {"val/loss": value, f"test/{metric}": 9.0}  # which no selecting run has, and none may be read from
    usual = {
        "metrics": metrics, "parameters": {"encoding": found.encoding, "total": found.parameters},
        "flops_per_sample": found.flops, "duration_s": 1000.0 if config.stage == "select" else 1.0,
    }  # fmt: skip
    return Record(config, **(usual | changes))


def results(score: Callable[[RunConfig], float | None] = loss, **changes: Any) -> list[Record]:
    """Records of all runs of a small suite."""
    usual = {"tasks": ["vit-digits"], "encodings": ["add", "rope"], "seeds": 2, "tier": "smoke"}
    suite = Suite("mine", "Why?", **(usual | changes))
    plan = Plan(suite, suite.kinds())
    selecting = {config.key: record(config, score(config)) for config in plan.selecting()}
    values = {"add": 0.5, "concat": 0.625, "learned": 0.125, "none": 0.25, "rope": 0.75}
    tested = [record(c, values[c.encoding] + c.seed / 16) for c in plan.testing(selecting)]
    return [*selecting.values(), *tested]


tuned = functools.partial(results, select={RATE: [1e-4, 1e-3, 1e-2, 1e-1]})


def no_selecting(records: list[Record]) -> list[Record]:
    return [record for record in records if record.config.stage == "test"]


def grid(text: str, mark: str) -> dict[str, dict[str, str]]:
    """The first Markdown table after a text: row to column to cell."""
    lines = text[text.index(mark) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    head, _, *body = rows
    return {cells[0]: dict(zip(head[1:], cells[1:], strict=True)) for cells in body}


def main_grid(text: str) -> dict[str, dict[str, str]]:
    return grid(text, "\n## vit-digits")


def sweep(text: str) -> dict[str, dict[str, str]]:
    return grid(text, "Selected on validation data")


def keys(records: list[Record], stage: str) -> set[str]:
    return {record.config.key for record in records if record.config.stage == stage}
