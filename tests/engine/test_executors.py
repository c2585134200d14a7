"""Runs in processes of their own: one that fails or dies leaves a record, and the others do not notice."""

import io
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console

from pebench.cli import main
from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources, check_settings, find_executor
from pebench.engine.executors.local import _Running, execute
from pebench.engine.executors.server import prepare
from pebench.engine.executors.worker import LOG, failed_record, failure_kind, failure_reason, logged, work
from pebench.engine.observer import Observer, Stage
from pebench.engine.progress import Display
from pebench.errors import DivergedError, UserError
from pebench.runs.records import Record, find_record, read_config, read_records, write_config
from pebench.tasks import configure
from pebench.training.callbacks import ADVICE, Resumable
from pebench.training.runner import train


def smoke(task: str, encoding: str, seed: int = 0, **settings: Any) -> RunConfig:
    return configure(task, encoding, seed, "smoke", {f"train.{name}": value for name, value in settings.items()})


HEALTHY = [smoke("vit-digits", "add"), smoke("text-order", "rope"), smoke("lm-grammar", "learned")]
DIVERGES = smoke("vit-digits", "add", learning_rate=1e30, max_steps=60, evaluations=1)
RAISES = smoke("vit-digits", "none")  # a file lies where its checkpoints must go
ENDLESS = smoke("vit-digits", "rope", max_steps=10**7, evaluations=1)
PLAN = [HEALTHY[0], RAISES, ENDLESS, DIVERGES, *HEALTHY[1:]]


def options(out: Path) -> Options:
    return Options(out, device="cpu", threads=1)


def process_of(config: RunConfig, out: Path) -> int | None:
    """The process that writes a run's log."""
    for process in multiprocessing.active_children():
        if Path(f"/proc/{process.pid}/fd/1").resolve() == out / config.directory / LOG:
            return process.pid
    return None


class Killer(Display):
    """A display that kills the endless run as soon as it is heard of."""

    def __init__(self, plan: list[RunConfig], out: Path) -> None:
        super().__init__(Console(file=io.StringIO(), width=80))
        self.planned(Stage(plan, plan))
        self.out = out

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        super().progress(config, step, metrics)
        if config == ENDLESS and (pid := process_of(config, self.out)):
            os.kill(pid, signal.SIGKILL)


@dataclass
class Outcome:
    out: Path
    lines: list[str]
    left: list[Any]

    def record(self, config: RunConfig) -> Record:
        found = find_record(config, self.out)
        assert found is not None
        return found


def executed(plan: list[RunConfig], out: Path, jobs: int) -> Outcome:
    display = Killer(plan, out)
    display.started()
    try:
        prepare(plan, options(out), display)
        execute(plan, options(out), Resources(jobs), display)
    finally:
        display.ended()
    return Outcome(out, display.console.file.getvalue().splitlines(), multiprocessing.active_children())


linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds processes by /proc")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    out = tmp_path_factory.mktemp("mixed").resolve()
    (out / RAISES.directory).mkdir(parents=True)
    (out / RAISES.directory / "checkpoints").touch()
    return executed(PLAN, out, jobs=2)


@linux
def test_every_run_leaves_a_record_and_no_process(mixed: Outcome) -> None:
    assert {record.config.key for record in read_records(mixed.out)} == {config.key for config in PLAN}
    assert [record.config.key for record in map(mixed.record, PLAN) if record.ok] == [c.key for c in HEALTHY]
    assert mixed.left == []


@linux
def test_a_run_that_raises_leaves_its_reason_and_the_end_of_its_log(mixed: Outcome) -> None:
    record = mixed.record(RAISES)
    assert record.error["reason"].startswith("FileExistsError: ")
    assert record.error["log"].splitlines()[-1].startswith(record.error["reason"])
    assert ", in save_checkpoint\n" in record.error["log"]
    assert len(record.error["log"].splitlines()) <= 20
    assert 0 < record.duration_s < 600


