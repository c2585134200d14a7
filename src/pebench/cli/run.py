"""``pebench run``: from what was asked to runs, and to a table of them."""

import argparse
import contextlib
import math
import os
import signal
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.filesize import decimal

from pebench.cli.interrupts import leaving_at_once
from pebench.config import REFERENCE_ENCODING, TIERS, Options, RunConfig, parse_settings
from pebench.encodings import registry
from pebench.engine.executors import Resources, find_executor
from pebench.engine.executors.server import prepare, warm_up
from pebench.engine.progress import Display
from pebench.errors import UserError, unknown_name
from pebench.formatting import counted, duration_text, si_text
from pebench.results.provenance import changed_plugins
from pebench.runs.collector import no_search_for_garbage
from pebench.runs.costs import Cost, check_costs
from pebench.runs.plan import Plan, forecast, load, note_plan, states
from pebench.runs.records import FAILURE, Record, find_record, read_config, write_record
from pebench.runs.suite import Suite, load_suite
from pebench.tasks import find_task

EXIT_FAILED = 1
COMMAND_LINE = "command line"
"""What a set of runs is called that no suite declares."""

LISTED = 40
"""As many runs a plan names one by one: a screen."""

LOCAL = ("local", "sequential")
"""Executors whose runs this machine does."""


def run_command(options: argparse.Namespace) -> int:
    """``pebench run``."""
    check_options(options)
    console = Console(stderr=options.executor == "commands")  # whose output is the commands alone
    if options.config:
        with leaving_at_once():
            configs = [read_config(path) for path in options.config]
        if options.dry_run:
            check_costs({config.kind_key: config for config in configs}.values())
            list_states(configs, states(configs, options.out))
            return 0
        reference = options.reference or REFERENCE_ENCODING
        return finish(do(configs, options, console), configs, options, console, reference)
    with leaving_at_once():
        plan = make_plan(options)
    if options.dry_run:
        return dry_run(plan, options, console)
    varied = plan.suite.vary
    selecting = do(plan.selecting(), options, console, f"selecting {', '.join(plan.suite.select)}: ", varied)
    testing = plan.testing(selecting)
    left_out = [kind for kind in plan.kinds if not plan.chosen(kind, selecting)]
    if left_out and options.executor == "commands":
        say(console, f"once these are done, the same command prints those that test {counted(len(left_out), 'row')}")
        left_out = []
    if left_out:
        names = ", ".join(f"{kind.task} {kind.label}" for kind in left_out)
        text = (
            f"not tested, as not every value of {', '.join(plan.suite.select)} could be tried (--retry-failed), or "
            "training diverged with each: "
        )
        say(console, text + names)
    records = do(testing, options, console, "testing: " if plan.suite.select else "", varied)
    code = finish(selecting | records, testing, options, console, plan.suite.reference)
    return code or (EXIT_FAILED if left_out else 0)


