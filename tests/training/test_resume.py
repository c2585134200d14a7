"""An interrupted run goes on where it was, and ends as if nothing had happened: to the last bit."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer import event_file_writer

from pebench.config import Options, RunConfig
from pebench.data.batches import Batches
from pebench.runs.records import Record, find_record
from pebench.tasks import configure, find_task
from pebench.training import environment
from pebench.training.callbacks import DurableCheckpointIO, InterruptedRunError
from pebench.training.resume import resumable_step
from pebench.training.runner import train
from pebench.training.tensorboard import RunLogger, log_failure
from tests.data.own_data import task_of_kind

SETTINGS = {"train.max_steps": 40, "train.evaluations": 4, "model.dropout": 0.1}
AUGMENTED = {"train.rand_augment": "2@9", "train.cutmix": 1.0, "train.erasing": 0.25, "train.label_smoothing": 0.1}
DIGITS = configure("vit-digits", "learned", tier="smoke", settings=SETTINGS | AUGMENTED)
ORDER = configure("text-order", "rope", tier="smoke", settings=SETTINGS)
GRAMMAR = configure("lm-grammar", "add", tier="smoke", settings=SETTINGS)


def options(out: Path) -> Options:
    return Options(out, device="cpu", threads=1)


def after(questions: int) -> Callable[[], bool]:
    """Says stop from the n-th time on that it is asked: after a step, or a batch of an evaluation."""
    asked = iter(range(questions - 1))
    return lambda: next(asked, None) is None


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return {config.task: train(config, options(folder)) for config in (DIGITS, ORDER, GRAMMAR)}


@pytest.mark.parametrize(
    ("config", "stops"),
    [
        # the default run stops at a step, at an evaluation, and more than once
        *(
            pytest.param(DIGITS, stops, marks=pytest.mark.slow)
            for stops in ([1], [5], [10], [14], [39, 2])
        ),
        (DIGITS, [7, 7, 7]), (ORDER, [13]), pytest.param(ORDER, [25, 9], marks=pytest.mark.slow), (GRAMMAR, [25, 9]),
    ],
)  # fmt: skip
def test_an_interrupted_run_ends_as_the_undisturbed_one(
    config: RunConfig, stops: list[int], undisturbed: dict[str, Record], tmp_path: Path
) -> None:
    for questions in stops:
        with pytest.raises(InterruptedRunError):
            train(config, options(tmp_path), stop=after(questions))
    assert find_record(config, tmp_path) is None
    record, expected = train(config, options(tmp_path)), undisturbed[config.task]
    assert record.metrics == expected.metrics
    assert record.curve == expected.curve
    for name in (name for name in record.metrics if name.startswith("val/")):
        assert shown(name, tmp_path / config.directory) == pytest.approx({p["step"]: p[name] for p in record.curve})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "tags", "pairs", "masked", "sequence"])
def test_runs_of_every_kind_of_task_go_on(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")
    task = "seq-copy" if kind == "sequence" else find_task(task_of_kind(kind, tmp_path)).name
    config = configure(task, "learned", tier="smoke", settings=SETTINGS)
    expected = train(config, options(tmp_path / "whole"))
    with pytest.raises(InterruptedRunError):
        train(config, options(tmp_path / "out"), stop=after(13))
    record = train(config, options(tmp_path / "out"))
    assert (record.metrics, record.curve) == (expected.metrics, expected.curve)


@pytest.mark.slow
def test_an_interrupted_run_may_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its best weights are behind it, so that it must know them in their new place; and it tells where it was."""
    settings = {"max_steps": 60, "evaluations": 6, "learning_rate": 3.0, "warmup": 0.9, "clip": 100.0}
    config = configure("vit-digits", "add", 0, "quick", {f"train.{name}": value for name, value in settings.items()})
    undisturbed = train(config, options(tmp_path / "whole"))
    assert undisturbed.metrics["best_step"] < 30
    with pytest.raises(InterruptedRunError):
        train(config, options(tmp_path / "here"), stop=after(45))
    (tmp_path / "here").rename(tmp_path / "there")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    monkeypatch.setattr("pebench.training.environment.device_text", lambda _: "cpu: another")
    record = train(config, options(tmp_path / "there"))
    assert record.metrics == undisturbed.metrics
    assert record.environment["device"] == f"{undisturbed.environment['device']}, then cpu: another"
    assert undisturbed.started <= record.started <= now


