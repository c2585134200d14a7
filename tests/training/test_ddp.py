"""A run on several devices is the run on one: Lightning's DDP with gloo, on two processes."""

import math
import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path

import lightning
import pytest
import torch

from pebench.config import Options, RunConfig
from pebench.data import datamodule_of
from pebench.data.batches import Batches
from pebench.errors import InterruptedRunError, UserError
from pebench.runs.records import Record, find_record
from pebench.tasks import configure
from pebench.training import ddp
from pebench.training.ddp import run_on_devices
from pebench.training.runner import build, train

SETTINGS = {"train.max_steps": 24, "train.evaluations": 3, "train.batch_size": 16}
RUNS = [configure("vit-digits", "learned", 1, "quick", SETTINGS), configure("lm-grammar", "rope", 1, "quick", SETTINGS)]


def options(out: Path, devices: int) -> Options:
    return Options(out, device="cpu", threads=1, devices=devices)


def quiet(step: int, metrics: object) -> None:
    pass


def record_of(config: RunConfig, out: Path) -> Record:
    found = find_record(config, out)
    assert found is not None
    return found


def check_same(alone: Record, together: Record) -> None:
    """That two records are of one model, but for rounding, and one was trained on two devices."""
    assert together.metrics == pytest.approx(alone.metrics, rel=1e-4)
    assert together.beyond.keys() == alone.beyond.keys()
    for name, curves in alone.beyond.get("by_position", {}).items():
        for kind, values in curves.items():
            assert together.beyond["by_position"][name][kind] == pytest.approx(values, rel=1e-4)
    for ours, theirs in zip(alone.curve, together.curve, strict=True):
        assert theirs["val/loss"] == pytest.approx(ours["val/loss"], rel=1e-4)
        assert theirs["train/loss"] == pytest.approx(ours["train/loss"], rel=1e-4)  # of the whole batch
    assert (alone.environment["devices"], together.environment["devices"]) == (1, 2)


@pytest.mark.slow
def test_two_processes_train_the_same_model_as_one(tmp_path: Path) -> None:
    config = RUNS[1]
    alone = train(config, options(tmp_path / "one", 1))
    run_on_devices(config, options(tmp_path / "two", 2), quiet, lambda: False)
    check_same(alone, record_of(config, tmp_path / "two"))
    assert len([*tmp_path.glob("two/**/record.json")]) == 1
    assert not [*tmp_path.rglob("last.ckpt")]


def test_the_error_that_keeps_a_helper_from_starting_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(process: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(multiprocessing.get_context("spawn").Process, "start", fail)
    with pytest.raises(OSError, match="no more processes"):
        run_on_devices(RUNS[0], options(tmp_path, 3), quiet, lambda: False)


@pytest.mark.slow
def test_an_interrupted_run_on_two_processes_resumes(tmp_path: Path) -> None:
    config = RUNS[0]
    alone = train(config, options(tmp_path / "one", 1))
    run_on_devices(config, options(tmp_path / "whole", 2), quiet, lambda: False)
    stop = threading.Event()

    def tell(step: int, metrics: object) -> None:
        if step >= 10:
            stop.set()

    with pytest.raises(InterruptedRunError):
        run_on_devices(config, options(tmp_path / "halves", 2), tell, stop.is_set)
    assert find_record(config, tmp_path / "halves") is None
    assert torch.load(next(tmp_path.rglob("last.ckpt")), weights_only=True)["global_step"] >= 10
    run_on_devices(config, options(tmp_path / "halves", 2), quiet, lambda: False)
    whole, halves = (record_of(config, tmp_path / name) for name in ("whole", "halves"))
    check_same(alone, whole)
    assert (halves.metrics, halves.curve) == (whole.metrics, whole.curve)


@pytest.mark.slow
def test_a_trainer_of_ones_own_deals_data_out_once(tmp_path: Path) -> None:
    """Lightning deals out what has not been dealt out; twice would leave some examples to nobody."""
    data = datamodule_of(RUNS[0])
    model = build(RUNS[0], data)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    alone, together = (
        lightning.Trainer(
            default_root_dir=tmp_path, accelerator="cpu", devices=devices, strategy=strategy, **quiet
        ).test(model, data, verbose=False)[0]
        for devices, strategy in ((1, "auto"), (2, "ddp_spawn"))
    )
    assert together == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("task", ["lm-grammar", "vit-digits", "text-order"])
def test_every_process_has_something_to_evaluate(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = datamodule_of(configure(task, "add", tier="quick", settings={"train.batch_size": 256}))
    data.prepare_data()
    data.setup()
    found = []
    for rank in range(8):
        monkeypatch.setattr(type(data), "share", (rank, 8))
        found.append([len(batch[-1]) for batch in data.val_dataloader()])
    assert all(found)  # Lightning fails where a process has none
    assert sum(map(sum, found)) == data.sizes()["val"]


def test_devices_must_divide_the_batch(tmp_path: Path) -> None:
    config = replace(RUNS[0], train=replace(RUNS[0].train, batch_size=15))
    with pytest.raises(UserError, match=r"train\.batch_size must be a multiple of --devices, got 15"):
        train(config, options(tmp_path, 2))


def run_soon_lost(options: Options) -> None:
    ddp.LOST_S = 1.0
    run_on_devices(RUNS[0], options, quiet, lambda: False)


@pytest.mark.slow
def test_a_run_ends_when_one_of_its_processes_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lost.py").write_text("import os\nif os.environ['LOCAL_RANK'] == '1':\n    os.kill(os.getpid(), 9)\n")
    how = replace(options(tmp_path / "out", 2), folders=(str(tmp_path),), modules=("lost",))
    process = multiprocessing.get_context("spawn").Process(target=run_soon_lost, args=(how,))
    process.start()
    process.join(120)
    process.kill()
    assert process.exitcode == 1
    assert "a process of this run ended with exit code -9" in capfd.readouterr().err


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
@pytest.mark.parametrize("lengths", [None, torch.arange(50) % 7 + 1], ids=["equal", "unequal"])
def test_shares_of_a_batch_make_the_batch(processes: int, lengths: torch.Tensor | None) -> None:
    whole = [batch.tolist() for batch in Batches(50, 12, 0, lengths)]
    shares = [[b.tolist() for b in Batches(50, 12, 0, lengths, share=(r, processes))] for r in range(processes)]
    for number, batch in enumerate(whole):
        assert sorted(index for share in shares for index in share[number]) == sorted(batch)
        assert max(len(share[number]) for share in shares) == math.ceil(12 / processes)


@pytest.mark.parametrize("processes", [2, 3])
def test_shares_of_an_evaluation_see_every_example_once(processes: int) -> None:
    shares = [Batches(50, 8, None, share=(rank, processes)) for rank in range(processes)]
    assert sorted(index for share in shares for batch in share for index in batch.tolist()) == list(range(50))
    assert [len(share) for share in shares] == [len([*share]) for share in shares]


def test_shares_of_a_batch_are_augmented_as_in_the_batch() -> None:
    from pebench.data.images import crop_and_flip

    images = torch.arange(6 * 3 * 64).reshape(6, 3, 8, 8)
    noise = [torch.Generator().manual_seed(0) for _ in range(3)]
    whole = crop_and_flip(images, 2, noise[0])
    for rank in (0, 1):
        assert torch.equal(crop_and_flip(images[rank::2], 2, noise[1 + rank], (rank, 2)), whole[rank::2])


def test_a_data_module_alone_has_all_of_it() -> None:
    assert datamodule_of(RUNS[0]).share == (0, 1)
