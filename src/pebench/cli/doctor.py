"""``pebench doctor``: versions, devices, disk, cache, network and data, and how long runs take on this machine.

It prints and sends nothing: the one question to the network is whether the hub answers.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pebench.config import REFERENCE_ENCODING, TIERS, RunConfig
from pebench.engine.checks import memory
from pebench.engine.execution import Execution, cores, environment, execution, runs_at_a_time
from pebench.engine.pace import device_here, expected_seconds
from pebench.engine.run import run_suite
from pebench.errors import UserError
from pebench.formatting import counted, duration_text, folded
from pebench.runs.costs import check_costs
from pebench.runs.forecast import forecast
from pebench.runs.plan import Plan
from pebench.runs.suite import load_suite
from pebench.tasks import TASKS, Task, configure, sources
from pebench.tasks.configurations import default_tier

PROBE_S = 2.0
"""Time that the hub has to answer, in seconds."""

TRIED_STEPS = 30
"""Steps of the short runs by which longer ones are foretold; the first ones are not timed."""


def doctor_command(options: argparse.Namespace) -> int:
    """Print what this machine has, what it lacks, and about how long each tier takes."""
    how = execution(Path(), {"data_dir": options.data_dir, "offline": options.offline})
    with environment(how):
        for title, lines in (
            ("Network", _network()), ("Cache", _cache()), ("Data", _data(how)), ("Machine", _machine()),
            ("Versions", _versions()), ("Time", _times(how)),
        ):  # fmt: skip
            sys.stdout.write(f"{title}\n")
            for line in lines:  # one by one, as some take a moment
                sys.stdout.write(f"{folded(f'  {line}')}\n")
                sys.stdout.flush()
    return 0


def _network() -> Iterator[str]:
    if sources.offline():
        yield "forbidden (--offline, PEBENCH_OFFLINE or HF_HUB_OFFLINE)"
        return
    site = sources.hub_site()
    there = sources.reachable(site, PROBE_S)
    yield f"{site} answers" if there else f"{site} does not answer within {PROBE_S:g} s: use data that is here"


def _cache() -> Iterator[str]:
    try:
        folder = sources.cache_folder()
    except UserError as error:
        yield str(error)
        return
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = os.access(there, os.W_OK) and there.is_dir()
    yield f"{folder}: {_gib(size)}, " + ("writable" if writable else "not writable: set PEBENCH_CACHE_DIR to another")
    yield f"{_gib(shutil.disk_usage(there).free)} free there, {_gib(shutil.disk_usage('.').free)} free in this folder"


def _data(how: Execution) -> Iterator[str]:
    """Yield which tasks can run at once, and which need a download."""
    states: dict[str, list[str]] = {}
    with environment(replace(how, offline=True)):  # so that the network is not asked for each task
        for task in TASKS.values():
            states.setdefault(_state(task, how.data_dir), []).append(task.name)
    for state, names in sorted(states.items()):
        yield f"{state}: {', '.join(names)}"


def _state(task: Task, data_dir: Path | None) -> str:
    if task.source is None:
        return "comes with pebench"
    try:
        task.check_available(task.budgets[default_tier(task)].data, data_dir)
    except UserError:
        return "not here, downloaded at the first run" if data_dir is None else "not in the data folder"
    return "here"


def _machine() -> Iterator[str]:
    import torch

    from pebench.training.environment import device_name

    here = memory()
    yield (
        f"{device_name(torch.device('cpu'))}, {counted(cores(), 'core')}, {counted(torch.get_num_threads(), 'thread')}"
        + (f", {_gib(here)} of memory" if here else "")
    )
    if not torch.cuda.is_available():
        yield "no GPU that this torch can use"
    for number in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(number)
        yield f"{found.name}, {_gib(found.total_memory)} of memory"


def _versions() -> Iterator[str]:
    from pebench.training.environment import versions

    yield ", ".join(f"{name} {version}" for name, version in versions().items())


def _times(how: Execution) -> Iterator[str]:
    """Yield about how long the quickstart, and one run of each tier, take here, by short runs of the same kind."""
    suite = load_suite("quickstart")
    quickstart = Plan(suite, suite.kinds()).testing({})
    yield "by short runs, which are being made ..."
    with tempfile.TemporaryDirectory() as folder:
        _try(quickstart, Path(folder), how)
        expected, what = _expected(quickstart, Path(folder), how), f"{len(quickstart)} runs, {device_here()}"
        yield f"pebench run --suite quickstart: about {expected} ({what})"
        for tier in TIERS[1:]:  # the first one, smoke, learns nothing
            task = next(task for task in TASKS.values() if tier in task.budgets)
            run = configure(task.name, "add", 0, tier)
            yield f"--tier {tier}: about {_expected([run], Path(folder), how)} for one run, as of {task.name}"


def _try(runs: Sequence[RunConfig], out: Path, how: Execution) -> None:
    """Make a short run of each task, as many at a time as of all the runs, and leave the records in a folder."""
    first = {config.task: config for config in reversed(runs) if config.encoding == REFERENCE_ENCODING}
    short = [replace(config, train=replace(config.train, max_steps=TRIED_STEPS)) for config in first.values()]
    run_suite(short, out, jobs=runs_at_a_time(len(runs), how), published=False)


def _expected(runs: Sequence[RunConfig], tried: Path, how: Execution) -> str:
    """Return about how long runs take: by short ones that were tried, else by a step on noise."""
    found = forecast(runs, tried)
    if not found.unknown:
        return duration_text(found.seconds / runs_at_a_time(len(runs), how))
    costs = check_costs({config.kind_key: config for config in runs}.values())
    return duration_text(expected_seconds(runs, costs, how))


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
