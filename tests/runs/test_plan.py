"""Plans: the state of each run, the files of what was planned, and settings that vary between tables."""

import itertools
import os
from pathlib import Path

import pytest

from pebench.config import RunConfig
from pebench.runs.leases import claim
from pebench.runs.plan import PLANS, load_records, planned_runs, run_states, write_plan
from pebench.runs.records import write_record
from tests.runs.plans import RATE, asked, plan_of, record


def place(config: RunConfig, out: Path) -> Path:
    folder = out / config.directory
    folder.mkdir(parents=True)
    return folder


def test_a_state_is_read_from_a_runs_files(tmp_path: Path) -> None:
    done, failed, running, begun, new = plan = plan_of(encodings=["add"], seeds=5).testing({})
    for config, accuracy in ((done, 0.5), (failed, None)):
        write_record(record(config, accuracy), tmp_path)
    (place(begun, tmp_path) / "log.txt").touch()
    with claim(place(running, tmp_path)):
        assert run_states(plan, tmp_path) == ["done", "failed", "running", "to do", "to do"]
        assert run_states([new, running, done], tmp_path) == ["to do", "running", "done"]
    assert run_states([running], tmp_path) == ["to do"]


@pytest.mark.parametrize(
    ("accuracy", "held", "state"), [(0.5, True, "done"), (None, True, "running"), (None, False, "failed")]
)
def test_a_finished_run_stays_done_and_a_failed_one_may_run_again(
    accuracy: float | None, held: bool, state: str, tmp_path: Path
) -> None:
    (config,) = plan_of(encodings=["add"], seeds=1).testing({})
    folder = write_record(record(config, accuracy), tmp_path).parent
    with claim(folder) as lease:
        if not held and lease:
            lease.release()
        assert run_states([config], tmp_path) == [state]


def test_nothing_is_done_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    plan = plan_of().testing({})
    assert run_states(plan, tmp_path / "nowhere") == ["to do"] * len(plan)
    assert load_records(plan, tmp_path / "nowhere") == {}
    assert not (tmp_path / "nowhere").exists()


def test_what_is_there_is_loaded_by_key(tmp_path: Path) -> None:
    first, second, *_ = plan = plan_of().testing({})
    records = [record(first, 0.5), record(second, None)]
    for found in records:
        write_record(found, tmp_path)
    assert load_records(plan, tmp_path) == {found.config.key: found for found in records}


def test_a_noted_plan_reads_back(tmp_path: Path) -> None:
    plan = plan_of(select={RATE: [1e-3]})
    out = tmp_path / "not" / "yet"
    write_plan(plan.selecting(), out)
    assert planned_runs(out) == [config.directory for config in plan.selecting()]
    assert len([*(out / PLANS).iterdir()]) == 1  # nothing temporary stays


def test_plans_add_up_and_each_run_counts_once(tmp_path: Path) -> None:
    few, many = (plan_of(seeds=seeds).testing({}) for seeds in (1, 2))
    for time, plan in enumerate((few, many, few)):
        write_plan(plan, tmp_path)
        for path in (tmp_path / PLANS).iterdir():
            os.utime(path, (time, time))
    assert len([*(tmp_path / PLANS).iterdir()]) == 2
    assert sorted(planned_runs(tmp_path)) == sorted(config.directory for config in many)


def test_earlier_plans_come_first(tmp_path: Path) -> None:
    plans = [plan_of(seeds=[seed]).testing({}) for seed in range(4)]
    for plan in plans:
        write_plan(plan, tmp_path)
    for path in (tmp_path / PLANS).iterdir():
        (age,) = [i for i, plan in enumerate(plans) if plan[0].directory in path.read_text()]
        os.utime(path, (1000 - age, 1000 - age))
    assert planned_runs(tmp_path) == [config.directory for plan in plans[::-1] for config in plan]


def test_nothing_is_planned_where_nothing_was_noted(tmp_path: Path) -> None:
    assert planned_runs(tmp_path) == planned_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b"hello"])
def test_a_damaged_plan_is_ignored(content: bytes, tmp_path: Path) -> None:
    plan = plan_of().testing({})
    write_plan(plan, tmp_path)
    (tmp_path / PLANS / "0123456789ab.json").write_bytes(content)
    assert planned_runs(tmp_path) == [config.directory for config in plan]


@pytest.mark.parametrize("content", ["[]", "3", '{"runs": 3}', '{"runs": null}'])
def test_a_plan_file_that_is_no_plan_is_ignored(content: str, tmp_path: Path) -> None:
    (tmp_path / PLANS).mkdir()
    (tmp_path / PLANS / "0123456789ab.json").write_text(content)
    assert planned_runs(tmp_path) == []


def test_each_value_of_a_setting_that_varies_makes_runs_of_its_own() -> None:
    plan = plan_of(encodings=["add", "learned"], vary={"model.num_layers": [1, 3], "model.d_model": [16, 32]})
    shapes = [(c.model.num_layers, c.model.d_model, c.encoding) for c in plan.kinds]
    assert sorted(shapes) == sorted(itertools.product([1, 3], [16, 32], ["add", "learned"]))
    text = asked("--pe", "add", "--pe", "learned", "--vary", "model.num_layers=1,3", "--vary", "model.d_model=16,32")
    assert {c.kind_key for c in text.kinds} == {c.kind_key for c in plan.kinds}
