"""What the tests of both kinds of cluster share: runs that take a while, and a display that does harm."""

import contextlib
import io
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from pebench.config import Options, RunConfig
from pebench.engine.executors import Executor, Resources, sequential, watching
from pebench.engine.observer import Stage
from pebench.engine.progress import Display
from pebench.runs.leases import holder_of
from pebench.runs.records import FAILURE, Record, find_record
from pebench.tasks import configure, find_task
from pebench.tasks.own import places
from tests.data.own_data import task_of_kind, texts, write_csv

Hook = Callable[[RunConfig, int], None]


def smoke(encoding: str = "rope", seed: int = 0, **train: Any) -> RunConfig:
    return configure("vit-digits", encoding, seed, "smoke", {f"train.{name}": value for name, value in train.items()})


class Watcher(Display):
    """A display that calls a function whenever it hears of a run in progress."""

    def __init__(self, plan: Sequence[RunConfig], hook: Hook = lambda config, step: None) -> None:
        super().__init__(Console(file=io.StringIO(), width=200))
        self.planned(Stage(plan, plan))
        self.hook = hook

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        super().progress(config, step, metrics)
        self.hook(config, step)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WATCH_S", 0.5)


@pytest.fixture
def watcher() -> type[Watcher]:
    return Watcher


@dataclass
class Outcome:
    """What an executor has done: its folder, its records in the plan's order, and what it told."""

    out: Path
    records: list[Record | None]
    lines: list[str]

    @property
    def statuses(self) -> list[str | None]:
        return [record and record.status for record in self.records]


@pytest.fixture(scope="session")
def do(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    """A function that has an executor do runs."""

    def do(
        execute: Executor,
        plan: Sequence[RunConfig],
        hook: Hook = lambda config, step: None,
        jobs: int = 2,
        out: Path | None = None,
        time_limit_s: float | None = None,
        **settings: str,
    ) -> Outcome:
        out = out or tmp_path_factory.mktemp("out").resolve()
        display = Watcher(plan, hook)
        how = Options(out, device="cpu", threads=1, time_limit_s=time_limit_s)
        execute(plan, how, Resources(jobs, (), settings), display)
        return Outcome(out, [find_record(config, out) for config in plan], display.console.file.getvalue().splitlines())

    return do


class Killer:
    """Kills the processes of runs as soon as these have done a step.

    Args:
        out: Output folder.
        times: How often each run is killed, by its key.
    """

    def __init__(self, out: Path, times: Mapping[str, int]) -> None:
        self.out, self.times = out, dict(times)

    def __call__(self, config: RunConfig, step: int) -> None:
        holder = holder_of(self.out / config.directory)
        if holder and self.times.get(config.key, 0):
            self.times[config.key] -= 1
            os.kill(holder.pid, signal.SIGKILL)


@pytest.fixture
def check_killed(do: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that has an executor do a run that is killed once, and one that is killed whenever it is started."""

    monkeypatch.setattr(watching, "LOST_TRIES", 2)

    def check(execute: Executor, **settings: str) -> None:
        once, always = smoke(max_steps=1000, evaluations=4), smoke(seed=1, max_steps=10**7, evaluations=1)
        killer = Killer(tmp_path, {once.key: 1, always.key: 2})
        outcome = do(execute, [once, always], killer, out=tmp_path, **settings)
        assert outcome.statuses == ["ok", "failed"]
        assert outcome.records[1].error["kind"] == "lost"
        assert "(2 tries)" in outcome.records[1].error["reason"]
        assert sum("is started again" in line for line in outcome.lines) == 2
        assert len(list(tmp_path.rglob("record.json"))) == len(list(tmp_path.rglob(FAILURE))) == 1
        assert not any(killer.times.values())

    return check


@dataclass
class Expected:
    """Runs that finish, one that fails, and what the executor for debugging makes of them."""

    plan: list[RunConfig]
    records: list[Record]

    def check(self, outcome: Outcome) -> None:
        assert outcome.statuses == ["ok", "failed", "ok", "ok"]
        assert [r.metrics for r in outcome.records] == [r.metrics for r in self.records]
        assert [r.dataset for r in outcome.records] == [r.dataset for r in self.records]
        assert outcome.records[1].error["kind"] == "diverged"
        assert outcome.records[1].error["reason"] == self.records[1].error["reason"]
        assert sum(line.startswith(f"[{n}/4] vit-digits ") for line in outcome.lines for n in range(1, 5)) == 4


@pytest.fixture(scope="session")
def expected(do: Callable[..., Outcome]) -> Expected:
    plan = [smoke(), smoke(learning_rate=1e30, max_steps=60, evaluations=1), smoke("add", 1), smoke("none", 2)]
    threads = torch.get_num_threads()
    outcome = do(sequential.execute, plan)
    torch.set_num_threads(threads)
    return Expected(plan, outcome.records)


@pytest.fixture
def check_interrupt(do: Callable[..., Outcome], tmp_path: Path) -> Callable[..., Path]:
    """A function that interrupts an executor in the middle of two runs; returns the folder of the first."""

    def check(execute: Executor, **settings: str) -> Path:
        plan = [smoke(max_steps=10**7, evaluations=1), smoke(seed=1, max_steps=10**7, evaluations=1), smoke("none")]
        pids = dict[str, int]()

        def hook(config: RunConfig, step: int) -> None:
            pids[config.key] = holder_of(tmp_path / config.directory).pid
            if len(pids) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            do(execute, plan, hook, out=tmp_path, **settings)
        assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]
        assert [find_record(config, tmp_path) for config in plan] == [None] * 3
        return tmp_path / plan[0].directory

    return check


@pytest.fixture
def check_hanging(do: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that has an executor do a run that stands still, and sees it end once its time is over."""

    def check(execute: Executor, **settings: str) -> None:
        stopped = list[int]()

        def hook(config: RunConfig, step: int) -> None:
            if not stopped:
                stopped.append(holder_of(tmp_path / config.directory).pid)
                os.kill(stopped[0], signal.SIGSTOP)
                monkeypatch.setattr(watching, "LATE_S", -1000.0)  # a thousand seconds later

        plan = [smoke(max_steps=10**7, evaluations=1)]
        outcome = do(execute, plan, hook, out=tmp_path, time_limit_s=1000.0, **settings)
        with contextlib.suppress(ProcessLookupError):
            os.kill(stopped[0], signal.SIGKILL)
        assert outcome.statuses == ["failed"]
        assert outcome.records[0].error["kind"] == "time limit"

    return check


@pytest.fixture
def check_own_data(do: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that has an executor train on data of a user, which only this process has been told of."""
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))

    def check(execute: Executor, **settings: str) -> None:
        monkeypatch.setattr(places, "_folder", lambda: tmp_path / "elsewhere")  # where no other process looks
        classes = f"texts(path={str(write_csv(tmp_path / 'mine.csv', texts()))!r})"
        tasks = [find_task(task).name for task in (classes, task_of_kind("tags", tmp_path))]
        assert "mine.csv" not in "".join(tasks)
        plan = [configure(task, "rope", 0, "smoke") for task in tasks]
        outcome = do(execute, plan, **settings)
        assert outcome.statuses == ["ok", "ok"]
        assert [record.config.task for record in outcome.records if record] == tasks

    return check
