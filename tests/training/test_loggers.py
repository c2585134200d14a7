"""Loggers beside TensorBoard: what they write is what the record says, within the run's folder, and costs no run."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightning.pytorch.loggers import Logger

import pebench
from pebench.cli import main
from pebench.config import Options
from pebench.errors import InterruptedRunError, UserError
from pebench.runs.records import Record, read_records
from pebench.training.loggers import FOLDER, check_loggers
from pebench.training.runner import train
from tests.training.helpers import smoke

CSV = "lightning.pytorch.loggers.CSVLogger"
HERE = "tests.training.test_loggers"
CONFIG = smoke("lm-grammar", "add", max_steps=20, evaluations=4)
"""Whose test has other lengths, too."""


class Breaks(Logger):
    """Fails at the third call."""

    name, version = "breaks", None

    def __init__(self, save_dir: str, calls: int = 3) -> None:
        super().__init__()
        self.folder, self.left = Path(save_dir), calls

    def log_metrics(self, metrics: Any, step: Any = None) -> None:
        self.left -= 1
        (self.folder / f"{self.left}").touch()
        if self.left <= 0:
            raise OSError("the service is away")

    def log_hyperparams(self, params: Any) -> None:
        pass


class NeverMade(Breaks):
    """Cannot be made, as where a package is missing."""

    def __init__(self) -> None:
        raise ModuleNotFoundError("no module named wandb")


def options(out: Path, *loggers: str) -> Options:
    return Options(out, device="cpu", threads=1, loggers=loggers)


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def points(rows: list[dict[str, str]], name: str) -> dict[int, float]:
    return {int(row["step"]): float(row[name]) for row in rows if row.get(name)}


def require_curve(record: Record, rows: list[dict[str, str]], since: int = 0) -> None:
    curve = {point["step"]: point["val/loss"] for point in record.curve if point["step"] > since}
    assert points(rows, "val/loss") == pytest.approx(curve)


def test_a_csv_holds_the_curve_the_outcome_and_the_settings(tmp_path: Path) -> None:
    record = train(CONFIG, options(tmp_path, f"{CSV}(flush_logs_every_n_steps=1)"))
    (folder,) = (tmp_path / CONFIG.directory / FOLDER / "1-CSVLogger").iterdir()
    rows = rows_of(folder)
    require_curve(record, rows)
    for name, value in record.metrics.items():
        tested = name.startswith("test/") and "@" not in name
        shown = name if tested else f"chosen/{name.replace('/', '_').replace('@', '_')}"
        assert points(rows, shown) == {20: pytest.approx(value)}, name
    settings = yaml.safe_load((folder / "hparams.yaml").read_text(encoding="utf-8"))
    assert (settings["encoding"], settings["train.max_steps"]) == ("add", 20)
    assert [*(tmp_path / CONFIG.directory).glob("events.out.tfevents.*")]  # TensorBoard stays


def test_a_resumed_run_goes_on_in_its_logger(tmp_path: Path) -> None:
    how, seen = options(tmp_path, CSV), [0]
    with pytest.raises(InterruptedRunError):
        train(CONFIG, how, lambda step, _: seen.append(step), lambda: seen[-1] >= 12)
    record = train(CONFIG, how)
    folder = tmp_path / CONFIG.directory / FOLDER / "1-CSVLogger"
    first, second = sorted(folder.iterdir(), key=lambda path: int(path.name.rpartition("_")[2]))
    assert first.name == "from_step_0"
    step = int(second.name.rpartition("_")[2])
    assert step > 0
    together = points(rows_of(first), "val/loss") | points(rows_of(second), "val/loss")
    assert together == pytest.approx({point["step"]: point["val/loss"] for point in record.curve})
    assert min(points(rows_of(second), "val/loss")) > step


def test_loggers_are_no_part_of_a_run(tmp_path: Path) -> None:
    with_one = train(CONFIG, options(tmp_path / "a", CSV))
    without = train(CONFIG, options(tmp_path / "b"))
    assert with_one.config.key == without.config.key
    assert (with_one.metrics, with_one.curve) == (without.metrics, without.curve)
    assert not (tmp_path / "b" / CONFIG.directory / FOLDER).exists()


def test_a_run_that_begins_again_leaves_no_older_log(tmp_path: Path) -> None:
    stale = tmp_path / CONFIG.directory / FOLDER / "1-CSVLogger" / "from_step_15"
    stale.mkdir(parents=True)
    train(CONFIG, options(tmp_path, CSV))
    assert not stale.exists()


def test_a_logger_that_breaks_costs_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = train(CONFIG, options(tmp_path, f"{HERE}:Breaks(calls=3)"))
    assert record.ok
    assert caplog.text.count("logs no more of this run") == 1
    assert "the service is away" in caplog.text
    written = {path.name for path in (tmp_path / CONFIG.directory / FOLDER / "1-Breaks").iterdir()}
    assert written == {"2", "1", "0"}  # after the error it is not called again


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lightning.pytorch.loggers.CSVLoger", "Did you mean"),
        ("nowhere.at.all.Logger", "no module 'nowhere'"),
        ("os.path:join", "is no class of lightning"),
        ("CSVLogger", "expected a logger as in"),
        ("", "expected a logger as in"),
        (f"{CSV}(flush=1)", "unknown option of logger"),
        (f"{CSV}(save_dir='/')", "the run's own"),
        (f"{CSV}(flush", "expected a logger as in"),
        (f"{HERE}:NeverMade", "cannot be made: ModuleNotFoundError: no module named wandb"),
    ],
)
def test_a_logger_that_cannot_work_is_told_before_training(text, message, tmp_path, capsys) -> None:
    words = ["run", "--task", "vit-digits", "--pe", "add", "--seeds", "1", "--tier", "smoke"]
    out = tmp_path / "out"
    assert main([*words, "--executor", "sequential", "--out", str(out), "--logger", text]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_logger_given_twice_is_refused() -> None:
    with pytest.raises(UserError, match="given twice"):
        check_loggers([CSV, CSV])


@pytest.mark.parametrize("executor", ["sequential", pytest.param("local", marks=pytest.mark.slow)])
def test_every_executor_hands_loggers_on(executor: str, tmp_path: Path) -> None:
    results = pebench.run(
        "vit-digits", ["add"], 1, tier="smoke", out=tmp_path, executor=executor, device="cpu", threads=1, loggers=CSV
    )
    (record,) = results.records
    (folder,) = (tmp_path / record.config.directory / FOLDER / "1-CSVLogger").iterdir()
    require_curve(record, rows_of(folder))


def test_printed_commands_name_the_logger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{CSV}(flush_logs_every_n_steps=1)"
    pebench.run_suite([CONFIG], tmp_path, executor="commands", device="cpu", loggers=[text])
    assert f"--logger '{text}'" in capsys.readouterr().out


@pytest.mark.slow
def test_several_processes_of_a_run_log_once(tmp_path: Path) -> None:
    from pebench.training.ddp import run_on_devices

    run_on_devices(CONFIG, replace(options(tmp_path, CSV), devices=2), lambda *_: None, lambda: False)
    (record,) = read_records(tmp_path)
    (folder,) = (tmp_path / CONFIG.directory / FOLDER / "1-CSVLogger").iterdir()
    require_curve(record, rows_of(folder))


def test_a_service_goes_on_with_the_run_and_is_closed_after_it(tmp_path: Path, monkeypatch) -> None:
    """Weights & Biases itself, which keeps what it logs in a folder where it may not use the network."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    train(CONFIG, options(tmp_path, "lightning.pytorch.loggers.WandbLogger(project=pebench)"))
    assert wandb.run is None  # else the next run of this process would be logged to it
    found = tmp_path / CONFIG.directory / FOLDER / "1-WandbLogger" / "wandb"
    (run,) = found.glob("offline-run-*")
    assert run.name.endswith(CONFIG.key)