def say(console: Console, text: str) -> None:
    """Print a line as it is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def check_options(options: argparse.Namespace) -> None:
    """Take the environment into account, and refuse what cannot be.

    Raises:
        UserError: With what was expected.
    """
    if options.offline:
        os.environ |= {"PEBENCH_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    if options.data_dir is None and os.environ.get("PEBENCH_DATA_DIR"):
        options.data_dir = Path(os.environ["PEBENCH_DATA_DIR"])
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"--data-dir expects a folder, but {str(options.data_dir)!r} is none.")
    if options.out.exists() and not options.out.is_dir():
        raise UserError(f"--out expects a folder, but {str(options.out)!r} is a file.")
    for name in ("jobs", "threads", "devices", "time_limit"):
        if (value := getattr(options, name)) is not None and not 1 <= value < math.inf:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1, and finite, got {value:g}.")
    parse_settings(options.executor_option, "--executor-option")
    check_choice(options)


def check_choice(options: argparse.Namespace) -> None:
    """Refuse what cannot be meant together.

    Raises:
        UserError: With what was expected.
    """
    if not (options.config or options.suite or options.task):
        raise UserError("expected --task NAME or --suite NAME, or --config FILE. Try: pebench run --suite quickstart")
    fixed = ("task", "suite", "pe", "seeds", "seed", "tier", "settings", "vary", "select", "selection_seeds", "regime")
    if options.config and (given := [name for name in fixed if getattr(options, name)]):
        flags = ", ".join("--" + name.replace("settings", "set").replace("_", "-") for name in given)
        raise UserError(f"--config does exactly the run of a file: it does not go with {flags}.")
    if options.seeds is not None and options.seed:
        raise UserError("expected either --seeds N or --seed S, got both.")
    if options.seeds is not None and options.seeds < 1:
        raise UserError(f"--seeds must be at least 1, got {options.seeds}.")
    if options.selection_seeds is not None and not (options.select or options.suite):
        raise UserError("--selection-seeds is how many seeds select: it goes with --select, or with a suite that does.")
    if options.tier and options.tier not in TIERS:
        raise unknown_name("tier", options.tier, TIERS)


def make_plan(options: argparse.Namespace) -> Plan:
    """What was asked for.

    Raises:
        UserError: For everything that does not exist or cannot work, all in one.
    """
    suite = load_suite(options.suite) if options.suite else Suite(COMMAND_LINE, "", tasks=options.task)
    if options.suite and options.task:
        suite = suite.part(options.task)
    changes: dict[str, Any] = {
        "seeds": options.seed or options.seeds, "encodings": options.pe, "tier": options.tier, "regime": options.regime,
        "selection_seeds": options.selection_seeds, "reference": options.reference,
    }  # fmt: skip
    suite = replace(suite, **{name: value for name, value in changes.items() if value is not None})
    if options.pe:
        suite = replace(suite, contrasts=())  # of rows that may not be asked for; only pages show them
    select, vary = (
        {name: values.split(",") for name, values in parse_settings(assignments, flag).items()}
        for assignments, flag in ((options.select, "--select"), (options.vary, "--vary"))
    )
    kept = {name: value for name, value in suite.settings.items() if name not in select}
    settings = {**kept, **parse_settings(options.settings, "--set")}
    suite = replace(suite, settings=settings, select={**suite.select, **select}, vary={**suite.vary, **vary})
    kinds = suite.kinds()
    if options.reference and options.reference not in (labels := {kind.label for kind in kinds}):
        raise unknown_name("reference", options.reference, labels)
    return Plan(suite, kinds)


def do(
    plan: Sequence[RunConfig],
    options: argparse.Namespace,
    console: Console,
    what: str = "",
    varied: Collection[str] = (),
) -> dict[str, Record]:
    """Do the runs that are left.

    Args:
        plan: The runs.
        options: From the command line.
        console: Where to tell of it.
        what: Said before the number of runs.
        varied: Settings in which runs of one encoding and seed differ.

    Returns:
        Their records by key; runs that another scheduler does have none.
    """
    if not plan:
        return {}
    known = load(plan, options.out)
    todo = [c for c in plan if (r := known.get(c.key)) is None or (options.retry_failed and not r.ok)]
    failed = 0 if options.retry_failed else sum(not record.ok for record in known.values())
    say(console, what + summary(len(plan), len(todo), failed))
    for text in [*filter(None, map(registry.clash, {c.encoding: c for c in plan})), *changed_plugins(known.values())]:
        say(console, text)
    if todo:
        start(todo, options, Display(todo, console, varied), plan, [known[c.key] for c in todo if c.key in known])
        known |= load(todo, options.out)
    return known


def summary(runs: int, todo: int, failed: int, running: int = 0) -> str:
    """How many runs are planned and in which state, in a line."""
    text = f"{counted(runs, 'run')}: {todo} to do, {runs - todo - failed - running} done"
    text += f", {running} running" if running else ""
    return text + (f", {failed} failed (run them again with --retry-failed)" if failed else "")


def start(
    todo: list[RunConfig],
    options: argparse.Namespace,
    display: Display,
    plan: Sequence[RunConfig],
    failed: Sequence[Record],
) -> None:
    """Check everything that can be checked, prepare the data, and have an executor do the runs.

    Args:
        todo: The runs.
        options: From the command line.
        display: Tells of them.
        plan: All runs that were asked for, those that are done too.
        failed: Records of those to do that have failed before.

    Raises:
        UserError: If a run cannot work, before any of them starts.
    """
    execute = find_executor(options.executor)
    for config in {(config.task, config.data): config for config in todo}.values():
        find_task(config.task).check_available(config.data, options.data_dir)
    kinds = {config.kind_key: config for config in todo}.values()
    here, elsewhere = options.executor == "sequential", options.executor == "commands"
    local = options.executor in LOCAL
    with leaving_at_once(), no_search_for_garbage():  # this loads torch
        if not here and not elsewhere:
            warm_up()
        check_costs(kinds)
        check_reach(kinds, options.executor)
        check_devices(kinds, options)
        groups = gpu_groups(options) if local else []
        if here:  # now, while Ctrl-C is safe
            import pebench.training.ddp
        if not elsewhere:  # while the server does likewise
            import pebench.results.writers.terminal  # noqa: F401
    jobs = at_a_time(len(todo), options) if local else options.jobs
    where = Options(
        options.out.resolve(),
        options.data_dir and options.data_dir.resolve(),
        options.device,
        options.threads or (max(1, cores() // (jobs * options.devices)) if local and jobs else None),
        options.time_limit,
        options.devices,
        *registry.needs(),
    )
    resources = Resources(jobs or 0, groups, parse_settings(options.executor_option, "--executor-option"))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as on Ctrl-C
    try:
        note_plan(plan, options.out)
        with display:
            if not elsewhere:
                prepare(todo, where, display, here)
            with retried(failed, options.out):
                execute(todo, where, resources, display)
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def retried(failed: Sequence[Record], out: Path) -> Iterator[None]:
    """Have runs tried again, once, whoever else works on this folder; what comes to no end stays as it was.

    Args:
        failed: Their records.
        out: Output folder.
    """
    for record in failed:
        (out / record.config.directory / FAILURE).unlink(missing_ok=True)
    try:
        yield
    except BaseException:  # an executor refuses, or is interrupted: of what has no other record, the failure is known
        for record in failed:
            if not find_record(record.config, out):
                write_record(record, out)
        raise


def gpu_groups(options: argparse.Namespace) -> list[str]:
    """The GPUs that runs may use, as many together as each run has devices.

    Raises:
        UserError: If there are fewer than one run needs.
    """
    import torch

    each = options.devices
    usable = torch.cuda.device_count() if options.device in ("auto", "cuda") and torch.cuda.is_available() else 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    cards = [str(number) for number in range(usable)] if visible is None else visible.split(",")[:usable]
    if 0 < len(cards) < each:
        raise UserError(f"--devices {each} expects as many GPUs, got {len(cards)}. Or run on processors: --device cpu")
    return [",".join(cards[i : i + each]) for i in range(0, len(cards) - each + 1, each)]


def cores() -> int:
    """Processors that this process may use: those it may run on, and no more than a container's quota amounts to."""
    import joblib

    return int(joblib.cpu_count())


