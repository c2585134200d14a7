"""How far an output folder is: read from the files alone, so from any terminal or machine that sees them."""

import time
from collections import Counter
from pathlib import Path
from statistics import fmean

from pebench.errors import UserError
from pebench.formatting import counted, duration_text
from pebench.runs.leases import Holder, holder_of
from pebench.runs.plan import folder_state, planned
from pebench.runs.records import Record, read_record
from pebench.tasks import metric_text

STATES = ("done", "failed", "running", "to do")


def status(out: Path) -> str:
    """The state of every run planned for, or found in, an output folder.

    Raises:
        UserError: If there is no such folder, or nothing in it.
    """
    runs = list(dict.fromkeys([*planned(out), *_found(out)]))
    if not runs:
        raise UserError(f"{str(out)!r} is no output folder of pebench: nothing is planned or recorded there.")
    states = {run: folder_state(out / run) for run in runs}
    lines = [
        f"{out}: {counted(len(runs), 'run')}: {_counts(Counter(states.values()))}{_left(out, states)}",
        "",
        _grid(states),
    ]
    running = [(run, holder) for run in _of(states, "running") if (holder := holder_of(out / run))]
    failed = [(run, record) for run in _of(states, "failed") if (record := read_record(out / run))]
    if running:
        lines += ["", "running", *(f"  {run}: {_progress(run, holder)}" for run, holder in running)]
    if failed:
        lines += ["", "failed (run them again with --retry-failed)", *(f"  {run}: {_why(r)}" for run, r in failed)]
    return "\n".join(lines) + "\n"


def _found(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.glob("*/*/*seed*") if path.is_dir())


def _of(states: dict[str, str], state: str) -> list[str]:
    return [run for run, its in states.items() if its == state]


def _counts(count: Counter[str]) -> str:
    return ", ".join(f"{count[state]} {state}" for state in STATES if count[state] or state in ("done", "to do"))


def _grid(states: dict[str, str]) -> str:
    from tabulate import tabulate

    tasks: dict[str, Counter[str]] = {}
    for run, state in states.items():
        tasks.setdefault(run.partition("/")[0], Counter())[state] += 1
    rows = [[task, *(count[state] for state in STATES)] for task, count in sorted(tasks.items())]
    return str(tabulate(rows, headers=["Task", *STATES], tablefmt="simple"))


def _left(out: Path, states: dict[str, str]) -> str:
    """The time left in words, going by what runs of each task took so far and how many run now."""
    running, tasks = len(_of(states, "running")), {run.partition("/")[0] for run in states}
    if not running:
        return ""
    per_run, ahead = {}, {}
    for task in tasks:
        mine = {run: state for run, state in states.items() if run.startswith(f"{task}/")}
        ahead[task] = len(_of(mine, "to do")) + 0.5 * len(_of(mine, "running"))
        took = [r.duration_s for run in _of(mine, "done")[:10] if (r := read_record(out / run)) and r.duration_s]
        if took:
            per_run[task] = fmean(took)
    if not per_run:
        return ", time left unknown"
    others = fmean(per_run.values())  # for a task of which none is done yet
    seconds = sum(runs * per_run.get(task, others) for task, runs in ahead.items())
    return f", about {duration_text(seconds / running)} left"


def _progress(run: str, holder: Holder) -> str:
    since = duration_text(max(0.0, time.time() - holder.since))
    metric = metric_text(run.partition("/")[0], holder.metrics, "val")
    return f"step {holder.step}{metric and ', ' + metric}, for {since}, process {holder.pid} on {holder.host}"


def _why(record: Record) -> str:
    return f"{(record.error or {}).get('kind', 'failed')}: {record.reason}"
