"""The engine: makes the runs of a suite that are left, through an executor, and returns their results."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from pebench.config import CORE_ENCODINGS, REFERENCE_ENCODING, Options, RunConfig
from pebench.encodings import registry
from pebench.engine.checks import check_data, check_kinds, data_remarks
from pebench.engine.execution import (
    Execution,
    RunOptions,
    environment,
    execution,
    missing_weights,
    runs_at_a_time,
)
from pebench.engine.executors import Executor, Resources, check_settings, find_executor
from pebench.engine.executors.server import prepare, warm_up
from pebench.engine.notebook import default_observer
from pebench.engine.observer import Observer, Stage
from pebench.engine.options import check_writable, make_writable
from pebench.engine.pace import long_wait
from pebench.engine.plans import UNDECLARED, listed, make_plan, plain
from pebench.engine.precision import settled
from pebench.engine.published import published_text, take_published
from pebench.engine.signals import handling, terminate
from pebench.formatting import counted
from pebench.results.frame import Results
from pebench.results.provenance import changed_plugins
from pebench.runs.collector import paused_garbage_collection
from pebench.runs.plan import Plan, load_records, unreadable_records, write_plan
from pebench.runs.records import Record, write_record
from pebench.runs.rubbish import clear_rubbish
from pebench.runs.suite import Encoding, Suite
from pebench.runs.suite.values import fits
from pebench.runs.token_tables import check_weights, table_sources
from pebench.tasks.registry import clash as task_clash
from pebench.tasks.registry import normal_name

TABLES, SELECTING, BEYOND, TESTING = "making token tables", "selecting", "selecting beyond the grid", "testing"


def run(  # noqa: PLR0913 - the fields of a suite, which users know by name
    tasks: str | Sequence[str],
    encodings: str | Sequence[Encoding] = CORE_ENCODINGS,
    seeds: int | Sequence[int] = 3,
    *,
    tier: str | None = None,
    settings: Mapping[str, Any] | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    select: Mapping[str, Sequence[Any]] | None = None,
    selection_seeds: int = 1,
    select_beyond: int = 0,
    regime: str = "width",
    reference: str = REFERENCE_ENCODING,
    out: Path | str = "runs",
    **options: Unpack[RunOptions],
) -> Results:
    """Train each encoding on each task with each seed, and return the results, as ``pebench run`` does.

    Runs that are finished under `out` are read, not made again.

    Args:
        tasks: A task's name, or several; see `pebench list tasks`.
        encodings: An encoding, ``"rope"`` or ``"concat(d_p=16)"``, or several; in a list also as pairs of a name and
            options.
        seeds: Seeds 0 to this minus one, or the seeds themselves.
        tier: Budget: ``smoke``, ``minute``, ``quick``, ``core`` or ``full``; None takes each task's default.
        settings: Dotted names to values, for all runs: ``{"train.max_steps": 100}``.
        vary: Settings that each value of makes a table of its own: ``{"model.num_layers": [1, 2, 4]}``.
        select: Settings to choose by validation, per task and encoding, with the values to try.
        selection_seeds: Seeds that each value is tried with.
        select_beyond: Further values to try beyond an end of the grid while a row's best is there.
        regime: The quantity that is equal between rows: ``width``, ``parameters`` or ``FLOPs``.
        reference: Label of the row that the others are compared to.
        out: Output folder of the records.
        **options: How runs are made, as in `run_suite`.

    Raises:
        UserError: For everything that does not exist or cannot work, before any run starts.
    """
    names = listed(tasks)
    if fits(names, Sequence[str]):  # else the suite says what it expects
        names = [normal_name(name) for name in names]
    suite = Suite(
        UNDECLARED,
        "",
        tasks=names,
        encodings=listed(encodings),
        seeds=plain(seeds),
        tier=tier,
        settings=settings or {},
        vary=vary or {},
        select=select or {},
        selection_seeds=selection_seeds,
        select_beyond=select_beyond,
        regime=regime,
        reference=reference,
    )
    return run_suite(suite, out, **options)


def run_suite(
    suite: Suite | Plan | str | Path | Sequence[RunConfig], out: Path | str = "runs", **options: Unpack[RunOptions]
) -> Results:
    """Make the runs of a suite that are left, and return the results of all.

    Settings are selected first, if the suite selects any, then every row is tested. A run that fails leaves a record
    and the others go on. After an interruption the same call goes on where it was stopped.

    Args:
        suite: A suite, its name or file, its plan, or the configurations of exact runs.
        out: Output folder of the records.
        **options: How runs are made:

            * ``executor``: ``local`` (a process for each run, the default), ``sequential`` or ``together`` (in
              this one, sharing a GPU), ``ray``, ``slurm`` or ``commands`` (which prints a command line for each run).
            * ``executor_options``: Settings of a cluster's executor.
            * ``jobs``: Runs at a time; one per core or GPU by default.
            * ``threads``: CPU threads of a run; cores / jobs by default.
            * ``device``: ``auto``, ``cpu`` or ``cuda``.
            * ``devices``: Devices of one run, joined by DDP.
            * ``data_dir``: Local data instead of downloads; ``PEBENCH_DATA_DIR`` by default.
            * ``time_limit``: Seconds after which a run is ended and counts as failed.
            * ``offline``: Never use the network.
            * ``retry_failed``: Make runs again that failed before.
            * ``keep_weights``: Keep the tested weights, for `pebench.training.weights.load_weights`; in new runs only.
            * ``analyze``: Analyze each tested model, and keep the figures in its record; see `pebench.analyze`.
            * ``loggers``: Loggers beside TensorBoard, as ``--logger`` takes them, in new runs only.
            * ``published``: Folder of published records to take; ``results`` for a declared suite; False for none.
            * ``observer``: An `Observer` that follows the runs; by default a bar in a notebook, and silence elsewhere.

    Raises:
        KeyboardInterrupt: On Ctrl-C or SIGTERM, once runs have saved where they are.
        UserError: For everything that does not exist or cannot work, before any run starts.
    """
    how, observer = execution(out, options), options.get("observer") or default_observer()
    records, untested, missing = dict[str, Record](), list[RunConfig](), list[RunConfig]()
    with environment(how):
        with observer.loading():
            plan = settled(make_plan(suite), how, observer.note)
        for title, runs in _stages(plan, records):
            if title == TESTING:
                untested = _untested(plan, records, how, observer)
            if not runs:
                continue
            made = replace(how, keep_weights=how.keep_weights or title == TABLES)
            known = _known(title, runs, plan, made, observer)
            stage = _planned(title, runs, known, plan, made, observer)
            if stage.todo:
                failed = [known[config.key] for config in stage.todo if config.key in known]
                with _prepared(stage, failed, made, observer) as (execute, worker_options, resources):
                    # called here and not one function deeper, so that a traceback from a loss stays short
                    execute(stage.todo, worker_options, resources, observer)
                known |= load_records(stage.todo, how.out)
            missing += [config for config in runs if config.key not in known]
            if title != TABLES:
                records |= known
            elif how.elsewhere and stage.todo:
                observer.note("once these are done, the same command prints the runs that take their token tables")
                break
    return Results(list(records.values()), plan.suite, missing=missing, untested=untested)


def _stages(plan: Plan, records: Mapping[str, Record]) -> Iterator[tuple[str, list[RunConfig]]]:
    """Yield the title and the runs of each stage; which runs these are depends on the records of those before."""
    for number, runs in enumerate(plan.rounds(records)):
        yield TABLES, table_sources(runs)
        yield BEYOND if number else SELECTING, runs
    runs = plan.testing(records)
    yield TABLES, table_sources(runs)
    yield TESTING, runs


def _known(title: str, runs: Sequence[RunConfig], plan: Plan, how: Execution, observer: Observer) -> dict[str, Record]:
    """Return the records of runs that have one, by key; published ones are laid out in the output folder first."""
    known = load_records(runs, how.out)
    taken = take_published(runs, known, plan.suite, how)
    if taken:
        make_writable(how.out)
        for record in taken.values():
            write_record(record, how.out)
        stage = f"{title}: " if plan.suite.select else ""
        observer.note(stage + published_text(len(taken), len(runs)))
    return known | taken


def _planned(
    title: str,
    runs: Sequence[RunConfig],
    known: Mapping[str, Record],
    plan: Plan,
    how: Execution,
    observer: Observer,
) -> Stage:
    """Return a stage, and tell the observer: which of its runs are left, and how many failures are kept."""
    clear_rubbish(runs, known, how.out)
    if title == TABLES:
        check_weights(known.values(), how.out)
    todo = []
    for config in runs:
        record = known.get(config.key)
        # A failure is kept as an outcome: the same mistake would fail again on every call.
        if record is None or (how.retry_failed and not record.ok):
            todo.append(config)
    failed = 0 if how.retry_failed else sum(not record.ok for record in known.values())
    if title in (SELECTING, BEYOND):
        title = title.replace("selecting", f"selecting {', '.join(plan.suite.select)}")
    titled = plan.suite.select or title == TABLES
    stage = Stage(runs, todo, failed, title if titled else "", tuple(plan.suite.vary), known)
    observer.planned(stage)
    for message in [*unreadable_records(runs, known, how.out), *_warnings(runs, known, how)]:
        observer.note(message)
    return stage


def _untested(plan: Plan, records: Mapping[str, Record], how: Execution, observer: Observer) -> list[RunConfig]:
    """Return the rows for which no setting could be chosen, and note them; none where others make the runs."""
    left_out = [kind for kind in plan.kinds if not plan.chosen(kind, records)]
    if not left_out:
        return []
    if how.elsewhere:
        observer.note(f"once these are done, the same command prints those that test {counted(len(left_out), 'row')}")
        return []
    names = ", ".join(f"{kind.task} {kind.label}" for kind in left_out)
    observer.note(
        f"not tested, as not every value of {', '.join(plan.suite.select)} could be tried (--retry-failed), or "
        f"training diverged with each: {names}"
    )
    return left_out


def _warnings(runs: Sequence[RunConfig], known: Mapping[str, Record], how: Execution) -> list[str]:
    """Return warnings: encodings' and tasks' names used twice, plug-ins that have changed, weights that are missing."""
    clashes = [registry.clash(encoding) for encoding in dict.fromkeys(config.encoding for config in runs)]
    clashes += [task_clash(task) for task in dict.fromkeys(config.task for config in runs)]
    finished = [record.config for record in known.values() if record.ok]
    return [*filter(None, [*clashes, missing_weights(finished, how)]), *changed_plugins(known.values())]


@contextmanager
def _prepared(
    stage: Stage, failed: Sequence[Record], how: Execution, observer: Observer
) -> Iterator[tuple[Executor, Options, Resources]]:
    """Check everything that can be checked, prepare the data, and keep order while an executor makes the runs.

    Args:
        stage: The stage whose runs are to be made.
        failed: Records of those to be made that have failed before.
        how: How runs are made.
        observer: Follows them.

    Yields:
        The executor, and what it takes.

    Raises:
        UserError: If a run cannot work, before any of them starts.
    """
    check_settings(how.executor, how.executor_options)  # before anything heavy is imported
    check_writable(how.out)
    execute = find_executor(how.executor)
    check_data(stage.todo, how)
    with observer.loading(), paused_garbage_collection():  # this loads torch
        if not how.here and not how.elsewhere:
            warm_up()  # its imports go on while this process makes its own
        kinds = list({config.kind_key: config for config in stage.todo}.values())
        costs = check_kinds(kinds, how)
        warning = long_wait(stage.todo, costs, how) if how.local else ""
        if how.here:  # now, while Ctrl-C has nothing to save
            import pebench.training.runner  # noqa: F401
    jobs = runs_at_a_time(len(stage.todo), how) if how.local else how.jobs
    options, resources = how.worker_options(jobs), how.resources(jobs)
    options = replace(options, retried=frozenset(record.checksum for record in failed))
    if warning:
        observer.note(warning)
    with handling({signal.SIGTERM: terminate}):  # as on Ctrl-C
        make_writable(how.out)  # not earlier: a mistake leaves no empty folder
        write_plan(stage.runs, how.out)  # by which `pebench status` knows of runs that have not begun
        observer.started()
        for remark in data_remarks(stage.todo):
            observer.note(remark)
        try:
            if not how.elsewhere:
                prepare(stage.todo, options, observer, how.here)
            yield execute, options, resources
        finally:
            observer.ended()