OTHERS = {
    "runner.described_plugins": lambda *_: {"plugins": {"add": {"sha256": "changed"}}},
    "environment.code": lambda: "changed",
    "environment.versions": lambda: {"torch": "another"},
}


@pytest.mark.parametrize(
    "changed",
    ["environment.code", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS if "code" not in name)],
)
def test_a_run_of_other_code_begins_again(
    changed: str, undisturbed: dict[str, Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InterruptedRunError):
        train(DIGITS, options(tmp_path), stop=after(5))
    monkeypatch.setattr(f"pebench.training.{changed}", OTHERS[changed])
    with pytest.warns(UserWarning, match=r"last\.ckpt is of other data, code or versions; the run begins again"):
        record = train(DIGITS, options(tmp_path))
    assert record.curve == undisturbed[DIGITS.task].curve
    assert [*shown("train/loss", tmp_path / DIGITS.directory)] == [*range(4, 41, 4)]


@pytest.mark.slow
def test_an_installed_package_is_the_same_code_as_a_checkout_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def code_of(files: dict[str, str]) -> str:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        with monkeypatch.context() as patch:
            patch.setattr(environment, "PACKAGE", root)
            return environment.code.__wrapped__()

    checkout = code_of(modules := {"environment.py": "1", "data/text.py": "2"})
    assert code_of(modules | {"benchmarks/suites/headline/core.py": "3"}) == checkout  # where a wheel has its suites
    assert len({checkout, code_of(modules | {"data/text.py": "3"}), code_of(modules | {"data/new.py": ""})}) == 3
    ask = "from pebench.training import environment; print(environment.code())"
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    same = asked.stdout.strip() == environment.code()  # in CI, of the installed package and of the checkout
    assert same, "the pebench that is installed is not this checkout: pip install -e ."


def test_a_checkpoint_that_does_not_say_what_it_is_of_is_of_other_code(tmp_path: Path) -> None:
    DurableCheckpointIO().save_checkpoint({"global_step": 1, "callbacks": {}}, tmp_path / "last.ckpt")
    with pytest.warns(UserWarning, match="is of other data, code or versions"):
        assert resumable_step(tmp_path / "last.ckpt", {"code": "this"}) == 0


def shown(tag: str, folder: Path) -> dict[int, float]:
    """The points that TensorBoard has of a run, by step; no step has two."""
    points = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload().Scalars(tag)
    assert len({point.step for point in points}) == len(points)
    return {point.step: point.value for point in points}


def test_what_was_logged_after_the_checkpoint_is_not_shown_twice(tmp_path: Path) -> None:
    def die(step: int, _: object) -> None:
        if step == 16:  # the checkpoint is that of step 10
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        train(DIGITS, options(tmp_path), die)
    train(DIGITS, options(tmp_path))
    assert [*shown("train/loss", tmp_path / DIGITS.directory)] == [*range(4, 41, 4)]


def test_attempts_within_one_second_are_shown_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_file_writer._global_uid, "_value", 9)  # names have it as text: "10" is before "9"
    for resumed, value in (0, 0.0), (10, 1.0):
        logger = RunLogger(tmp_path, resumed)
        for step in (10, 15, 20) if resumed == 0 else (15, 20):
            logger.log_metrics({"val/x": value}, step - 1)  # which Lightning counts from 0
        logger.close()
    assert shown("val/x", tmp_path) == {10: 0.0, 15: 1.0, 20: 1.0}


