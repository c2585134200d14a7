"""Runs on a SLURM cluster without accounting; ``slurm.sh`` makes one of this machine."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench.config import Options, RunConfig
from pebench.errors import UserError
from pebench.models.base import SequenceModule
from pebench.runs.leases import holder_of
from pebench.runs.records import find_record
from pebench.tasks import configure
from pebench.training.resume import resumable_step

submitit = pytest.importorskip("submitit", reason="needs submitit: pip install '.[slurm]'")

from pebench.engine.executors import slurm  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("slurm")]


def squeue() -> list[str]:
    return subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that answers, and is asked more often than a busy one should be."""
    if not shutil.which("sbatch") or subprocess.run(["sinfo"], capture_output=True).returncode:
        pytest.skip("needs SLURM: sh tests/engine/cluster/slurm.sh")
    monkeypatch.setattr(slurm, "QUEUE_S", 1.0)
    monkeypatch.setattr(slurm, "SETTLE_S", 1.0)


def long(seed: int = 0) -> RunConfig:
    return configure("vit-digits", "rope", seed, "smoke", {"train.max_steps": 1500, "train.evaluations": 3})


@pytest.mark.usefixtures("cluster")
def test_every_run_leaves_its_record(do: Callable[..., Any], expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few jobs SLURM takes."""
    map_array, sizes = submitit.AutoExecutor.map_array, list[int]()

    def limited(self: Any, function: Any, configs: list[RunConfig]) -> Any:
        if len(configs) > 3:
            self.update_parameters(slurm_partition="nowhere")  # is refused
        else:
            self.update_parameters(slurm_partition="main")
            sizes.append(len(configs))
        return map_array(self, function, configs)

    monkeypatch.setattr(submitit.AutoExecutor, "map_array", limited)
    outcome = do(slurm.execute, expected.plan, jobs=0, timeout_min="10", comment="a comment")
    expected.check(outcome)
    assert sizes == [2, 2]
    assert not list((outcome.out / "slurm").glob("*.pkl"))


@pytest.mark.usefixtures("cluster")
def test_data_of_a_user_are_found(check_own_data: Callable[..., None]) -> None:
    check_own_data(slurm.execute)


@pytest.mark.usefixtures("cluster")
def test_a_run_whose_job_is_killed_is_submitted_again_but_not_for_ever(check_killed: Callable[..., None]) -> None:
    check_killed(slurm.execute)


@pytest.mark.usefixtures("cluster")
def test_a_job_that_must_end_saves_its_run_which_then_goes_on(do: Callable[..., Any], tmp_path: Path) -> None:
    """Of a job that must give way SLURM makes one that waits; a cancelled one is ours to submit again."""
    preempted, cancelled = long(0), long(1)
    left = {preempted.key: ["--signal=USR2"], cancelled.key: []}

    def hook(config: RunConfig, step: int) -> None:
        if (how := left.pop(config.key, None)) is not None:
            pid = holder_of(tmp_path / config.directory).pid
            words = dict(word.split("=", 1) for word in Path(f"/proc/{pid}/environ").read_text().split("\0") if word)
            job = "{SLURM_ARRAY_JOB_ID}_{SLURM_ARRAY_TASK_ID}".format(**words)
            subprocess.run(["scancel", *how, job], check=True)

    outcome = do(slurm.execute, [preempted, cancelled], hook, out=tmp_path)
    assert outcome.statuses == ["ok", "ok"]
    (line,) = (line for line in outcome.lines if "is started again" in line)
    assert line.startswith(cancelled.directory)
    assert len(list((tmp_path / "slurm").rglob("*_submitted.pkl"))) == 3
    for record in outcome.records:
        steps = [point["step"] for point in record.curve if "val/loss" in point]
        assert steps == [500, 1000, 1500]


def test_a_signal_is_no_failure_whenever_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning looks for a signal right after the last place where we do."""

    def on_train_batch_end(module: SequenceModule, *_: Any) -> None:
        if module.trainer.global_step == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(SequenceModule, "on_train_batch_end", on_train_batch_end, raising=False)
    before, threads = signal.getsignal(signal.SIGTERM), torch.get_num_threads()
    config = configure("vit-digits", "rope", 0, "smoke", {"train.max_steps": 10**7})
    try:
        assert slurm._Task(Options(tmp_path, device="cpu", threads=1))(config)
    finally:
        torch.set_num_threads(threads)
    assert signal.getsignal(signal.SIGTERM) is before
    assert find_record(config, tmp_path) is None
    assert resumable_step(tmp_path / config.directory / "checkpoints" / "last.ckpt") == 6


@pytest.mark.usefixtures("cluster")
def test_a_run_that_hangs_is_ended(check_hanging: Callable[..., None]) -> None:
    check_hanging(slurm.execute)


@pytest.mark.usefixtures("cluster")
def test_an_interrupt_ends_what_runs_where_it_can_go_on(check_interrupt: Callable[..., Path]) -> None:
    folder = check_interrupt(slurm.execute)
    assert squeue() == []
    assert (folder / "checkpoints" / "last.ckpt").is_file()


@pytest.mark.usefixtures("cluster")
def test_the_command_line_runs_jobs(tmp_path: Path) -> None:
    words = ["--task", "vit-digits", "--tier", "smoke", "--pe", "rope", "--seeds", "1", "--executor", "slurm"]
    code = "import sys; from pebench.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", *words, "--out", "runs"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[1/1] vit-digits rope" in done.stdout
    assert not done.stderr
    assert len(list(tmp_path.glob("runs/slurm/*/*_submitted.pkl"))) == 1


@pytest.mark.usefixtures("cluster")
def test_what_slurm_refuses_is_told_in_a_line(do: Callable[..., Any], expected: Any) -> None:
    with pytest.raises(UserError, match=r"^SLURM takes no job: .*[Ii]nvalid partition"):
        do(slurm.execute, expected.plan, partition="nowhere")


@pytest.mark.parametrize(("reason", "tried"), [("Invalid partition", [3, 1]), (f"sbatch: {slurm.UNREACHABLE}", [3])])
def test_a_refusal_is_told_after_few_tries(
    reason: str, tried: list[int], do: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()

    def refuse(self: Any, function: Any, configs: list[RunConfig]) -> Any:
        sizes.append(len(configs))
        raise slurm.FailedJobError(reason)

    monkeypatch.setattr(slurm, "_executor", lambda options, resources: (submitit.AutoExecutor("slurm", "local"), 1))
    monkeypatch.setattr(submitit.AutoExecutor, "map_array", refuse)
    with pytest.raises(UserError, match=f"^SLURM takes no job: {reason}"):
        do(slurm.execute, [long(seed) for seed in range(3)])
    assert sizes == tried


def test_mistakes_are_told_in_a_line(do: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("srun"):
        with pytest.raises(UserError, match="Unknown argument 'partitoin' for executor 'slurm'"):
            do(slurm.execute, [], partitoin="main")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="there is no sbatch here"):
        do(slurm.execute, [])
