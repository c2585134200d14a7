"""The suite that the options of ``pebench run`` ask for."""

import argparse
from dataclasses import replace
from typing import Any

from pebench.config import REFERENCE_ENCODING, TIERS
from pebench.config.overrides import parse_settings
from pebench.engine.execution import RunOptions
from pebench.engine.options import check_numbers
from pebench.engine.plans import UNDECLARED, FixedPlan
from pebench.errors import UserError, unknown_name
from pebench.runs.plan import Plan
from pebench.runs.records import read_config
from pebench.runs.suite import Suite, load_suite
from pebench.tasks.registry import normal_name

WITHOUT_CONFIG = (
    "task", "data", "suite", "pe", "seeds", "seed", "tier", "settings", "vary", "select", "selection_seeds",
    "select_beyond", "regime", "beyond",
)  # fmt: skip
"""Options that choose runs, and so do not go with ``--config``, which names them."""


def run_options(options: argparse.Namespace) -> RunOptions:
    """Return how the runs are made, as `pebench.run_suite` takes it.

    Raises:
        UserError: For numbers that cannot be, called as on the command line.
    """
    check_numbers(vars(options), lambda name: "--" + name.replace("_", "-"))
    return {
        "executor": options.executor,
        "executor_options": parse_settings(options.executor_option, "--executor-option"),
        "jobs": options.jobs,
        "threads": options.threads,
        "device": options.device,
        "devices": options.devices,
        "data_dir": options.data_dir,
        "time_limit": options.time_limit,
        "offline": options.offline,
        "retry_failed": options.retry_failed,
        "keep_weights": options.keep_weights,
        "analyze": options.analyze,
        "loggers": options.logger,
        "published": True if options.published is None else options.published,
    }


def check_choice(options: argparse.Namespace) -> None:
    """Refuse options that cannot be meant together.

    Raises:
        UserError: With what was expected.
    """
    if not (options.config or options.suite or options.task or options.data):
        raise UserError(
            "expected --task NAME, --data PATH, --suite NAME or --config FILE. Try: pebench run --suite quickstart"
        )
    if options.config and (given := [name for name in WITHOUT_CONFIG if getattr(options, name)]):
        flags = ", ".join("--" + name.replace("settings", "set").replace("_", "-") for name in given)
        raise UserError(f"--config makes exactly the run of a file: it does not go with {flags}.")
    if options.seeds is not None and options.seed:
        raise UserError("expected either --seeds N or --seed S, got both.")
    if options.seeds is not None and options.seeds < 1:
        raise UserError(f"--seeds must be at least 1, got {options.seeds}.")
    if options.selection_seeds is not None and not (options.select or options.suite):
        raise UserError("--selection-seeds is how many seeds select: it goes with --select, or with a suite that does.")
    if options.select_beyond is not None and not (options.select or options.suite):
        raise UserError("--select-beyond goes on where --select ends: it goes with that, or with a suite that selects.")
    if options.tier is not None and options.tier not in TIERS:
        raise unknown_name("tier", options.tier, TIERS)


def requested_plan(options: argparse.Namespace) -> Plan:
    """Return the plan that the options ask for.

    Raises:
        UserError: For everything that does not exist or cannot work, in one message.
    """
    if options.config:
        # No suite's choices apply here: the files say everything, also for runs that selected.
        configs = [read_config(path) for path in options.config]
        return FixedPlan.of(configs, options.reference or REFERENCE_ENCODING)
    suite = requested_suite(options)
    kinds = suite.kinds()
    labels = {kind.label for kind in kinds}
    if options.reference is not None and options.reference not in labels:
        raise unknown_name("reference", options.reference, labels)
    return Plan(suite, kinds)


def requested_suite(options: argparse.Namespace) -> Suite:
    """Return the suite that the options name, with their changes."""
    asked = [*(options.task or ())]
    if options.data:
        from pebench.tasks.own.guess import task_of_path  # whose readers take a while to import

        asked += map(task_of_path, options.data)
    tasks = [normal_name(name) for name in asked]
    suite = load_suite(options.suite) if options.suite else Suite(UNDECLARED, "", tasks=tasks)
    if options.suite and tasks:
        suite = suite.part(tasks)
    changes: dict[str, Any] = {
        # Options that are not given are None, and leave the suite's own values.
        "seeds": options.seed or options.seeds, "encodings": options.pe, "tier": options.tier, "regime": options.regime,
        "selection_seeds": options.selection_seeds, "select_beyond": options.select_beyond,
        "reference": options.reference,
    }  # fmt: skip
    suite = replace(suite, **{name: value for name, value in changes.items() if value is not None})
    if options.pe:
        suite = replace(suite, contrasts=())  # they may name rows that are not asked for, and only pages show them
    select = {name: text.split(",") for name, text in parse_settings(options.select, "--select").items()}
    vary = {name: text.split(",") for name, text in parse_settings(options.vary, "--vary").items()}
    # What is selected on the command line is no longer set by the suite; a setting cannot be both.
    settings = {name: value for name, value in suite.settings.items() if name not in select}
    settings |= (given := parse_settings(options.settings, "--set"))
    if options.beyond and "train.beyond" in given:
        raise UserError("--beyond is --set train.beyond: give one of the two.")
    if options.beyond:
        settings["train.beyond"] = options.beyond.replace(" ", "")
    return replace(suite, settings=settings, select={**suite.select, **select}, vary={**suite.vary, **vary})