def test_a_stop_while_testing_costs_no_training(undisturbed: dict[str, Record], tmp_path: Path) -> None:
    steps: list[int] = []
    with pytest.raises(InterruptedRunError, match="evaluating"):
        train(DIGITS, options(tmp_path), lambda step, _: steps.append(step), lambda: steps.count(40) == 2)
    assert resumable_step(tmp_path / DIGITS.directory / "checkpoints" / "last.ckpt") == 40
    assert train(DIGITS, options(tmp_path)).metrics == undisturbed["vit-digits"].metrics


@pytest.mark.filterwarnings("ignore:.*is damaged")
@pytest.mark.parametrize(
    "damage",
    [pytest.param(b"", marks=pytest.mark.slow), b"not a checkpoint", pytest.param(None, marks=pytest.mark.slow)],
)
def test_a_damaged_checkpoint_is_as_good_as_none(
    damage: bytes | None, undisturbed: dict[str, Record], tmp_path: Path
) -> None:
    with pytest.raises(InterruptedRunError):
        train(DIGITS, options(tmp_path), stop=after(25))
    checkpoint = tmp_path / DIGITS.directory / "checkpoints" / "last.ckpt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000] if damage is None else damage)
    assert train(DIGITS, options(tmp_path)).metrics == undisturbed["vit-digits"].metrics


def test_nothing_is_left_of_the_checkpoints(tmp_path: Path) -> None:
    train(DIGITS, options(tmp_path))
    assert not (tmp_path / DIGITS.directory / "checkpoints").exists()


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, keeper = tmp_path / "last.ckpt", DurableCheckpointIO()
    keeper.save_checkpoint({"global_step": 1}, path)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no space left on device")))
    with pytest.raises(OSError, match="no space"):
        keeper.save_checkpoint({"global_step": 2}, path)
    assert resumable_step(path) == 1
    assert [*tmp_path.iterdir()] == [path]  # half of another would keep the disk full


def test_a_stream_of_batches_goes_on_from_any_step() -> None:
    def take(start: int, count: int) -> list[list[int]]:
        batches = iter(Batches(20, 6, seed=3, start=start))
        return [next(batches).tolist() for _ in range(count)]

    whole = take(0, 12)
    assert all(take(start, 12 - start) == whole[start:] for start in range(12))
    epochs = Batches(20, 6, seed=3)
    expected = []
    for epoch in range(4):
        epochs.set_epoch(epoch)
        expected += [batch.tolist() for batch in epochs]
    assert whole == expected


@pytest.mark.parametrize("name", ["last.ckpt", "best.ckpt"])
def test_a_flipped_bit_in_a_weight_begins_the_run_again(
    name: str, undisturbed: dict[str, Record], tmp_path: Path
) -> None:
    """torch loads it without a word: the run would go on as another."""
    with pytest.raises(InterruptedRunError):
        train(DIGITS, options(tmp_path), stop=after(25))
    path = tmp_path / DIGITS.directory / "checkpoints" / name
    state = torch.load(path, weights_only=True)["state_dict"]
    weight = max(state.values(), key=torch.Tensor.numel).numpy().tobytes()
    content = bytearray(path.read_bytes())
    content[content.index(weight) + len(weight) // 2] ^= 4
    path.write_bytes(content)
    torch.load(path, weights_only=True)
    with pytest.warns(UserWarning, match=rf"damaged \({name}: the checksum of its part .*; the run begins again"):
        record = train(DIGITS, options(tmp_path))
    assert record.metrics == undisturbed[DIGITS.task].metrics
    assert record.curve == undisturbed[DIGITS.task].curve


def test_event_files_do_not_name_the_machine(tmp_path: Path) -> None:
    train(DIGITS, options(tmp_path))
    log_failure(tmp_path / DIGITS.directory, DIGITS)
    names = [file.name for file in tmp_path.rglob("events.out.tfevents.*")]
    assert len(names) == 2
    assert not [name for name in names if socket.gethostname() in name.split(".")]
    assert event_file_writer.socket is socket
