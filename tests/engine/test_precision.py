"""The precision that a machine chooses: one for all rows of a task, timed once, kept where runs go on."""

from pathlib import Path
from typing import Any

import pytest
import torch

from pebench import Suite, UserError, preview_suite, run_suite
from pebench.engine import precision
from pebench.engine.execution import Execution
from pebench.engine.plans import UNDECLARED, make_plan
from pebench.engine.precision import settled, speed_ratio
from pebench.runs.plan import Plan, write_plan
from pebench.tasks import configure
from tests.cli.asking import SMOKE, ask

TASKS = ["vit-digits", "text-order"]


def plan_of(value: str | dict[str, str] | None = "auto", name: str = UNDECLARED, **options: Any) -> Plan:
    settings = {} if value is None else {"train.precision": value}
    return make_plan(
        Suite(name, "", tasks=TASKS, encodings=["add", "rope"], tier="smoke", settings=settings, **options)
    )


def chosen(plan: Plan, out: Path, **options: Any) -> tuple[dict[str, set[str]], list[str]]:
    """Return the precisions of each task's runs, and what was said."""
    said = list[str]()
    plan, found = settled(plan, Execution(out, **options), said.append), dict[str, set[str]]()
    for kind in plan.kinds:
        found.setdefault(kind.task, set()).add(kind.train.precision)
    return found, said


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """How many times as fast 16 bit is in each task, without timing anything."""
    found = dict.fromkeys(TASKS, 1.0)
    monkeypatch.setattr(precision, "speed_ratio", lambda config, threads: found[config.task])
    return found


def test_each_task_has_what_is_faster_in_all_its_rows(ratios: dict[str, float], tmp_path: Path) -> None:
    ratios["vit-digits"], ratios["text-order"] = 1.1, 1.09
    found, said = chosen(plan_of(), tmp_path)
    assert found == {"vit-digits": {"bf16-mixed"}, "text-order": {"32-true"}}
    assert said == [
        "vit-digits: train.precision=bf16-mixed, whose steps run at 1.10 times the speed of 32-true here",
        "text-order: train.precision=32-true, as steps in bf16-mixed run at 1.09 times its speed here",
    ]


def test_only_what_is_left_to_it_is_chosen(ratios: dict[str, float], tmp_path: Path) -> None:
    ratios["vit-digits"] = ratios["text-order"] = 2.0
    found, said = chosen(plan_of({"vit-digits": "auto"}), tmp_path)
    assert found == {"vit-digits": {"bf16-mixed"}, "text-order": {"32-true"}}
    assert len(said) == 1
    assert chosen(plan_of("64-true"), tmp_path) == ({name: {"64-true"} for name in TASKS}, [])
    assert chosen(plan_of(None), tmp_path) == ({name: {"32-true"} for name in TASKS}, [])


@pytest.mark.parametrize("first", [2.0, 0.5])
@pytest.mark.parametrize("select", [{}, {"train.learning_rate": [1e-3, 2e-3]}])
def test_runs_go_on_in_the_precision_in_which_they_began(
    first: float, select: dict[str, Any], ratios: dict[str, float], tmp_path: Path
) -> None:
    ratios["vit-digits"] = ratios["text-order"] = first
    begun = settled(plan_of(select=select), Execution(tmp_path), list[str]().append)
    write_plan(begun.selecting() or begun.testing({}), tmp_path)
    ratios["vit-digits"] = ratios["text-order"] = 1 / first
    found, said = chosen(plan_of(select=select), tmp_path)
    assert found == {name: {begun.kinds[0].train.precision} for name in TASKS}
    assert all(text.endswith(", as when these runs began") for text in said)
    assert len(said) == 2


