"""A folder in progress: its runs by state, and the time left."""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from pebench.runs.leases import Holder, _myself, claim
from pebench.runs.plan import write_plan
from pebench.runs.records import Record, write_record
from pebench.tasks import configure
from tests.results.single_records import Ask, begun, run, runs, selecting, write

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: when it was written, and what."""
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


def leave_lease(folder: Path, **changes: Any) -> None:
    """What another process has left in a run's folder, dead or alive."""
    holder = replace(Holder("elsewhere", 1, 1, time.time()), **changes)
    (folder / "lease-0.json").write_text(json.dumps(asdict(holder)))


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        process.wait()
    return process.pid


def test_every_run_is_counted_in_its_state(tmp_path: Path, ask: Ask) -> None:
    write([*runs("add", {0: 0.5, 1: None}), run("rope", 0), *runs("none", {0: 2.5}, task="lm-grammar")], tmp_path)
    begun(run("rope", 1).config, tmp_path)
    with claim(begun(run("rope", 2).config, tmp_path)):
        answer = ask("status", tmp_path)
    assert answer.code == 0
    assert answer.lines[0].startswith(f"{tmp_path}: 6 runs: 3 done, 1 failed, 1 running, 1 to do")
    assert answer.row("Task") == ["done", "failed", "running", "to do"]
    assert answer.row("lm-grammar") == ["1", "0", "0", "0"]
    assert answer.row("vit-digits") == ["2", "1", "1", "1"]


def test_what_is_planned_and_not_begun_is_to_do(tmp_path: Path, ask: Ask) -> None:
    plan = [configure(task, "add", seed, "smoke") for task in ("vit-digits", "lm-grammar") for seed in (0, 1)]
    write_plan(plan, tmp_path)
    answer = ask("status", tmp_path)
    assert (answer.code, answer.lines[0]) == (0, f"{tmp_path}: 4 runs: 0 done, 4 to do")
    write_record(Record(plan[0], metrics={"test/accuracy": 0.5}), tmp_path)
    answer = ask("status", tmp_path)
    assert answer.lines[0] == f"{tmp_path}: 4 runs: 1 done, 3 to do"
    assert answer.row("lm-grammar") == ["0", "0", "0", "2"]


def test_runs_that_nobody_planned_here_are_counted_too(tmp_path: Path, ask: Ask) -> None:
    planned, other = configure("vit-digits", "add", 0, "smoke"), selecting(1e-3, 0.5)
    write_plan([planned], tmp_path)
    write([other], tmp_path)
    assert ask("status", tmp_path).lines[0] == f"{tmp_path}: 2 runs: 1 done, 1 to do"


def test_a_running_run_is_shown_with_its_step(tmp_path: Path, ask: Ask) -> None:
    config = run("add", 0).config
    with claim(begun(config, tmp_path)) as lease:
        assert lease is not None
        lease.report(41, {"train/loss": 9.0, "val/loss": 0.5, "val/accuracy": 0.25})
        lines = ask("status", tmp_path).lines
    (line,) = lines[lines.index("running") + 1 :]
    assert line.startswith(f"  {config.directory}: step 41, val accuracy 25.00 %, for ")
    assert line.endswith(f", process {os.getpid()} on {platform.node()}")


def test_a_failed_run_is_shown_with_its_kind_and_reason(tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0), run("rope", 0, None)], tmp_path)
    lines = ask("status", tmp_path).lines
    assert lines[lines.index("failed (run them again with --retry-failed)") + 1 :] == [
        f"  {run('rope', 0).config.directory}: diverged: loss is nan at step 12"
    ]


def test_a_failed_run_that_runs_again_is_running(tmp_path: Path, ask: Ask) -> None:
    with claim(write_record(run("rope", 0, None), tmp_path).parent):
        answer = ask("status", tmp_path)
    assert answer.lines[0].startswith(f"{tmp_path}: 1 run: 0 done, 1 running, 0 to do")
    assert "--retry-failed" not in answer.text


