"""Plain steps, which Lightning's loop does not see, and captured ones: a run ends as it would without them."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from torch import Tensor

from pebench.config import RunConfig
from pebench.data.base import TensorDataModule
from pebench.models.base import SequenceModule
from pebench.runs.records import Record
from pebench.tasks import configure
from pebench.training import captured, steps
from pebench.training.callbacks import InterruptedRunError
from pebench.training.captured import SHAPES, WARM_UP, CapturedStep
from pebench.training.runner import train
from pebench.training.steps import PlainSteps
from pebench.training.turns import Turns
from tests.training.helpers import EMBEDDED, options, scalars

SETTINGS = {"train.max_steps": 60, "train.evaluations": 2}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The plain steps that are made, by number."""
    found: list[int] = []
    count = PlainSteps._count

    def counted(loop: PlainSteps) -> None:
        count(loop)
        found.append(loop.global_step)

    monkeypatch.setattr(PlainSteps, "_count", counted)
    return found


@contextlib.contextmanager
def lightning_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(steps, "obstacle", lambda trainer: "a test")
        yield


def trained(config: RunConfig, out: Path, stop: Callable[[], bool] = lambda: False) -> tuple[Record, dict[str, Tensor]]:
    """The record of a run, and the weights that were tested."""
    weights: dict[str, Tensor] = {}

    def keep(_: SequenceModule, module: SequenceModule, *others: Any) -> dict[str, Any]:
        weights.update(module.state_dict())
        return {}

    return train(config, options(out), stop=stop, measure=keep), weights


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
@pytest.mark.parametrize("task", EMBEDDED)
def test_a_run_is_the_same_to_the_last_bit(
    task: str, dropout: float, made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure(task, "learned", tier="smoke", settings=SETTINGS | {"model.dropout": dropout})
    ours, weights = trained(config, tmp_path / "ours")
    # logged: every 6th; looked at for its loss: 25, 50; validated: 30, 60; timed from 4 and 31 on; told: 1, 2, 4
    assert made == [step for step in range(5, 60) if step % 6 and step not in (25, 31, 50)]
    with lightning_alone(monkeypatch):
        theirs, expected = trained(config, tmp_path / "theirs")
    assert len(made) == 43
    assert (ours.metrics, ours.curve) == (theirs.metrics, theirs.curve)
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)
    folders = (tmp_path / name / config.directory for name in ("ours", "theirs"))
    ours_shown, theirs_shown = ([(tag, p.step, p.value) for tag, p in scalars(folder)] for folder in folders)
    untimed = [
        [point for point in shown if point[0].startswith(("train", "val"))] for shown in (ours_shown, theirs_shown)
    ]
    assert untimed[0] == untimed[1]
    assert len(untimed[0]) >= 10


def test_a_stopped_run_leaves_the_same_checkpoint_one_step_later_at_most_and_ends_the_same(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure("vit-digits", "rope", tier="smoke", settings=SETTINGS | {"model.dropout": 0.1})
    taken, step = [0], SequenceModule.training_step

    def counted(module: SequenceModule, batch: Any, index: int) -> Tensor:
        taken[0] += 1
        return step(module, batch, index)

    def stopped(name: str, at: int) -> dict[str, Any]:
        taken[0] = 0
        with pytest.raises(InterruptedRunError, match="stopped at step 41"):
            train(config, options(tmp_path / name), stop=lambda: taken[0] >= at)
        path = tmp_path / name / config.directory / "checkpoints" / "last.ckpt"
        state: dict[str, Any] = torch.load(path, weights_only=True)
        del state["callbacks"]["Stopwatch"]
        return state

    monkeypatch.setattr(SequenceModule, "training_step", counted)
    ours = stopped("ours", 40)  # after a plain step
    assert 40 in made
    with lightning_alone(monkeypatch):
        theirs = stopped("theirs", 41)
        assert without_paths(ours) == without_paths(theirs)
        whole, expected = trained(config, tmp_path / "whole")
    again, weights = trained(config, tmp_path / "ours")
    assert (again.metrics, again.curve) == (whole.metrics, whole.curve)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def without_paths(state: Any) -> Any:
    """The numbers of a checkpoint, and its texts but those that name folders."""
    if isinstance(state, dict):
        return {name: without_paths(value) for name, value in state.items() if not names_path(name)}
    if isinstance(state, (list, tuple)):
        return [without_paths(value) for value in state]
    return state.tolist() if isinstance(state, Tensor) else state


def names_path(name: Any) -> bool:
    return "path" in str(name) or name == "best_k_models"


def test_a_module_that_watches_its_steps_keeps_lightnings_loop(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SequenceModule, "on_after_backward", lambda module: None)
    with caplog.at_level(logging.INFO, "pebench.training.steps"):
        train(configure("text-order", "add", tier="smoke", settings={"train.max_steps": 8}), options(tmp_path))
    assert not made
    assert "every step goes through Lightning's loop: TextClassifier defines on_after_backward" in caplog.text


def test_data_prepare_every_batch_that_is_trained_on(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps_seen: list[int] = []

    def prepare(data: TensorDataModule, batch: Any, dataloader_idx: int) -> Any:
        assert data.trainer is not None
        if data.trainer.training:
            steps_seen.append(data.trainer.global_step)
        return batch

    monkeypatch.setattr(TensorDataModule, "on_before_batch_transfer", prepare)
    train(configure("vit-digits", "none", tier="smoke", settings={"train.max_steps": 40}), options(tmp_path))
    assert steps_seen == [*range(40)]
    assert made


class Watcher(Callback):
    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"world_size": 2}, "several processes share it"),
        ({"precision_plugin": type("Half", (), {"scaler": object()})()}, "float16 scales the loss"),
        ({"lightning_module": torch.nn.Linear(1, 1)}, "Linear is no module of pebench"),
        ({"lightning_module": type("Own", (SequenceModule,), {"training_step": len})}, "Own defines training_step"),
        ({"callbacks": [Callback(), Watcher()]}, "Watcher looks at every step"),
        ({}, ""),
    ],
)
def test_what_keeps_lightnings_loop_is_told(change: dict[str, Any], reason: str) -> None:
    module = change.get("lightning_module", SequenceModule)
    change = {**change, "lightning_module": module.__new__(module) if isinstance(module, type) else module}
    usual = {"world_size": 1, "precision_plugin": None, "callbacks": [Callback()]}
    trainer: Any = type("Trainer", (), usual | change)()
    assert steps.obstacle(trainer) == reason


