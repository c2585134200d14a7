"""Kept weights: those that were tested, whole, in no record's way, and loaded into the model that they are of."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import pebench
from pebench.config import Options, RunConfig
from pebench.data import datamodule_of
from pebench.engine.observer import Observer
from pebench.errors import InterruptedRunError, UserError
from pebench.runs.records import WEIGHTS, Record, find_record
from pebench.tasks import configure
from pebench.training.ddp import run_on_devices
from pebench.training.extrapolation import prepared_batches
from pebench.training.extrapolation import test_metrics as metrics_of_the_test
from pebench.training.runner import train
from pebench.training.weights import load_weights
from tests.training.helpers import EMBEDDED, smoke

SETTINGS = {"max_steps": 20, "evaluations": 10, "learning_rate": 3.0, "warmup": 0.9, "clip": 100.0}
"""So fast that the last weights are not the best."""
SMALL = {"tier": "smoke", "device": "cpu", "threads": 1, "executor": "sequential"}


def keeping(out: Path) -> Options:
    return Options(out, device="cpu", threads=1, keep_weights=True)


def measured(config: RunConfig, out: Path) -> dict[str, float]:
    """Test metrics of the weights that are kept."""
    module, data = load_weights(out / config.directory), datamodule_of(config)
    data.prepare_data()
    data.setup()
    with torch.inference_mode():
        for batch in prepared_batches(data.test_dataloader(), module, data, lambda: False):
            module.update(batch, "test")
    return {name: float(metric.compute()) for name, metric in metrics_of_the_test(module).items()}


@pytest.mark.parametrize(("task", "encoding"), zip(EMBEDDED, ["learned", "concat-qk", "random"], strict=True))
def test_the_weights_kept_are_those_tested(task: str, encoding: str, tmp_path: Path) -> None:
    config = smoke(task, encoding, 1, **SETTINGS)
    record = train(config, keeping(tmp_path))
    assert record.metrics["best_step"] < 20
    for name, value in measured(config, tmp_path).items():
        assert record.metrics[name] == pytest.approx(value, rel=1e-6)
    loaded = load_weights(record, tmp_path)
    assert not loaded.training
    assert {p.name for p in (tmp_path / config.directory).iterdir() if "tfevents" not in p.name} == {
        "record.json", WEIGHTS,
    }  # fmt: skip


def test_they_are_no_part_of_a_record_and_off_by_default(tmp_path: Path) -> None:
    config = smoke(**LITTLE)
    kept, plain = (
        train(config, keeping(tmp_path / "kept")),
        train(config, replace(keeping(tmp_path), keep_weights=False)),
    )
    assert (kept.config.key, kept.metrics, kept.environment) == (plain.config.key, plain.metrics, plain.environment)
    assert kept.to_dict().keys() == plain.to_dict().keys()
    assert [path.parent.name for path in tmp_path.rglob(WEIGHTS)] == [config.directory.rpartition("/")[2]]
    selecting = replace(config, stage="select", selected=("train.clip",))
    train(selecting, keeping(tmp_path))
    assert not (tmp_path / selecting.directory / WEIGHTS).exists()


LITTLE = {"max_steps": 6, "evaluations": 3}


def test_an_interrupted_run_keeps_those_of_an_undisturbed_one(tmp_path: Path) -> None:
    config = smoke(encoding="learned", **LITTLE)
    train(config, keeping(tmp_path / "whole"))
    whole = load_file(tmp_path / "whole" / config.directory / WEIGHTS)
    asked = iter(range(3))
    with pytest.raises(InterruptedRunError):
        train(config, keeping(tmp_path), stop=lambda: next(asked, None) is None)
    file = tmp_path / config.directory / WEIGHTS
    file.write_bytes(b"of an attempt that was killed between weights and record")
    train(config, keeping(tmp_path))
    # Tensors, not bytes: the format writes its metadata in an order that changes from one time to the next.
    found = load_file(file)
    assert found.keys() == whole.keys()
    assert all(torch.equal(value, whole[name]) for name, value in found.items())


def test_weights_without_their_record_are_removed_with_the_attempt(tmp_path: Path) -> None:
    config = smoke(**LITTLE)
    train(config, keeping(tmp_path))
    (tmp_path / config.directory / "record.json").unlink()
    train(config, replace(keeping(tmp_path), keep_weights=False))
    assert not (tmp_path / config.directory / WEIGHTS).exists()


def test_what_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    ours, other = smoke(encoding="none", **LITTLE), smoke(encoding="none", seed=1, **LITTLE)
    folder, record = tmp_path / ours.directory, train(ours, keeping(tmp_path))
    train(other, keeping(tmp_path))
    with pytest.raises(UserError, match=r"cannot read .*nothing"):
        load_weights(tmp_path / "nothing")
    os.replace(tmp_path / other.directory / WEIGHTS, folder / WEIGHTS)
    with pytest.raises(UserError, match=f"holds the weights of run {other.key}, expected those of {ours.key}"):
        load_weights(folder)
    (folder / WEIGHTS).write_bytes(b"no tensors")
    with pytest.raises(UserError, match="holds no weights of this run's model"):
        load_weights(record, tmp_path)
    with pytest.raises(UserError, match=r"made without --keep-weights.*pebench run --config .* --keep-weights"):
        load_weights(tmp_path / other.directory)


def test_a_flipped_bit_in_kept_weights_is_noticed(tmp_path: Path) -> None:
    config = smoke(encoding="none", **LITTLE)
    train(config, keeping(tmp_path))
    path = tmp_path / config.directory / WEIGHTS
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    assert load_file(path)
    with pytest.raises(UserError, match="their checksum is not that of the content: the file is damaged"):
        load_weights(tmp_path / config.directory)


class Notes(Observer):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


def test_a_finished_run_is_not_made_again_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("vit-digits", ["add", "none"], [0])
    settings = {f"train.{name}": value for name, value in LITTLE.items()}
    first = pebench.run(*arguments, out=tmp_path, settings=settings, **SMALL)
    notes = Notes()
    pebench.run(*arguments, out=tmp_path, settings=settings, keep_weights=True, observer=notes, **SMALL)
    assert notes.notes == [
        "--keep-weights: 2 finished runs without weights, not made again; another folder (--out) would make them"
    ]
    assert not [*tmp_path.rglob(WEIGHTS)]
    plan = [record.config for record in first.records]
    assert pebench.preview_suite(plan, tmp_path, keep_weights=True).notes == notes.notes[:1]
    assert pebench.preview_suite(plan, tmp_path).notes == []
    pebench.run_suite(plan, tmp_path / "again", executor="commands", keep_weights=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split().count("--keep-weights") for line in lines] == [1, 1]


@pytest.mark.slow
def test_a_process_of_its_own_keeps_them_and_two_processes_keep_one_file(tmp_path: Path) -> None:
    config = configure("vit-digits", "learned", 1, "smoke", {f"train.{name}": v for name, v in LITTLE.items()})
    pebench.run_suite([config], tmp_path / "local", device="cpu", threads=1, executor="local", keep_weights=True)
    run_on_devices(config, replace(keeping(tmp_path / "ddp"), devices=2), lambda step, metrics: None, lambda: False)
    local, together = (load_file(tmp_path / name / config.directory / WEIGHTS) for name in ("local", "ddp"))
    assert local.keys() == together.keys()
    for name, value in local.items():
        torch.testing.assert_close(together[name], value, atol=1e-3, rtol=1e-3)
    found = find_record(config, tmp_path / "ddp")
    assert isinstance(found, Record)
    assert measured(config, tmp_path / "ddp")["test/accuracy"] == pytest.approx(
        found.metrics["test/accuracy"], rel=1e-6
    )
