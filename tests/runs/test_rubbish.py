"""What processes leave that died is removed at the next start, and nothing of a living one."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import pebench
from pebench.atomic import write_text
from pebench.config import RunConfig
from pebench.runs import plan as plans
from pebench.runs.leases import CLAIM, _myself, claim
from pebench.runs.plan import load_records, planned_runs, write_plan
from pebench.runs.records import FILE_NAME, Record, write_record
from pebench.runs.rubbish import clear_rubbish
from pebench.tasks import configure

DONE, TO_DO = (configure("vit-digits", "add", seed, "smoke") for seed in range(2))


def left_by_a_death(config: RunConfig, out: Path) -> Path:
    """A run's folder in which a process of this machine died; its number is not in use."""
    folder = out / config.directory
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    (folder / "checkpoints" / "last.ckpt").write_text("state")
    dead = json.dumps(asdict(replace(_myself(), pid=2**22 + 1)))
    for name in (f"{CLAIM}0", "lease-0.json", ".record.json-0.part"):
        (folder / name).write_text(dead)
    return folder


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def start(out: Path) -> None:
    runs = [DONE, TO_DO]
    clear_rubbish(runs, load_records(runs, out), out)


def test_a_finished_run_keeps_no_checkpoints_leases_claims_and_halves_of_files(tmp_path: Path) -> None:
    write_record(Record(DONE, metrics={"test/accuracy": 0.5}), tmp_path)
    folder = left_by_a_death(DONE, tmp_path)
    start(tmp_path)
    assert names(folder) == {FILE_NAME}


def test_a_run_that_is_to_be_made_keeps_what_it_goes_on_from(tmp_path: Path) -> None:
    folder = left_by_a_death(TO_DO, tmp_path)
    start(tmp_path)
    assert names(folder) == {"checkpoints", "lease-0.json", ".record.json-0.part"}  # its next attempt clears the rest


def test_what_a_living_process_is_at_stays(tmp_path: Path) -> None:
    write_record(Record(DONE, metrics={"test/accuracy": 0.5}), tmp_path)
    folder = left_by_a_death(DONE, tmp_path)
    (folder / f"{CLAIM}1").write_text(json.dumps(asdict(_myself())))
    with claim(folder):  # it has written its record, and is about to remove the checkpoints
        start(tmp_path)
        assert {"checkpoints", ".record.json-0.part", "lease-1.json", f"{CLAIM}1"} <= names(folder)
        assert f"{CLAIM}0" not in names(folder)


def test_a_suite_that_is_done_is_cleared_when_it_is_asked_for_again(tmp_path: Path) -> None:
    write_record(Record(DONE, metrics={"test/accuracy": 0.5}), tmp_path)
    folder = left_by_a_death(DONE, tmp_path)
    assert pebench.run_suite([DONE], tmp_path).complete
    assert names(folder) == {FILE_NAME}


def test_parts_of_plans_are_cleared_when_a_plan_is_written(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / ".0.json-1.part").write_text("half")
    write_plan([DONE, TO_DO], tmp_path)
    assert [path.suffix for path in (tmp_path / "plans").iterdir()] == [".json"]
    assert planned_runs(tmp_path) == [DONE.directory, TO_DO.directory]


def test_two_commands_that_start_at_once_both_write_their_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = []

    def cleared_by_another(path: Path, text: str) -> None:
        if not lost:
            lost.append(path)
            raise FileNotFoundError(2, "No such file or directory", str(path))
        write_text(path, text)

    monkeypatch.setattr(plans, "write_text", cleared_by_another)
    write_plan([DONE], tmp_path)
    assert planned_runs(tmp_path) == [DONE.directory]
