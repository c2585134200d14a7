"""What cannot work is refused before anything runs, and by a dry run too."""

import subprocess
import sys
from pathlib import Path

import pytest

import pebench
from pebench.engine.executors import EXECUTORS, check_settings
from pebench.engine.run import run_suite
from pebench.errors import UserError
from tests.cli.asking import SMOKE, ask

DRY = [[], ["--dry-run"]]
ASKED = [*SMOKE, "--pe", "add", "--seeds", "1"]


@pytest.mark.parametrize("dry", DRY)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor-option", "a=b"], "--executor local has no options, got a"),
        (["--executor", "sequential", "--executor-option", "a=b"], "--executor sequential has no options, got a"),
        (["--executor", "commands", "--executor-option", "a=b"], "--executor commands has no options, got a"),
        (["--tier", ""], "unknown tier ''"),
        (["--reference", ""], "unknown reference ''"),
        (["--set", "model.d_model=4000000"], "needs at least"),
        (["--set", "model.num_layers=1000000000"], "needs at least"),
        (["--set", "model.d_ff=100000000000"], "needs at least"),
    ],
)
def test_a_dry_run_refuses_what_a_run_refuses(
    words: list[str], message: str, dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(*ASKED, *words, *dry, out=tmp_path / "runs").code == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") <= 2  # of which one is the number of runs, where output is commands alone
    assert message in errors
    assert not (tmp_path / "runs").exists()


def test_training_on_a_processor_takes_four_times_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, gradients and two moments; a GPU has them elsewhere, and only the weights pass through memory."""
    sizes = {"model.d_model": 1024, "model.num_layers": 1}  # of 12 M weights, 48 MiB
    suite = pebench.Suite("mine", "", ["vit-digits"], ["add"], seeds=1, tier="smoke", settings=sizes)
    monkeypatch.setattr("pebench.engine.checks.memory", lambda: 100 * 2**20)
    pebench.preview_suite(suite, tmp_path)
    with pytest.raises(UserError, match="this machine has 0 GiB"):
        pebench.preview_suite(suite, tmp_path, device="cpu")


@pytest.mark.parametrize("make", [run_suite, pebench.preview_suite])
def test_data_that_cannot_be_had_is_refused(make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEBENCH_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    suite = pebench.Suite("mine", "", ["text-imdb"], ["add"], seeds=1, tier="smoke")
    with pytest.raises(UserError, match="--data-dir DIR"):
        make(suite, tmp_path / "runs", device="cpu")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_gpu": "1"}, "Did you mean 'num_gpus'"),
        ({"num_cpus": "many"}, "num_cpus"),
        ({"num_cpus": "-1"}, "expects a number that is not negative, got -1"),
        ({"num_gpus": "nan"}, "num_gpus expects float, got 'nan'"),
    ],
)
def test_settings_of_ray_are_checked_without_a_cluster(settings: dict[str, str], message: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=message):
        check_settings("ray", settings)


@pytest.mark.parametrize("name", sorted({*EXECUTORS} - {"ray", "slurm"}))
def test_no_settings_are_well(name: str) -> None:
    check_settings(name, {})


THOUSAND = """
import sys
from pathlib import Path
from pebench.engine.run import make_plan
from pebench.runs.plan import load_records, run_states
from pebench.runs.suite import Suite
plan = make_plan(Suite("many", "", ["vit-digits", "text-order", "lm-grammar"],
                       ["add", "none", "rope", "alibi"], seeds=84, tier="smoke"))
runs = [*plan.selecting(), *plan.testing(load_records(plan.selecting(), Path("none")))]
assert {*run_states(runs, Path("none"))} == {"to do"}
print(len(runs), "torch" in sys.modules)
"""


def test_a_plan_of_a_thousand_runs_is_made_without_torch(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", THOUSAND], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["1008", "False"]