def test_a_run_beyond_its_time_limit_is_ended(tmp_path: Path) -> None:
    limited = replace(options(tmp_path), time_limit_s=3.0)
    prepare([ENDLESS], limited, Observer())
    execute([ENDLESS], limited, Resources(1), Observer())
    record = find_record(ENDLESS, tmp_path)
    assert record is not None
    assert record.error is not None
    assert (record.error["kind"], record.error["reason"]) == ("time limit", "longer than the time limit of 3 s")
    assert 3 <= record.duration_s < 30
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "out of memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "out of memory"),
        (MemoryError(), "out of memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "out of memory"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "out of memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"), "exception"),
        (DivergedError("the loss is inf"), "diverged"),
        (RuntimeError("Encountered `nan` values in tensor"), "diverged"),
        (ValueError("expected 3"), "exception"),
    ],
)
def test_a_failure_has_a_kind(error: Exception, kind: str) -> None:
    assert failure_kind(error) == kind


def test_a_failure_has_a_reason_in_a_line_even_where_torch_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pebench.encodings.checks", None)
    assert failure_reason(ImportError("no torch\nhere")) == "ImportError: no torch"


@linux
def test_a_run_that_diverges_leaves_its_step(mixed: Outcome) -> None:
    error = mixed.record(DIVERGES).error
    assert (error["kind"], error["reason"]) == (
        "diverged",
        f"DivergedError: the loss is nan at step 25; {ADVICE}",
    )


@linux
def test_a_run_that_is_killed_leaves_the_signal(mixed: Outcome) -> None:
    record = mixed.record(ENDLESS)
    assert (record.error["kind"], record.error["reason"]) == ("killed", "killed by signal 9")
    assert not record.metrics


@linux
def test_every_run_has_one_line(mixed: Outcome) -> None:
    lines = [line for line in mixed.lines if line.startswith("[")]
    assert [line.split("]")[0] for line in lines] == [f"[{n}/6" for n in range(1, 7)]
    assert sum("FAILED after " in line for line in lines) == 3
    assert next(line for line in lines if "text-order rope seed 0: test accuracy " in line)
    others = [line for line in mixed.lines if line and not line.startswith(("[", "        "))]
    assert [line for line in others if not line.startswith("preparing the data of ")] == []  # no line is wrapped


@linux
def test_what_a_run_prints_goes_to_its_log_alone(mixed: Outcome) -> None:
    assert "FileExistsError" in (mixed.out / RAISES.directory / LOG).read_text(encoding="utf-8")
    assert not any("Traceback" in line for line in mixed.lines)


@linux
def test_a_log_is_no_program(mixed: Outcome) -> None:
    assert not (mixed.out / RAISES.directory / LOG).stat().st_mode & 0o111


@linux
def test_metrics_do_not_depend_on_jobs_order_or_process(mixed: Outcome, tmp_path: Path) -> None:
    other = executed(HEALTHY[::-1], tmp_path.resolve(), jobs=1)
    for config in HEALTHY:
        first, second = mixed.record(config), other.record(config)
        assert (first.metrics, first.curve) == (second.metrics, second.curve)
        assert first.dataset == second.dataset
    assert train(HEALTHY[0], options(tmp_path / "here")).metrics == mixed.record(HEALTHY[0]).metrics


@pytest.mark.parametrize("name", ["sequential", "together", "local"])
def test_a_run_that_another_process_failed_is_not_tried_again(name: str, tmp_path: Path) -> None:
    failed = failed_record(HEALTHY[0], tmp_path, "time limit", "too slow there", 1.0)
    display = Quiet(HEALTHY[:1])
    find_executor(name)(HEALTHY[:1], options(tmp_path), Resources(1), display)
    assert display.records == [failed]
    assert work(HEALTHY[0], options(tmp_path))
    assert find_record(HEALTHY[0], tmp_path) == failed