class Repeats:
    """Stands in for CUDA graphs: a recording is the function, called again."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses, self.warmed, self.recorded = refuses, 0, 0

    @contextlib.contextmanager
    def side(self) -> Iterator[None]:
        self.warmed += 1
        yield

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        if self.refuses:
            raise RuntimeError("operation not permitted\nwhen stream is capturing")
        self.recorded += 1
        return function


def test_a_shape_is_recorded_once_warm_and_repeated_with_each_batch() -> None:
    seen: list[tuple[int, float]] = []
    recorder = Repeats()
    step = CapturedStep(lambda batch: seen.append((id(batch[0]), float(batch[0].sum()))), recorder)
    batches = [torch.full((2,), float(number)) for number in range(8)]
    for batch in batches:
        step((batch,))
    assert [total for _, total in seen] == [2.0 * number for number in range(8)]
    assert [place for place, _ in seen[:WARM_UP]] == [*map(id, batches[:WARM_UP])]
    assert len({place for place, _ in seen[WARM_UP:]} - {*map(id, batches)}) == 1  # a recording reads one place
    assert (recorder.warmed, recorder.recorded, step.replayed, step.reason) == (WARM_UP, 1, 8 - WARM_UP, "")
    step((torch.ones(3),))
    step((torch.ones(2, dtype=torch.long),))
    assert (recorder.warmed, recorder.recorded) == (WARM_UP + 2, 1)


@pytest.mark.parametrize(
    ("refuses", "batches", "reason"),
    [
        (True, [(torch.ones(1),)] * 6, "the step cannot be captured: operation not permitted"),
        (False, [((torch.ones(1), None),)] * 6, "a batch is no tuple of tensors"),
        (False, [(torch.ones(1 + n % 6),) for n in range(36)], f"batches have more than {SHAPES} shapes"),
    ],
)
def test_what_cannot_be_captured_is_made_and_told_once(
    refuses: bool, batches: list[Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    step = CapturedStep(seen.append, Repeats(refuses))
    for batch in batches:
        step(batch)
    assert len(seen) == len(batches)
    assert step.reason == reason
    assert caplog.text.count("not every step is captured: " + reason) == 1


def test_a_captured_run_learns_the_same_and_says_so(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = configure("lm-grammar", "add", tier="smoke", settings=SETTINGS | {"model.dropout": 0.1})
    config = replace(plain, train=replace(plain.train, capture=True))
    assert config.key != plain.key
    usual, _ = trained(plain, tmp_path)
    refused, _ = trained(config, tmp_path / "refused")
    assert (refused.metrics, refused.environment["captured"]) == (usual.metrics, False)
    assert "no step is captured: the device is cpu" in caplog.text
    assert "captured" not in usual.environment
    monkeypatch.setattr(steps, "recorder_of", lambda device: Repeats())
    record, _ = trained(config, tmp_path / "captured")
    assert record.environment["captured"] is True
    # Rates are read from tensors of 32 bits there.
    assert [p["val/loss"] for p in record.curve] == pytest.approx([p["val/loss"] for p in usual.curve], rel=1e-4)
    with pytest.raises(InterruptedRunError):
        train(config, options(tmp_path / "cut"), stop=iter([False] * 60 + [True] * 60).__next__)
    again, _ = trained(config, tmp_path / "cut")
    assert (again.metrics, again.curve) == (record.metrics, record.curve)


@pytest.mark.parametrize("encoding", ["shifted", "randomized"])
def test_what_draws_on_the_processor_is_not_captured(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording would repeat the positions of one step in all others."""
    monkeypatch.setattr(steps, "recorder_of", lambda device: Repeats())
    config = configure("lm-grammar", encoding, tier="smoke", settings={"train.max_steps": 40, "train.capture": True})
    assert train(config, options(tmp_path)).environment["captured"] is False


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_runs_that_share_a_process_are_captured_unless_they_draw(
    dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recordings of one process read random numbers from one place."""
    monkeypatch.setattr(steps, "recorder_of", lambda device: Repeats())
    settings = {"train.max_steps": 60, "train.capture": True, "model.dropout": dropout}
    config = configure("lm-grammar", "add", tier="smoke", settings=settings)
    with Turns("cpu").taken():
        shared = train(config, options(tmp_path / "shared"))
    alone = train(config, options(tmp_path / "alone"))
    assert (shared.environment["captured"], alone.environment["captured"]) == (not dropout, True)
    assert shared.metrics["test/loss"] == pytest.approx(alone.metrics["test/loss"], rel=1e-4)


def test_a_processor_has_no_recorder() -> None:
    assert captured.recorder_of(torch.device("cpu")) is None
