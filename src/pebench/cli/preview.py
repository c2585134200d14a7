"""``pebench run --dry-run``: print which runs are left, what they cost and what they will take."""

import sys
from collections import Counter
from collections.abc import Collection, Iterable

from rich.console import Console
from rich.filesize import decimal

from pebench.config import RunConfig
from pebench.engine.plans import UNDECLARED
from pebench.engine.preview import Preview
from pebench.engine.published import published_text
from pebench.formatting import counted, duration_text, si_text
from pebench.runs.costs import Cost

LISTED = 40
"""Largest number of runs that are listed one by one: a screen."""

USUAL_BYTES = 5_000.0
"""Size of what a run of the quickstart leaves on the disk: its record, its curves for TensorBoard, its log."""

PICTURE_BYTES = 31_000.0
"""Size of the picture of an encoding among the curves: of every run whose encoding is trained, else of seed 0."""

CHECKPOINT_BYTES = 16
"""Size of the checkpoints of a run for each parameter: the best weights, and the latest ones with both of Adam's
moments, 4 bytes each."""


def summary(runs: int, todo: int, failed: int, running: int = 0) -> str:
    """Return how many runs are planned and in which state, in a line."""
    text = f"{counted(runs, 'run')}: {todo} to do, {runs - todo - failed - running} done"
    text += f", {running} running" if running else ""
    return text + (f", {failed} failed (run them again with --retry-failed)" if failed else "")


def print_preview(preview: Preview, console: Console) -> None:
    """Print the runs and their states, the cost of each kind, and the time and disk that they will take."""
    suite, plan = preview.plan.suite, preview.plan
    todo = preview.later + len(preview.waiting)
    running = preview.states.count("running")
    total = len(preview.runs) + preview.later
    lines = [summary(total, todo, preview.kept_failures, running), published_text(preview.published, total)]
    _print(console, filter(None, lines))
    print_states(preview)
    lines = []
    if preview.later:
        lines.append(f"  ... and {counted(preview.later, 'run')} with values that these will select")
        if suite.select_beyond:
            further = counted(suite.select_beyond, "further value")
            lines.append(f"  ... and up to {further} for a row whose best is at an end of its grid")
    kinds = [(kind, preview.costs[kind.kind_key]) for kind in plan.kinds]
    lines.append(f"\n{cost_table(kinds, suite.vary)}\n")
    if suite.name == UNDECLARED and not suite.select:
        # One rate for all rows may favour some of them, so a comparison that no suite declares names it.
        rates = ", ".join(dict.fromkeys(f"{kind.train.learning_rate:g}" for kind in plan.kinds))
        lines.append(f"Learning rate: {rates}, the same for every row of a task (--select chooses one for each)")
    lines += [*preview.notes, expectation(preview)]
    _print(console, lines)


def _print(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        # Plain: rich would take brackets in names for markup, and break the lines of a table in a file.
        console.print(line, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def print_states(preview: Preview) -> None:
    """Print each run and its state; of many runs the number of each folder's in each state."""
    runs, states = preview.runs, preview.states
    lines = [(state, config.directory) for config, state in zip(runs, states, strict=True)]
    if len(runs) > LISTED:
        folders = [config.directory.rpartition("/")[0] + ", select" * (config.stage == "select") for config in runs]
        groups = Counter(zip(states, folders, strict=True))
        lines = [(state, f"{folder}: {counted(number, 'run')}") for (state, folder), number in groups.items()]
    sys.stdout.writelines(f"  {state:7} {run}\n" for state, run in lines)


def cost_table(costs: Iterable[tuple[RunConfig, Cost]], varied: Collection[str] = ()) -> str:
    """Return what each kind of run costs, as a table.

    Args:
        costs: A run of each kind, and its cost.
        varied: Dotted names of settings in which rows differ; each gets a column.
    """
    from tabulate import tabulate

    rows = []
    for config, cost in costs:
        settings = map(str, config.values_of(varied).values())
        width = config.model.d_ff or 4 * config.model.d_model
        sizes = [f"{cost.encoding:,}", f"{cost.parameters:,}", si_text(cost.flops)]
        rows.append([config.task, config.label, *settings, config.regime, width, *sizes])
    names = ["Task", "Encoding", *varied, "Matched by", "d_ff", "Encoding params", "Total params", "FLOPs, full length"]
    align = ["left", "left", *["right"] * len(varied), "left", *["right"] * 4]
    return tabulate(rows, headers=names, tablefmt="simple", colalign=align, disable_numparse=True)


def expectation(preview: Preview) -> str:
    """Return the time and disk that the runs that are left will take, in words."""
    left = len(preview.waiting) + preview.later
    if not left:
        return "Nothing is left to do."
    return f"{_time(preview, left)}\n{_disk(preview, left)}"


def _time(preview: Preview, left: int) -> str:
    """Return the time that `left` runs will take, in words."""
    ahead = preview.forecast
    known = len(preview.waiting) - ahead.unknown
    if not known:
        cost = preview.plan.suite.cost  # measured, or estimated, as its text says
        hint = f"; the suite's declaration says: {cost}" if cost else ""
        return f"Time: unknown, nothing like these runs has been done here{hint}"
    # Runs without a precedent, and those of values that are not chosen yet, are taken for the mean of the others.
    total = duration_text(ahead.seconds / known * left / preview.jobs)
    text = f"Time: about {total} with {preview.jobs} at a time, going by {ahead.sampled} earlier runs"
    if ahead.unknown:
        text += f" ({ahead.unknown} of these runs resemble none and are taken for the mean of the others)"
    return text


def _disk(preview: Preview, left: int) -> str:
    """Return the disk space that `left` runs will take, in words."""
    measured = preview.forecast.bytes_per_run
    size = measured or _usual_bytes(preview)
    # The largest, as it is not known which runs go on together.
    parameters = max(cost.parameters for cost in preview.costs.values())
    # Of the runs going on at once: a finished run keeps no checkpoint.
    checkpoints = preview.jobs * CHECKPOINT_BYTES * parameters
    source = "measured" if measured else "usual"
    return (
        f"Disk: about {decimal(int(size * left))}, {decimal(int(size))} a run ({source}), and "
        f"{decimal(checkpoints)} of checkpoints while they run"
    )


def _usual_bytes(preview: Preview) -> float:
    """Return the usual size of a run, as the mean over those that are known now."""
    trained = {kind.label for kind in preview.plan.kinds if preview.costs[kind.kind_key].encoding}
    pictures = [config.seed == 0 or config.label in trained for config in preview.waiting]
    return USUAL_BYTES + PICTURE_BYTES * sum(pictures) / max(1, len(pictures))