def test_the_log_of_a_run_that_is_done_stays(tmp_path: Path) -> None:
    failed_record(HEALTHY[0], tmp_path, "time limit", "too slow there", 1.0)
    log = tmp_path / HEALTHY[0].directory / LOG
    log.write_text("what was printed there\n", encoding="utf-8")
    with logged(log.parent):
        assert work(HEALTHY[0], options(tmp_path))
    assert log.read_text(encoding="utf-8") == "what was printed there\n"


def test_a_log_is_of_the_latest_attempt_alone(tmp_path: Path) -> None:
    log = tmp_path / RAISES.directory / LOG
    log.parent.mkdir(parents=True)
    log.write_text("of an earlier attempt\n", encoding="utf-8")
    (log.parent / "checkpoints").touch()
    with logged(log.parent):
        assert work(RAISES, options(tmp_path))
    assert "of an earlier attempt" not in (text := log.read_text(encoding="utf-8"))
    assert text.count("Traceback") == 1


def test_more_to_a_batch_than_there_are_examples_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected at least batch_size = 5000 training examples, got 1079"):
        executed([smoke("vit-digits", "none", batch_size=5000)], tmp_path, jobs=1)


def test_a_failed_record_holds_the_last_lines_of_the_log(tmp_path: Path) -> None:
    folder = tmp_path / HEALTHY[0].directory
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(b"\xff\n" + b"".join(b"line %d\n" % n for n in range(100)))
    record = failed_record(HEALTHY[0], tmp_path, "exception", "no reason", 1.0)
    assert record.error["log"].splitlines() == [f"line {n}" for n in range(80, 100)]
    assert find_record(HEALTHY[0], tmp_path) == record