def test_a_run_that_left_a_checkpoint_is_shown_as_interrupted(tmp_path: Path, ask: Ask) -> None:
    interrupted, unbegun = run("add", 0).config, run("add", 1).config
    write_plan([interrupted, unbegun], tmp_path)
    checkpoint = begun(interrupted, tmp_path) / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    os.utime(checkpoint, times=(time.time() - 600,) * 2)
    lines = ask("status", tmp_path).lines
    (line,) = lines[lines.index("interrupted (the same command goes on from their checkpoints)") + 1 :]
    assert line == f"  {interrupted.directory}: checkpoint of 10 min ago"
    with claim(checkpoint.parent.parent):
        assert not any("interrupted" in line for line in ask("status", tmp_path).lines)


@needs_proc
def test_the_lease_of_a_dead_process_is_not_running(tmp_path: Path, ask: Ask) -> None:
    ours = asdict(_myself())
    leave_lease(begun(run("add", 0).config, tmp_path), **ours | {"pid": dead_process()})
    leave_lease(write_record(run("add", 1, None), tmp_path).parent, **ours | {"born": 1})
    answer = ask("status", tmp_path)
    assert answer.lines[0] == f"{tmp_path}: 2 runs: 0 done, 1 failed, 1 to do"
    assert "running" not in answer.lines


def test_a_run_on_another_machine_is_running(tmp_path: Path, ask: Ask) -> None:
    leave_lease(begun(run("add", 0).config, tmp_path), step=7)
    answer = ask("status", tmp_path)
    assert ", 1 running, " in answer.lines[0]
    assert answer.lines[-1].endswith("process 1 on elsewhere")
    assert ": step 7, for " in answer.lines[-1]


def test_the_time_left_goes_by_what_each_task_took(tmp_path: Path, ask: Ask) -> None:
    # vit-digits: one to do, one half done, at 120 s each; lm-grammar: two to do at 600 s; two at a time
    write([run("add", 0), run("add", 0, 2.5, "lm-grammar", duration_s=600.0)], tmp_path)
    for config in (run("add", 1), run("add", 1, 2.5, "lm-grammar"), run("add", 2, 2.5, "lm-grammar")):
        begun(config.config, tmp_path)
    with claim(begun(run("add", 2).config, tmp_path)):
        assert ask("status", tmp_path).lines[0].endswith(", about 23 min left")  # (1.5 * 120 + 2 * 600) s
        with claim(begun(run("add", 3).config, tmp_path)):
            assert ask("status", tmp_path).lines[0].endswith(", about 12 min left")  # (2 * 120 + 2 * 600) / 2 s
    assert ask("status", tmp_path).lines[0].endswith(": 2 done, 5 to do")


def test_a_task_of_which_nothing_is_done_is_taken_for_the_mean_of_the_others(tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0), run("add", 0, 2.5, "lm-grammar", duration_s=600.0)], tmp_path)
    begun(run("add", 0, 0.5, "text-order").config, tmp_path)
    with claim(begun(run("add", 1, 0.5, "text-order").config, tmp_path)):
        assert ask("status", tmp_path).lines[0].endswith(", about 9 min left")  # 1.5 * 360 s


def test_the_time_left_is_unknown_where_nothing_is_done(tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0, None)], tmp_path)
    with claim(begun(run("add", 1).config, tmp_path)):
        assert ask("status", tmp_path).lines[0].endswith(", time left unknown")


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "other" / "src").mkdir(parents=True)
    for name in ("empty", "file", "other", "nowhere"):
        answer = ask("status", tmp_path / name)
        assert answer.code == 2
        assert repr(str(tmp_path / name)) in answer.error


def test_looking_changes_nothing(tmp_path: Path, ask: Ask) -> None:
    records = [*runs("add", {0: 0.5, 1: None}), selecting(1e-3, 0.5)]
    write_plan([record.config for record in records], write(records, tmp_path / "runs"))
    leave_lease(begun(run("rope", 0).config, tmp_path / "runs"))
    before = files(tmp_path)
    out, key = tmp_path / "runs", records[0].config.key
    for words in (("status", out), ("show", key, "--out", out), ("compare", out, out), ("report", out)):
        assert ask(*words).code == 0
    assert files(tmp_path) == before
