"""Small plans, and records of their runs, for the tests of this folder."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.config import SELECTION_SEED, RunConfig
from pebench.runs.plan import Plan
from pebench.runs.records import Record
from pebench.runs.suite import Suite

RATE, DECAY = "train.learning_rate", "train.weight_decay"
EMBEDDED = ["vit-digits", "text-order", "lm-grammar"]
NARROW: dict[str, Any] = {"model.d_model": 8, "model.num_heads": 1, "model.d_ff": 4, "data.max_len": 4096}
matched_regimes = pytest.mark.parametrize("regime", ["parameters", "FLOPs"])


def plan_of(**changes: Any) -> Plan:
    """The plan of a small suite with some of its fields replaced."""
    usual = {"tasks": ["vit-digits"], "encodings": ["add", "rope"], "seeds": 2, "tier": "smoke"}
    suite = Suite("mine", "Why?", **(usual | changes))
    return Plan(suite, suite.kinds())


def asked(*arguments: str) -> Plan:
    """The plan of a command line."""
    return requested_plan(parser().parse_args(["run", "--task", "vit-digits", "--tier", "smoke", *arguments]))


def keys(configs: Sequence[RunConfig]) -> list[str]:
    return [config.key for config in configs]


def record(config: RunConfig, loss: float | None) -> Record:
    """A run that reached this validation loss, or failed if it is None."""
    if loss is None:
        return Record(config, status="failed", error={"kind": "diverged", "reason": "loss is nan", "log": ""})
    return Record(config, metrics={"val/loss": loss})


def scored(plan: Plan, score: Callable[[RunConfig], float | None]) -> dict[str, Record]:
    """Records of a plan's selecting runs, by key."""
    return {config.key: record(config, score(config)) for config in plan.selecting()}


def first_seed(config: RunConfig) -> bool:
    return config.seed == SELECTION_SEED
