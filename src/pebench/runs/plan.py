"""Plans: the runs that a suite needs, and which of them are done. Torch-free."""

import contextlib
import hashlib
import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pebench.atomic import PART, write_text
from pebench.config import RunConfig
from pebench.formatting import counted
from pebench.runs.leases import holder_of
from pebench.runs.records import FILE_NAME, Record, damage, find_record
from pebench.runs.records.folders import PLANS
from pebench.runs.selection import Trial, best, trials_of
from pebench.runs.suite import Suite

TRIES = 5
"""Number of times that a plan is written before it is left out: `pebench status` alone needs it."""


@dataclass(frozen=True)
class Plan:
    """The runs of a suite.

    Args:
        suite: Suite to run.
        kinds: One run of each task and encoding.
    """

    suite: Suite
    kinds: Sequence[RunConfig]

    def selecting(self, records: Mapping[str, Record] | None = None) -> list[RunConfig]:
        """Return the runs that choose settings by validation, seed by seed; they come before those that are tested.

        Args:
            records: Records of such runs, by key: they may ask for values beyond the grid (see `trials_of`).
        """
        runs = []
        for kind in self.kinds:
            for config, _ in self._tried(kind, records or {}):
                runs += [config.with_seed(seed) for seed in self.suite.selecting_seeds(kind.task)]
        # By seed first, so that an interrupted suite has tried every value once. Sorting keeps the order of the kinds.
        return unique_runs(sorted(runs, key=lambda config: config.seed))

    def rounds(self, records: Mapping[str, Record]) -> Iterator[list[RunConfig]]:
        """Yield the runs that choose settings, round by round: those of the grids, then those beyond.

        Args:
            records: Records by key, to which those of a round are added before the next is asked for.
        """
        asked = set[str]()
        while new := [config for config in self.selecting(records) if config.key not in asked]:
            yield new
            if not self.suite.select_beyond:
                return
            asked |= {config.key for config in new}

    def chosen(self, kind: RunConfig, records: Mapping[str, Record]) -> RunConfig | None:
        """Return a kind of run with its best values by validation, of equally good ones the lowest.

        Args:
            kind: Kind of run, before any value is chosen.
            records: Records of the selecting runs, by key.

        Returns:
            None if no value trained, and while a run is missing that might change the choice; see `Trial.settled`.
        """
        if not self.suite.select:
            return kind
        tried = self._tried(kind, records)
        # No choice before it is final: runs that are tested with another value meanwhile would be for nothing.
        if not all(trial.settled for _, trial in tried):
            return None
        winner = best(trial for _, trial in tried)
        for config, trial in tried:
            if trial is winner:
                return replace(config, stage="test")
        return None

    def _tried(self, kind: RunConfig, records: Mapping[str, Record]) -> list[tuple[RunConfig, Trial]]:
        """Return a kind of run with each combination of values, and the known records of each; the lowest first."""
        seeds = self.suite.selecting_seeds(kind.task)

        def known(config: RunConfig) -> tuple[Record, ...]:
            keys = [config.with_seed(seed).key for seed in seeds]
            return tuple(records[key] for key in keys if key in records)

        return trials_of(self.suite, kind, known)

    def testing(self, records: Mapping[str, Record]) -> list[RunConfig]:
        """Return the runs that are tested, task by task, so that the first table is there early.

        Those of a task come seed by seed, so that rows of an interrupted suite are equally long.

        Args:
            records: Records of the selecting runs, by key. A kind for which they choose nothing yet is left out.
        """
        kinds = [config for kind in self.kinds if (config := self.chosen(kind, records))]
        runs = [config.with_seed(seed) for seed in self.suite.tested_seeds for config in kinds]
        tasks = list(dict.fromkeys(config.task for config in kinds))
        return unique_runs(
            sorted(runs, key=lambda config: tasks.index(config.task))
        )  # sorting keeps the order of equals

    def undecided(self, records: Mapping[str, Record], retrying: bool = True) -> int:
        """Return the number of runs that will be tested with values that are not chosen yet.

        Args:
            records: Records of the selecting runs, by key. A kind whose every value failed to train is never tested.
            retrying: False where failed runs are kept: then a kind that waits for one is never tested either.
        """
        kinds = 0
        for kind in self.kinds:
            waiting = [trial for _, trial in self._tried(kind, records) if not trial.settled]
            kinds += bool(waiting) and (retrying or all(len(trial.records) < trial.seeds for trial in waiting))
        return len(self.suite.tested_seeds) * kinds