@pytest.mark.slow
@linux
def test_nothing_survives_a_parent_that_is_killed(
    tmp_path: Path, descendants: Callable[[int], set[int]], alive: Callable[[set[int]], set[int]]
) -> None:
    command = [sys.executable, "-m", "pebench", "run", "--task", "vit-digits", "--pe", "none", "--pe", "add"]
    command += ["--tier", "smoke", "--seed", "0", "--jobs", "2", "--device", "cpu", "--out", str(tmp_path)]
    command += ["--set", "train.max_steps=10000000", "--set", "train.evaluations=1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as parent:
        try:
            wait_for(lambda: len([*tmp_path.rglob("events.*")]) == 2, 240)
            family = descendants(parent.pid)
            assert len(family) >= 3  # the server and two runs
        finally:
            parent.kill()
    wait_for(lambda: not alive(family), 60)  # under 5 on a machine that does nothing else
    assert not [*tmp_path.rglob("record.json")]


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"nothing happened within {seconds} s"
        time.sleep(0.05)


class Quiet(Display):
    """A display without a console that remembers which runs finished."""

    def __init__(self, plan: list[RunConfig]) -> None:
        super().__init__(Console(file=io.StringIO(), width=80))
        self.planned(Stage(plan, plan))
        self.records: list[Record] = []

    def finished(self, record: Record) -> None:
        super().finished(record)
        self.records.append(record)


@pytest.mark.parametrize("name", ["sequential", "together", "local"])
def test_every_executor_leaves_the_same_records(name: str, mixed: Outcome, tmp_path: Path) -> None:
    plan = [HEALTHY[0], DIVERGES, HEALTHY[1]]
    display = Quiet(plan)
    find_executor(name)(plan, options(tmp_path), Resources(1), display)
    assert [record.config for record in display.records] == plan
    for config in plan:
        ours, theirs = find_record(config, tmp_path), mixed.record(config)
        assert (ours.status, ours.metrics, ours.curve) == (theirs.status, theirs.metrics, theirs.curve)
        assert (ours.error or {}).get("reason") == (theirs.error or {}).get("reason")
    assert "DivergedError" in (find_record(DIVERGES, tmp_path).error or {})["log"]
    assert not [*tmp_path.rglob("lease-*")]


def share(plan: list[RunConfig], out: Path, start: Any, done: Any) -> None:
    """Do a plan as one of several that do it at the same time; tell how many runs were done here."""
    from pebench.engine.executors import sequential

    executed = 0

    def counted(*arguments: Any) -> None:
        nonlocal executed
        executed += 1
        train(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pebench.training.runner.train", counted)
        start.wait()
        sequential.execute(plan, options(out), Resources(1), Quiet(plan))
    done.put(executed)


@pytest.mark.slow
def test_several_that_do_the_same_plan_share_it(tmp_path: Path) -> None:
    plan = [smoke(task, name) for task in ("vit-digits", "lm-grammar") for name in ("add", "none", "rope")]
    context = multiprocessing.get_context("spawn")
    start, done = context.Barrier(2), context.Queue()
    others = [context.Process(target=share, args=(plan, tmp_path, start, done)) for _ in range(2)]
    for other in others:
        other.start()
    executed = [done.get(timeout=240) for _ in others]
    for other in others:
        other.join()
    assert sum(executed) == len(plan)  # none twice
    assert all(record.ok for record in read_records(tmp_path))
    assert len(read_records(tmp_path)) == len(plan)


def test_a_failure_does_not_replace_what_has_finished(tmp_path: Path) -> None:
    record = train(HEALTHY[0], options(tmp_path))
    failed_record(HEALTHY[0], tmp_path, "lost", "its machine went away", 1.0)
    assert find_record(HEALTHY[0], tmp_path) == record
    assert read_records(tmp_path) == [record]


def test_a_run_that_is_too_slow_keeps_what_it_has(tmp_path: Path) -> None:
    """A time limit is told apart from a wish to stop, and leaves a checkpoint to go on from."""
    limited = replace(options(tmp_path), time_limit_s=1.0)
    work(ENDLESS, limited)
    record = find_record(ENDLESS, tmp_path)
    assert record is not None
    assert (record.error or {})["kind"] == "time limit"
    assert [*tmp_path.rglob("last.ckpt")]


def test_an_exit_in_the_middle_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebench.training.runner.train", lambda *_: sys.exit(0))
    assert work(HEALTHY[0], options(tmp_path))
    record = find_record(HEALTHY[0], tmp_path)
    assert record is not None
    assert (record.error or {})["reason"] == "SystemExit: 0"


@pytest.mark.parametrize(("error", "kept"), [(DivergedError("the loss is nan"), False), (RuntimeError("no"), True)])
def test_a_run_that_diverged_begins_again_where_it_is_tried_again(
    error: Exception, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = tmp_path / HEALTHY[0].directory / "checkpoints"
    checkpoints.mkdir(parents=True)
    monkeypatch.setattr("pebench.training.runner.train", lambda *_: (_ for _ in ()).throw(error))
    assert work(HEALTHY[0], options(tmp_path))
    assert checkpoints.exists() == kept
    found = find_record(HEALTHY[0], tmp_path)
    assert found.started
    assert datetime.fromisoformat(found.started) <= datetime.now(UTC)


def test_a_disk_that_is_full_ends_no_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pebench.engine.executors.worker.write_record", full)
    assert failed_record(HEALTHY[0], tmp_path, "exception", "why", 1.0).error["reason"] == "why"


def test_what_no_record_can_hold_ends_no_other_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = replace(HEALTHY[0], encoding_args={"ratio": float("inf")})  # as a file may say
    assert failed_record(config, tmp_path, "exception", "why", 1.0).error["reason"] == "why"
    assert "could not be written: Out of range float values" in capsys.readouterr().err


def test_commands_are_one_line_per_run_that_does_exactly_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mixed: Outcome
) -> None:
    plan = [replace(HEALTHY[0], regime="FLOPs", selected=("train.clip",)), HEALTHY[1]]
    find_executor("commands")(plan, replace(options(tmp_path), time_limit_s=600.0), Resources(), Quiet(plan))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [["pebench", "run", "--config"]] * 2
    for config, line in zip(plan, lines, strict=True):
        words = shlex.split(line)
        assert read_config(Path(words[3])) == config
        assert {"--time-limit", "600.0", "--executor", "sequential", "--threads", "1"} <= set(words)
    assert main(shlex.split(lines[1])[1:]) == 0
    assert find_record(HEALTHY[1], tmp_path).metrics == mixed.record(HEALTHY[1]).metrics
    assert not any((tmp_path / plan[0].directory).glob("record*"))


def test_the_next_run_starts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting is for runs that another process is at."""

    def sleep(seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s between two runs")

    monkeypatch.setattr("pebench.engine.executors.local.time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    assert executed([smoke("vit-digits", "none", seed) for seed in range(2)], tmp_path, jobs=1).left == []


@pytest.mark.parametrize("name", ["local", "sequential", "together", "commands"])
def test_an_executor_without_options_refuses_them(name: str) -> None:
    with pytest.raises(UserError, match=f"--executor {name} has no options, got partition"):
        check_settings(name, {"partition": "x"})


def test_an_unknown_executor_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'slurm'"):
        find_executor("slrum")


def test_an_executor_whose_package_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    monkeypatch.delitem(sys.modules, "pebench.engine.executors.slurm", raising=False)
    with pytest.raises(UserError, match=r"pip install '\.\[slurm\]'"):
        find_executor("slurm")


def test_a_module_of_ours_that_is_missing_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pebench.engine.executors.commands", None)
    with pytest.raises(ModuleNotFoundError, match=r"pebench\.engine\.executors\.commands"):
        find_executor("commands")


@pytest.mark.slow
def test_each_slot_has_its_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    start = _Running.start

    def noted(context: Any, config: RunConfig, options: Options, gpu: str | None) -> _Running:
        seen.append(gpu)
        return start(context, config, options, gpu)

    monkeypatch.setattr(_Running, "start", noted)
    plan = [smoke("vit-digits", "add", seed) for seed in range(4)]
    execute(plan, options(tmp_path), Resources(2, ("5", "7")), Quiet(plan))
    assert seen[:2] == ["5", "7"]
    assert set(seen) == {"5", "7"}


@pytest.mark.slow
@linux
def test_metrics_do_not_depend_on_the_hash_seed(mixed: Outcome, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pebench", "run", "--config", str(write_config(HEALTHY[1], tmp_path))]
    command += ["--executor", "sequential", "--threads", "1", "--device", "cpu", "--out", str(tmp_path)]
    subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "7"}, stdout=subprocess.DEVNULL, check=True)
    assert find_record(HEALTHY[1], tmp_path).metrics == mixed.record(HEALTHY[1]).metrics


@pytest.mark.slow
def test_the_sequential_executor_starts_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pebench.engine.executors.server.server", pytest.fail)
    words = ["run", "--task", "vit-digits", "--pe", "add", "--seeds", "1", "--tier", "smoke", "--device", "cpu"]
    assert main([*words, "--executor", "sequential", "--out", str(tmp_path / "runs")]) == 0
    assert main([*words, "--executor", "sequential", "--set", "train.batch_size=5000", "--out", str(tmp_path)]) == 2
    assert (
        "vit-digits: expected at least batch_size = 5000" in capsys.readouterr().err
    )  # found before any run, as everywhere


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["_save", "on_validation_batch_end", "on_test_batch_end"])
def test_a_run_that_is_asked_to_end_at_any_moment_goes_on_later(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lightning, too, would take the signal, and fail the run where it was not heard before a step's end."""
    config, usual = smoke("vit-digits", "add", max_steps=20), getattr(Resumable, moment)

    def signalled(self: Resumable, *arguments: Any) -> None:
        usual(self, *arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    words = ["run", "--task", "vit-digits", "--pe", "add", "--seed", "0", "--tier", "smoke", "--device", "cpu"]
    words += ["--set", "train.max_steps=20", "--executor", "sequential", "--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(Resumable, moment, signalled)
        assert main(words) == 130
    assert (record := find_record(config, tmp_path)) is None or record.ok  # heard after the last batch, it has finished
    assert main(words) == 0
    assert find_record(config, tmp_path).ok
