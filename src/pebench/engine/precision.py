"""The choice of ``train.precision=auto``: by steps timed on this machine, and the same for all rows of a task."""

import statistics
from collections.abc import Callable, Container
from dataclasses import replace

from pebench.config import AUTO, RunConfig
from pebench.engine.execution import Execution, runs_at_a_time
from pebench.engine.pace import device_here, has_cuda_driver, operations_per_second
from pebench.engine.plans import UNDECLARED, FixedPlan
from pebench.errors import UserError
from pebench.runs.plan import Plan, planned_runs
from pebench.runs.suite.values import settings_for

SETTING, FULL, MIXED = "train.precision", "32-true", "bf16-mixed"

WORTHWHILE = 1.1
"""How many times as fast steps in `MIXED` must be: less could be noise, and is not worth its rounding."""

ROUNDS, ROUND_S = 3, 0.15
"""How often each is timed, and for how many seconds: a second in all."""


def settled(plan: Plan, how: Execution, note: Callable[[str], None]) -> Plan:
    """Return a plan whose runs have a precision, where it says ``auto``; others are returned as they are.

    Runs on CUDA that no suite declares, and whose precision nothing sets, are taken for ``auto``, too.

    Args:
        plan: The plan.
        how: How its runs are made. Where its output folder has been planned for with one of the two, that one stays.
        note: Told the choice and its reason, once for each task.

    Raises:
        UserError: If runs are made on other machines, or ``auto`` is among the values that are tried.
    """
    suite = plan.suite
    if any(
        AUTO in settings_for(task, values).get(SETTING, ())
        for values in (suite.select, suite.vary)
        for task in suite.tasks
    ):
        raise UserError(f"{SETTING}=auto cannot be one of several values: it chooses one of them by speed.")
    undecided = _undecided(plan, how)
    if not undecided and all(kind.train.precision != AUTO for kind in plan.kinds):
        return plan
    if not how.local:
        raise UserError(f"{SETTING}=auto is timed on this machine: with --executor {how.executor} name one.")
    begun, chosen, kinds = {*planned_runs(how.out)}, dict[str, str](), []
    for kind in plan.kinds:
        if not undecided and kind.train.precision != AUTO:
            kinds.append(kind)
            continue
        if kind.task not in chosen:
            chosen[kind.task], reason = _choice(plan, kind, how, begun)
            note(f"{kind.task}: {SETTING}={chosen[kind.task]}, {reason}")
        kinds.append(_with(kind, chosen[kind.task]))
    return replace(plan, kinds=kinds)


def _undecided(plan: Plan, how: Execution) -> bool:
    """Return True for runs on CUDA here whose precision neither a declaration nor a setting says."""
    suite = plan.suite
    asked = {*suite.settings, *suite.vary, *suite.select}
    free = suite.name == UNDECLARED and not isinstance(plan, FixedPlan) and SETTING not in asked
    # the driver first, as a plan should not have to wait for torch
    return free and how.local and how.device != "cpu" and has_cuda_driver() and device_here(how.device) == "cuda"


def _with(kind: RunConfig, precision: str) -> RunConfig:
    return replace(kind, train=replace(kind.train, precision=precision))


def _choice(plan: Plan, kind: RunConfig, how: Execution, begun: Container[str]) -> tuple[str, str]:
    """Return the precision of a task's runs, and the reason for it, given the folders of runs that were planned."""
    for precision in (FULL, MIXED):
        same = replace(plan, kinds=[_with(kind, precision)])
        if any(config.directory in begun for config in same.selecting() or same.testing({})):
            return precision, "as when these runs began"
    if device_here(how.device) == "cuda":
        import torch

        fast = torch.cuda.is_bf16_supported(including_emulation=False)
        return (MIXED, "with TF32, which this GPU has") if fast else (FULL, "as this GPU has no bfloat16")
    ratio = speed_ratio(_with(kind, FULL), how.worker_options(runs_at_a_time(len(plan.kinds), how)).threads or 1)
    if ratio < WORTHWHILE:
        return FULL, f"as steps in {MIXED} run at {ratio:.2f} times its speed here"
    return MIXED, f"whose steps run at {ratio:.2f} times the speed of {FULL} here"


def speed_ratio(config: RunConfig, threads: int) -> float:
    """Return how many times as fast steps of a run are in `MIXED` as in `FULL` on this processor; loads torch.

    Args:
        config: The run.
        threads: Threads that it has.
    """
    ratios = []
    for _ in range(ROUNDS):  # one after the other, so that a busy machine slows both alike
        full, mixed = (operations_per_second(config, "cpu", threads, ROUND_S, half) for half in (False, True))
        ratios.append(mixed / full)
    return statistics.median(ratios)