def at_a_time(runs: int, options: argparse.Namespace) -> int:
    """How many runs are done at a time: by this machine, or elsewhere as many as are asked for."""
    if options.executor not in LOCAL:
        return options.jobs or 1
    if options.executor == "sequential":
        return 1
    return max(1, min(runs, options.jobs or len(gpu_groups(options)) or cores() // options.devices))


def check_reach(kinds: Iterable[RunConfig], executor: str) -> None:
    """Refuse encodings that the processes of runs cannot know.

    Raises:
        UserError: With what to do.
    """
    words = [word for config in kinds for word in (config.encoding, *map(str, config.encoding_args.values()))]
    if executor != "sequential" and (name := registry.stays_here(words, executor == "local", executor != "commands")):
        raise UserError(
            f"encoding {name!r} was registered by a script, a notebook, a suite's file or a module that runs of "
            f"--executor {executor} do not import: have it in a module, and ask for it as --pe module:Class."
        )


def check_devices(kinds: Iterable[RunConfig], options: argparse.Namespace) -> None:
    """Refuse devices that are not here, or do not serve the runs.

    Raises:
        UserError: With what was expected.
    """
    for config in kinds:
        if (size := config.train.batch_size) % options.devices:
            raise UserError(f"{config.task}: train.batch_size must be a multiple of --devices, got {size}.")
    if options.executor not in LOCAL:
        return  # other machines have other devices
    import torch

    there = torch.cuda.is_available()
    if options.device == "cuda" and not there:
        raise UserError("--device cuda: there is none here, or this torch cannot use it. See: --device auto")
    if options.device == "cpu" or not there:
        for config in kinds:
            if config.train.precision == "16-mixed":
                raise UserError("train.precision=16-mixed needs a GPU; on processors: bf16-mixed.")


def finish(
    records: Mapping[str, Record],
    plan: Sequence[RunConfig],
    options: argparse.Namespace,
    console: Console,
    reference: str,
) -> int:
    """Print the table of what was asked for, and where the rest is."""
    if options.executor == "commands":
        return 0
    from pebench.results.writers.terminal import terminal

    terminal(records.values(), console, reference)
    out = options.out
    say(console, f"\nRecords: {out}/   Markdown: pebench report {out}   Curves: pebench tensorboard {out}")
    return 0 if all(config.key in records and records[config.key].ok for config in plan) else EXIT_FAILED


def list_states(runs: Sequence[RunConfig], found: Sequence[str]) -> None:
    """Print each run and its state; of many runs how many of a folder are in which state."""
    lines = [(state, config.directory) for config, state in zip(runs, found, strict=True)]
    if len(runs) > LISTED:
        folders = [config.directory.rpartition("/")[0] + ", select" * (config.stage == "select") for config in runs]
        groups = Counter(zip(found, folders, strict=True))
        lines = [(state, f"{folder}: {counted(number, 'run')}") for (state, folder), number in groups.items()]
    sys.stdout.writelines(f"  {state:7} {what}\n" for state, what in lines)


def dry_run(plan: Plan, options: argparse.Namespace, console: Console) -> int:
    """Say what would run, what is there, and what the rest will take."""
    find_executor(options.executor)
    check_devices(plan.kinds, options)
    costs = check_costs(plan.kinds)
    selecting = plan.selecting()
    known = load(selecting, options.out)
    runs = [*selecting, *plan.testing(known)]
    later = plan.later(known)
    found = states(runs, options.out)
    again = ("to do", "failed") if options.retry_failed else ("to do",)
    waiting = [config for config, state in zip(runs, found, strict=True) if state in again]
    failed = 0 if options.retry_failed else found.count("failed")
    say(console, summary(len(runs) + later, later + len(waiting), failed, found.count("running")))
    list_states(runs, found)
    if later:
        say(console, f"  ... and {counted(later, 'run')} with values that these will select")
    say(console, f"\n{cost_table(((kind, costs[kind.kind_key]) for kind in plan.kinds), plan.suite.vary)}\n")
    if plan.suite.name == COMMAND_LINE and not plan.suite.select:
        rates = ", ".join(dict.fromkeys(f"{kind.train.learning_rate:g}" for kind in plan.kinds))
        say(console, f"Learning rate: {rates}, the same for every row of a task (--select chooses one for each)")
    say(console, expectation(waiting, later, options, max(k.parameters for k in costs.values()), plan.suite.cost))
    return 0


def cost_table(costs: Iterable[tuple[RunConfig, Cost]], varied: Collection[str] = ()) -> str:
    """What each kind of run costs, as a table.

    Args:
        costs: Of each kind.
        varied: Settings that get a column, as rows differ in them.
    """
    from tabulate import tabulate

    rows = [
        [
            c.task,
            c.label,
            *map(str, c.values_of(varied).values()),
            c.regime,
            c.model.d_ff or 4 * c.model.d_model,
            f"{k.encoding:,}",
            f"{k.parameters:,}",
            si_text(k.flops),
        ]
        for c, k in costs
    ]
    names = ["Task", "Encoding", *varied, "Matched by", "d_ff", "Encoding params", "Total params", "FLOPs, full length"]
    align = ["left", "left", *["right"] * len(varied), "left", *["right"] * 4]
    return tabulate(rows, headers=names, tablefmt="simple", colalign=align, disable_numparse=True)


def expectation(
    waiting: Sequence[RunConfig], later: int, options: argparse.Namespace, parameters: int, said: str = ""
) -> str:
    """The time and disk that runs will take, in words.

    Args:
        waiting: The runs.
        later: How many more there will be.
        options: From the command line.
        parameters: Of the largest model.
        said: What the suite says that it costs.
    """
    ahead = forecast(waiting, options.out)
    jobs = at_a_time(len(waiting) + later, options)
    if not waiting and not later:
        return "Nothing is left to do."
    parts = []
    if known := len(waiting) - ahead.unknown:
        each = ahead.seconds / known
        total = duration_text(each * (len(waiting) + later) / jobs)
        parts.append(f"Time: about {total} with {jobs} at a time, going by {ahead.sampled} earlier runs")
        if ahead.unknown:
            parts[-1] += f" ({ahead.unknown} of these runs resemble none and are taken for the mean of the others)"
    else:
        told = f"; of the whole suite its file says: {said}" if said else ""
        parts.append(f"Time: unknown, nothing like these runs has been done here{told}")
    size = ahead.bytes_per_run or USUAL_BYTES
    measured = "measured" if ahead.bytes_per_run else "usual"
    checkpoints = jobs * CHECKPOINT_BYTES * parameters
    parts.append(
        f"Disk: about {decimal(int(size * (len(waiting) + later)))}, {decimal(int(size))} a run ({measured}), and "
        f"{decimal(checkpoints)} of checkpoints while they run"
    )
    return "\n".join(parts)


USUAL_BYTES = 6_000.0
"""What a run of the quickstart leaves on the disk: its record, its curves for TensorBoard, its log."""

CHECKPOINT_BYTES = 16
"""For each parameter: the best weights, and for going on the latest ones with both of Adam's moments, 4 bytes each."""
