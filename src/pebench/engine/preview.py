"""The preview of a suite: which runs are left, what each kind costs, and what the rest will take."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from pebench.config import RunConfig
from pebench.engine.checks import check_data, check_kinds
from pebench.engine.execution import Execution, RunOptions, execution, missing_weights, runs_at_a_time
from pebench.engine.executors import check_settings
from pebench.engine.options import check_writable
from pebench.engine.plans import make_plan
from pebench.engine.precision import settled
from pebench.engine.published import take_published
from pebench.runs.costs import Cost
from pebench.runs.forecast import Forecast, forecast
from pebench.runs.plan import Plan, load_records, run_states, unique_runs, unreadable_records
from pebench.runs.records import Record
from pebench.runs.suite import Suite
from pebench.runs.token_tables import table_sources


@dataclass(frozen=True)
class Preview:
    """A preview of `pebench.run_suite`: its runs, and their cost.

    Args:
        plan: The suite and its kinds of runs.
        runs: The runs that are known now: those that select settings, and those that are tested.
        states: The state of each run: ``done``, ``failed``, ``running``, ``taken`` (of published ones) or ``to do``.
        waiting: The runs that would be made.
        later: Number of further runs, with settings that are not selected yet.
        costs: Parameters and FLOPs of each kind of run, by `RunConfig.kind_key`.
        forecast: Time and disk that the waiting runs take, going by earlier ones.
        jobs: Number of runs at a time.
        kept_failures: Number of failed runs that would not be made again.
        published: Number of runs that would be taken from published records.
        notes: Sentences on a precision that was chosen, on finished runs without weights, if these are to be kept, and
            on records that are damaged.
    """

    plan: Plan
    runs: Sequence[RunConfig]
    states: Sequence[str]
    waiting: Sequence[RunConfig]
    later: int
    costs: dict[str, Cost]
    forecast: Forecast
    jobs: int
    kept_failures: int
    published: int = 0
    notes: Sequence[str] = ()


def preview_suite(
    suite: Suite | Plan | str | Path | Sequence[RunConfig], out: Path | str = "runs", **options: Unpack[RunOptions]
) -> Preview:
    """Return what `pebench.run_suite` would do with the same arguments; nothing is trained or written.

    Args:
        suite: A suite, its name or file, its plan, or the configurations of exact runs.
        out: Output folder of the records.
        **options: How runs would be made, as in `pebench.run_suite`.

    Raises:
        UserError: For everything that does not exist or cannot work.
    """
    how, remarks = execution(out, options), list[str]()
    plan = settled(make_plan(suite), how, remarks.append)
    selecting, known, taken = list[RunConfig](), dict[str, Record](), dict[str, Record]()
    for runs in plan.rounds(known):
        selecting += runs
        known |= load_records(runs, how.out)
        taken |= take_published(runs, known, plan.suite, how)
        known |= taken
    # Of the tested runs only those whose settings are chosen already; the others are counted by `undecided`.
    testing = plan.testing(known)
    sources = table_sources([*selecting, *testing])
    runs = unique_runs((*sources, *selecting, *testing))
    found = run_states(runs, how.out)
    left = {config.key for config, state in zip(runs, found, strict=True) if state == "to do"}
    left -= {config.key for config in sources}  # others take their weights, which are not published
    taken |= take_published([config for config in testing if config.key in left], known, plan.suite, how)
    found = ["taken" if config.key in taken else state for config, state in zip(runs, found, strict=True)]
    # Runs that another process is making are not this call's to make.
    waits = ("to do", "failed") if how.retry_failed else ("to do",)
    waiting = [config for config, state in zip(runs, found, strict=True) if state in waits]
    later = plan.undecided(known)
    # What a run would refuse, its preview refuses.
    check_settings(how.executor, how.executor_options)
    if waiting or later:
        check_writable(how.out)
    check_data([*waiting, *(plan.kinds if later else ())], how)
    costs = check_kinds(plan.kinds, how)
    return Preview(
        plan=plan,
        runs=runs,
        states=found,
        waiting=waiting,
        later=later,
        costs=costs,
        forecast=forecast(waiting, how.out),
        jobs=runs_at_a_time(len(waiting) + later, how),
        kept_failures=0 if how.retry_failed else found.count("failed"),
        published=len(taken),
        notes=[*remarks, *_notes(runs, found, how)],
    )


def _notes(runs: Sequence[RunConfig], states: Sequence[str], how: Execution) -> list[str]:
    done = [run for run, state in zip(runs, states, strict=True) if state == "done"]
    readable = {run.key for run, state in zip(runs, states, strict=True) if state != "to do"}
    return [*filter(None, [missing_weights(done, how)]), *unreadable_records(runs, readable, how.out)]