def with_gpu(monkeypatch: pytest.MonkeyPatch, half: bool = True) -> None:
    monkeypatch.setattr(precision, "has_cuda_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: half)


def test_runs_that_no_suite_declares_are_16_bit_on_cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_gpu(monkeypatch)
    mixed, full = ({name: {value} for name in TASKS} for value in ("bf16-mixed", "32-true"))
    found, said = chosen(plan_of(None), tmp_path)
    assert found == mixed
    assert said[0] == "vit-digits: train.precision=bf16-mixed, with TF32, which this GPU has"
    for plan, options in (
        (plan_of("32-true"), {}),
        (plan_of(None, "declared"), {}),
        (plan_of(None), {"device": "cpu"}),
        (plan_of(None), {"executor": "slurm"}),
        (plan_of(None, vary={"train.precision": ["32-true"]}), {}),
        (make_plan([configure(name, "add", 0, "smoke") for name in TASKS]), {}),
    ):
        assert chosen(plan, tmp_path, **options) == (full, [])
    assert chosen(plan_of(name="declared"), tmp_path)[0] == mixed  # which asks for it
    with_gpu(monkeypatch, half=False)
    assert chosen(plan_of(), tmp_path)[0] == full


@pytest.mark.parametrize("where", ["select", "vary"])
def test_it_is_no_value_among_others(where: str, tmp_path: Path) -> None:
    plan = plan_of(None, **{where: {"train.precision": ["32-true", "auto"]}})
    with pytest.raises(UserError, match=r"train\.precision=auto cannot be one of several values"):
        settled(plan, Execution(tmp_path), print)


def test_other_machines_are_not_timed_here(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="auto is timed on this machine: with --executor slurm name one"):
        settled(plan_of(), Execution(tmp_path, executor="slurm"), print)


def test_a_ratio_is_that_of_two_paces(monkeypatch: pytest.MonkeyPatch) -> None:
    paces = iter([1.0, 9.0, 2.0, 3.0, 4.0, 4.0])  # 9, 1.5 and 1: one round was disturbed
    asked = []

    def pace(config: object, device: str, threads: int, seconds: float, half: bool) -> float:
        asked.append((device, threads, half))
        return next(paces)

    monkeypatch.setattr(precision, "operations_per_second", pace)
    assert speed_ratio(configure("vit-digits", "add", 0, "smoke"), 2) == 1.5
    assert asked == [("cpu", 2, False), ("cpu", 2, True)] * 3


def test_steps_are_timed_for_real() -> None:
    assert 0.05 < speed_ratio(configure("vit-digits", "add", 0, "smoke"), 1) < 20


def test_records_say_what_was_chosen(ratios: dict[str, float], tmp_path: Path) -> None:
    ratios["vit-digits"] = 2.0
    suite = Suite(
        "s", "", tasks=TASKS[:1], encodings=["add"], seeds=1, tier="smoke", settings={"train.precision": "auto"}
    )
    assert any("bf16-mixed" in note for note in preview_suite(suite, tmp_path).notes)
    for _ in range(2):
        (record,) = run_suite(suite, tmp_path, executor="sequential").records
        assert record.config.train.precision == record.environment["precision"] == "bf16-mixed"
        ratios["vit-digits"] = 0.5  # the second call finds the first one's run
    assert len(list(tmp_path.rglob("record.json"))) == 1


def test_a_run_alone_has_to_name_one(tmp_path: Path) -> None:
    from pebench.config import Options
    from pebench.training.runner import train

    with pytest.raises(UserError, match=r"train\.precision=auto is chosen where runs are planned"):
        train(configure("vit-digits", "add", 0, "smoke", {"train.precision": "auto"}), Options(tmp_path))


def test_the_command_says_what_it_chose(ratios: dict[str, float], tmp_path: Path) -> None:
    ratios["vit-digits"] = 2.0
    answer = ask(*SMOKE, "--set", "train.precision=auto", "--dry-run", out=tmp_path)
    assert answer.code == 0
    assert "vit-digits: train.precision=bf16-mixed, whose steps" in answer.text.replace("\n", " ")


def test_records_say_that_products_are_rounded_to_tf32() -> None:
    from pebench.training.environment import allow_tf32, describe

    for allow, text in ((True, "bf16-mixed with TF32"), (False, "bf16-mixed")):
        allow_tf32(allow)
        assert describe(["cpu: one"], "bf16-mixed", False, "sdpa")["precision"] == text
