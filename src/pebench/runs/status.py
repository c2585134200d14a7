"""The progress of an output folder, read from its files alone: from any terminal or machine that sees them."""

import time
from collections import Counter
from pathlib import Path
from statistics import fmean

from pebench.errors import UserError
from pebench.formatting import counted, duration_text
from pebench.runs.leases import Holder, holder_of
from pebench.runs.plan import planned_runs, run_state
from pebench.runs.records import FILE_NAME, Record, read_record, record_in
from pebench.runs.rubbish import LAST_CHECKPOINT
from pebench.tasks import metric_text

STATES = ("done", "failed", "running", "to do")
"""States of a run, in the order in which they are shown."""


def status(out: Path) -> str:
    """Return the state of every run that is planned for, or found in, an output folder, as text for a terminal.

    Raises:
        UserError: If there is no such folder, or nothing in it.
    """
    # Found ones too: those that `pebench merge` has laid out were never planned here.
    runs = list(dict.fromkeys([*planned_runs(out), *_found(out)]))
    if not runs:
        raise UserError(f"{str(out)!r} is no output folder of pebench: nothing is planned or recorded there.")
    states = {run: run_state(record_in(out, run), out / run) for run in runs}
    counts = _counts(Counter(states.values()))
    lines = [f"{out}: {counted(len(runs), 'run')}: {counts}{_left(out, states)}", "", _table(states)]
    running = [(run, holder) for run in _in_state(states, "running") if (holder := holder_of(out / run))]
    if running:
        lines += ["", "running", *(f"  {run}: {_progress(run, holder)}" for run, holder in running)]
    begun = [(run, at) for run in _in_state(states, "to do") if (at := _checkpoint_time(out / run))]
    if begun:
        lines += ["", "interrupted (the same command goes on from their checkpoints)"]
        lines += [f"  {run}: checkpoint of {duration_text(_seconds_since(at))} ago" for run, at in begun]
    failed = [(run, record) for run in _in_state(states, "failed") if (record := read_record(out / run))]
    if failed:
        lines += ["", "failed (run them again with --retry-failed)"]
        lines += [f"  {run}: {_failure(record)}" for run, record in failed]
    damaged = [run for run in _in_state(states, "to do") if (out / run / FILE_NAME).exists()]
    if damaged:
        lines += ["", "records that cannot be read, or are another run's (the same command makes these again)"]
        lines += [f"  {run}" for run in damaged]
    return "\n".join(lines) + "\n"


def _found(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.glob("*/*/*seed*") if path.is_dir())


def _in_state(states: dict[str, str], wanted: str) -> list[str]:
    return [run for run, state in states.items() if state == wanted]


def _counts(count: Counter[str]) -> str:
    shown = [state for state in STATES if count[state] or state in ("done", "to do")]  # these two also where none is
    return ", ".join(f"{count[state]} {state}" for state in shown)


def _table(states: dict[str, str]) -> str:
    """Return the number of runs of each task in each state, as a table."""
    from tabulate import tabulate

    tasks: dict[str, Counter[str]] = {}
    for run, state in states.items():
        tasks.setdefault(_task(run), Counter())[state] += 1
    rows = [[task, *(count[state] for state in STATES)] for task, count in sorted(tasks.items())]
    return str(tabulate(rows, headers=["Task", *STATES], tablefmt="simple"))


def _task(run: str) -> str:
    """Return the task of a run, by its folder."""
    return run.partition("/")[0]


def _left(out: Path, states: dict[str, str]) -> str:
    """Return the time left, by the time that a task's runs took so far and the number of runs that are running."""
    running = len(_in_state(states, "running"))
    if not running:
        return ""
    seconds_each, runs_left = {}, {}
    for task in {_task(run) for run in states}:
        own = {run: state for run, state in states.items() if _task(run) == task}
        # Of the runs that are running half is left, on average.
        runs_left[task] = len(_in_state(own, "to do")) + 0.5 * len(_in_state(own, "running"))
        records = [read_record(out / run) for run in _in_state(own, "done")[:10]]  # a few are enough
        took = [record.duration_s for record in records if record and record.duration_s]
        if took:
            seconds_each[task] = fmean(took)
    if not seconds_each:
        return ", time left unknown"
    others = fmean(seconds_each.values())  # for a task of which none is done yet
    seconds = sum(runs * seconds_each.get(task, others) for task, runs in runs_left.items())
    return f", about {duration_text(seconds / running)} left"


def _progress(run: str, holder: Holder) -> str:
    since = duration_text(_seconds_since(holder.since))
    metric = metric_text(_task(run), holder.metrics, "val")
    return f"step {holder.step}{metric and ', ' + metric}, for {since}, process {holder.pid} on {holder.host}"


def _checkpoint_time(folder: Path) -> float | None:
    try:
        return (folder / LAST_CHECKPOINT).stat().st_mtime
    except FileNotFoundError:
        return None


def _seconds_since(moment: float) -> float:
    return max(0.0, time.time() - moment)  # clocks of machines differ


def _failure(record: Record) -> str:
    return f"{(record.error or {}).get('kind', 'failed')}: {record.reason}"