def unique_runs(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return the runs in their order, each once."""
    return list({config.key: config for config in configs}.values())


def run_states(plan: Sequence[RunConfig], out: Path) -> list[str]:
    """Return the state of each run: ``done``, ``failed``, ``running`` (in a living process) or ``to do``.

    Lists each encoding's folder once, as a plan may have very many runs of which none is begun.
    """
    folders: dict[str, set[str]] = {}
    found = []
    for config in plan:
        parent, _, name = config.directory.rpartition("/")
        if parent not in folders:
            folders[parent] = set(os.listdir(out / parent)) if (out / parent).is_dir() else set()
        found.append(_state_of(config, out) if name in folders[parent] else "to do")
    return found


def _state_of(config: RunConfig, out: Path) -> str:
    return run_state(find_record(config, out), out / config.directory)


def run_state(record: Record | None, folder: Path) -> str:
    """Return the state of one run; see `run_states`.

    Args:
        record: Its record; None if it has none that can be read, and so is to be made, or made again.
        folder: Its folder.
    """
    # The record first: a process may hold its run for a moment after it has written it.
    if record and record.ok:
        return "done"
    if holder_of(folder):
        return "running"
    return "failed" if record else "to do"


def write_plan(plan: Sequence[RunConfig], out: Path) -> None:
    """Write the folders of the planned runs to a file, for ``pebench status``.

    Args:
        plan: The runs.
        out: Output folder.
    """
    folder = out / PLANS
    runs = [config.directory for config in plan]
    path = folder / f"{_plan_name(runs)}.json"  # the same plan again is the same file
    for left in folder.glob(PART):  # of a process that died while it wrote a plan
        left.unlink(missing_ok=True)
    for _ in range(TRIES):
        with contextlib.suppress(FileNotFoundError):  # another command, starting too, has taken it for such a one
            write_text(path, f"{json.dumps({'runs': runs})}\n")
            return


def _plan_name(runs: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(runs).encode()).hexdigest()[:12]


def planned_runs(out: Path) -> list[str]:
    """Return every run that was ever planned for an output folder, as its folder there; earlier plans come first."""
    found: dict[str, None] = {}
    # By time, as names are hashes: `pebench status` lists runs in the order in which they were planned.
    for path in sorted((out / PLANS).glob("*.json"), key=lambda path: path.stat().st_mtime):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a damaged plan is ignored
            runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
            if path.stem == _plan_name(runs):  # its name is its checksum
                found |= dict.fromkeys(run for run in runs if ".." not in run and not os.path.isabs(run))
    return list(found)


def load_records(plan: Sequence[RunConfig], out: Path) -> dict[str, Record]:
    """Return the records of a plan's runs, by key; runs without one are left out."""
    return {config.key: record for config in plan if (record := find_record(config, out))}


def unreadable_records(plan: Sequence[RunConfig], known: Container[str], out: Path) -> list[str]:
    """Return a sentence that runs whose records are damaged are made again; nothing where none is.

    Args:
        plan: The runs.
        known: The keys of those whose records can be read.
        out: Output folder.
    """
    found = {c.directory: text for c in plan if c.key not in known and (text := damage(c, out))}
    if not found:
        return []
    first, text = next(iter(found.items()))
    return [
        f"{counted(len(found), 'record')} cannot be read: {out / first / FILE_NAME}{' and others' * (len(found) > 1)}, "
        f"as {text}. {'Their runs are' if len(found) > 1 else 'Its run is'} made again, and what is there stays as "
        "unreadable-*.json"
    ]
