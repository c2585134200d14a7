"""The end of a run: its record is whole before anything goes, and what is measured is of the weights that were chosen.

Each of these was broken on purpose once, and no other test noticed.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.data import datamodule_of
from pebench.models import ViT
from pebench.models.base import SequenceModule
from pebench.runs.records import FAILURE, FILE_NAME, WEIGHTS, Record, find_record, run_files, write_record
from pebench.training import runner
from pebench.training.position_share import measure_position_share
from pebench.training.runner import train
from tests.training.helpers import options, smoke

CHOSEN, LAST = 3, 9
CONFIG = smoke("vit-digits", "rope", max_steps=LAST, evaluations=3, precision="bf16-mixed")


@dataclass
class Seen:
    """A batch that a model was given: in which part of the end, for which metrics, with which weights and precision."""

    phase: str
    stage: str
    step: int
    weight: Tensor
    labels: Tensor
    autocast: bool


@dataclass
class Ended:
    """A run that has ended, and what was seen of it."""

    record: Record
    out: Path
    seen: list[Seen]
    events: list[str]

    def of(self, phase: str, stage: str) -> list[Seen]:
        return [one for one in self.seen if (one.phase, one.stage) == (phase, stage)]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """A run that fails first, whose validation likes its first weights best, and that keeps and analyzes them."""
    out = tmp_path_factory.mktemp("end")
    folder = out / CONFIG.directory
    write_record(Record(CONFIG, status="failed", error={"kind": "killed", "reason": "no power"}), out)
    seen, events, phase = list[Seen](), list[str](), ["training"]

    def within(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*arguments: Any) -> Any:
            phase[0] = name
            try:
                return function(*arguments)
            finally:
                phase[0] = "between"

        return inner

    def note(model: ViT, stage: str, labels: Tensor) -> None:
        weight, autocast = model.head.weight.detach().clone(), torch.is_autocast_enabled("cpu")
        step = 0 if model._trainer is None else model.global_step  # a copy for measuring has no trainer
        seen.append(Seen(phase[0], stage, step, weight, labels.clone(), autocast))

    def worse_and_worse(self: ViT, batch: Any, stage: str) -> None:
        note(self, stage, batch[-1])
        update(self, batch, stage)
        if stage == "val":
            self.metrics["val/loss"].update(torch.tensor(1e3 * self.global_step))

    def watched_loss(self: ViT, batch: Any) -> Tensor:
        note(self, "loss", batch[-1])
        return loss(self, batch)

    def state() -> str:
        """What is in the folder now, in words."""
        kept = {FILE_NAME: "record", FAILURE: "failure", "checkpoints": "checkpoints", WEIGHTS: "weights"}
        return " ".join(word for name, word in kept.items() if (folder / name).exists())

    def write_text(path: Path, text: str, durable: bool = False) -> None:
        if path.name == FILE_NAME:
            events.append(f"record{' durably' if durable else ''} beside: {state()}")
            events.append(text)
        write(path, text, durable)

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self.name == FAILURE:
            events.append(f"failure goes from: {state()}")
        remove(self, missing_ok)

    def rmtree(path: Path, *arguments: Any, **named: Any) -> None:
        if Path(path).name == "checkpoints" and Path(path).exists():
            events.append(f"checkpoints go from: {state()}")
        clear(path, *arguments, **named)

    update, loss, write, remove, clear = ViT.update, ViT.loss, run_files.write_text, Path.unlink, shutil.rmtree
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ViT, "update", worse_and_worse)
        patch.setattr(ViT, "loss", watched_loss)
        patch.setattr(run_files, "write_text", write_text)
        patch.setattr(Path, "unlink", unlink)
        patch.setattr(shutil, "rmtree", rmtree)
        for name in ("measure_extrapolation", "analyze"):
            patch.setattr(runner, name, within(name, getattr(runner, name)))
        record = train(
            CONFIG, replace(options(out), keep_weights=True, analyze=True),
            measure=within("shares", measure_position_share),
        )  # fmt: skip
    yield Ended(record, out, seen, events)


def test_the_record_is_on_disk_before_anything_goes(ended: Ended) -> None:
    events = [event for event in ended.events if not event.startswith("{")]
    assert events == [
        "record durably beside: failure checkpoints weights",
        "failure goes from: record failure checkpoints weights",
        "checkpoints go from: record checkpoints weights",
    ]
    assert {path.name for path in (ended.out / CONFIG.directory).iterdir()} >= {FILE_NAME, WEIGHTS}


def test_the_record_is_written_once_and_complete(ended: Ended) -> None:
    (written,) = (event for event in ended.events if event.startswith("{"))
    assert json.loads(written) == json.loads(json.dumps(ended.record.to_dict()))
    assert ended.record == find_record(CONFIG, ended.out)
    assert ended.record.analysis
    assert set(ended.record.position_shares) == {"untrained", "trained"}
    assert {"test/accuracy", "test/accuracy@2x", "val/accuracy"} <= set(ended.record.metrics)


def chosen_weight(ended: Ended) -> Tensor:
    weights = [one.weight for one in ended.seen if one.stage == "val" and one.step == CHOSEN]
    last = [one.weight for one in ended.seen if one.stage == "val" and one.step == LAST]
    assert not torch.equal(weights[0], last[0])  # else it would show nothing
    return weights[0]


def test_everything_after_training_is_measured_with_the_weights_that_validation_chose(ended: Ended) -> None:
    chosen = chosen_weight(ended)
    assert ended.record.metrics["best_step"] == CHOSEN
    others = ended.of("measure_extrapolation", "test")
    assert others
    assert all(torch.equal(one.weight, chosen) for one in others)
    shares = ended.of("shares", "loss")
    trained = [torch.equal(one.weight, chosen) for one in shares]
    assert trained == sorted(trained)  # the model as it began comes first
    assert 0 < sum(trained) < len(trained)


def test_other_sizes_are_of_the_test_split_and_shares_of_validation(ended: Ended) -> None:
    data = datamodule_of(CONFIG)
    data.setup()
    tensors = data.prepared.tensors
    labels = tensors["test_labels"].tolist()
    found = torch.cat([one.labels for one in ended.of("measure_extrapolation", "test")]).tolist()
    assert found == labels * (len(found) // len(labels))  # each size has them in their order
    counted = Counter(tensors["val_labels"].tolist())
    measured = torch.cat([one.labels for one in ended.of("shares", "loss")])
    each = Counter(measured[: len(measured) // 2].tolist())
    assert each == counted  # there are fewer than are measured at most
    assert Counter(labels) != counted


def test_other_sizes_are_measured_in_the_precision_of_the_run(ended: Ended) -> None:
    assert {one.autocast for one in ended.of("measure_extrapolation", "test")} == {True}
    assert {one.autocast for one in ended.seen if one.stage == "val"} == {True}
    assert {one.autocast for one in ended.of("shares", "loss")} == {False}  # which are of 32 bit in every run


def test_dropout_differs_from_step_to_step_and_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masks: dict[int, Tensor] = {}
    step = SequenceModule.training_step

    def training_step(self: SequenceModule, batch: Any, batch_idx: int) -> Tensor:
        state = torch.get_rng_state()
        masks[self.global_step] = F.dropout(torch.ones(64), 0.5)
        torch.set_rng_state(state)
        return step(self, batch, batch_idx)

    monkeypatch.setattr(SequenceModule, "training_step", training_step)
    config = smoke("vit-digits", "none", max_steps=4, evaluations=1)
    train(config, options(tmp_path / "a"))
    first = list(masks.values())
    assert len({tuple(mask.tolist()) for mask in first}) == len(first) == 4
    masks.clear()
    train(config, options(tmp_path / "b"))
    assert all(torch.equal(a, b) for a, b in zip(first, masks.values(), strict=True))
