"""The end of a run: its record is whole before anything goes, and what is measured is of the weights that were chosen.

Each of these was broken on purpose once, and no other test noticed.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable
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


class Watch:
    """Sees what happens while a run trains and ends.

    Args:
        out: Output folder.
    """

    def __init__(self, out: Path) -> None:
        self.out, self.folder = out, out / CONFIG.directory
        self.seen: list[Seen] = []
        self.events: list[str] = []
        self.phase = "training"

    def within(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, while it runs the phase has a name."""

        def inner(*arguments: Any) -> Any:
            self.phase = name
            try:
                return function(*arguments)
            finally:
                self.phase = "between"

        return inner

    def note(self, model: ViT, stage: str, labels: Tensor) -> None:
        weight, autocast = model.head.weight.detach().clone(), torch.is_autocast_enabled("cpu")
        step = 0 if model._trainer is None else model.global_step  # a copy for measuring has no trainer
        self.seen.append(Seen(self.phase, stage, step, weight, labels.clone(), autocast))

    def state(self) -> str:
        """What is in the folder now, in words."""
        kept = {FILE_NAME: "record", FAILURE: "failure", "checkpoints": "checkpoints", WEIGHTS: "weights"}
        return " ".join(word for name, word in kept.items() if (self.folder / name).exists())

    def model(self, patch: pytest.MonkeyPatch) -> None:
        """See every batch; validation likes the first weights best."""
        update, loss = ViT.update, ViT.loss

        def worse_and_worse(model: ViT, batch: Any, stage: str) -> None:
            self.note(model, stage, batch[-1])
            update(model, batch, stage)
            if stage == "val":
                model.metrics["val/loss"].update(torch.tensor(1e3 * model.global_step))

        def watched(model: ViT, batch: Any) -> Tensor:
            self.note(model, "loss", batch[-1])
            return loss(model, batch)

        patch.setattr(ViT, "update", worse_and_worse)
        patch.setattr(ViT, "loss", watched)

    def files(self, patch: pytest.MonkeyPatch) -> None:
        """See the record written, and the earlier failure and the checkpoints go."""
        write, remove, clear = run_files.write_text, Path.unlink, shutil.rmtree

        def write_text(path: Path, text: str, durable: bool = False) -> None:
            if path.name == FILE_NAME:
                self.events += [f"record{' durably' if durable else ''} beside: {self.state()}", text]
            write(path, text, durable)

        def unlink(path: Path, missing_ok: bool = False) -> None:
            if path.name == FAILURE:
                self.events.append(f"failure goes from: {self.state()}")
            remove(path, missing_ok)

        def rmtree(path: Path, *arguments: Any, **named: Any) -> None:
            if Path(path).name == "checkpoints" and Path(path).exists():
                self.events.append(f"checkpoints go from: {self.state()}")
            clear(path, *arguments, **named)

        patch.setattr(run_files, "write_text", write_text)
        patch.setattr(Path, "unlink", unlink)
        patch.setattr(shutil, "rmtree", rmtree)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run that fails first, whose validation likes its first weights best, and that keeps and analyzes them."""
    watch = Watch(tmp_path_factory.mktemp("end"))
    write_record(Record(CONFIG, status="failed", error={"kind": "killed", "reason": "no power"}), watch.out)
    with pytest.MonkeyPatch.context() as patch:
        watch.model(patch)
        watch.files(patch)
        patch.setattr(runner, "measure_extrapolation", watch.within("sizes", runner.measure_extrapolation))
        how = replace(options(watch.out), keep_weights=True, analyze=True)
        record = train(CONFIG, how, measure=watch.within("shares", measure_position_share))
    return Ended(record, watch.out, watch.seen, watch.events)


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
    others = ended.of("sizes", "test")
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
    found = torch.cat([one.labels for one in ended.of("sizes", "test")]).tolist()
    assert found == labels * (len(found) // len(labels))  # each size has them in their order
    counted = Counter(tensors["val_labels"].tolist())
    measured = torch.cat([one.labels for one in ended.of("shares", "loss")])
    each = Counter(measured[: len(measured) // 2].tolist())
    assert each == counted  # there are fewer than are measured at most
    assert Counter(labels) != counted


def test_other_sizes_are_measured_in_the_precision_of_the_run(ended: Ended) -> None:
    assert {one.autocast for one in ended.of("sizes", "test")} == {True}
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
