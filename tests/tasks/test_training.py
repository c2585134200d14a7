"""Every task trains, on the embedded data, and measures what its card says."""

import math

import pytest
import torch
from torch import nn

from pebench.data import datamodule_of
from pebench.encodings.registry import encoding_cards
from pebench.models.base import SequenceModule
from pebench.runs.suite import serves
from pebench.tasks import TASKS, configure
from pebench.training.runner import build

import lightning  # isort: skip

EMBEDDED = ["vit-digits", "text-order", "lm-grammar", "seq-copy"]  # one of each kind
ENCODINGS = list(encoding_cards())
every_embedded = pytest.mark.parametrize("task", EMBEDDED)


# Training, on the embedded data


def quiet(**options) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, **options,
    )  # fmt: skip


def awake(module: SequenceModule) -> SequenceModule:
    """With an output layer that is not zero, so that the metrics have something to say."""
    nn.init.normal_(module.head.weight, std=0.2, generator=torch.Generator().manual_seed(0))
    return module


@pytest.mark.parametrize(
    ("task", "encoding"), [(t, e) for t in EMBEDDED[:3] for e in ENCODINGS if serves(t, e)] + [("seq-copy", "rope")]
)
def test_every_task_trains_with_every_encoding_that_serves_it(task, encoding):
    config = configure(task, encoding, tier="smoke")
    data = datamodule_of(config)
    module, trainer = build(config, data), quiet(fast_dev_run=True)
    before = {name: parameter.clone() for name, parameter in module.named_parameters()}
    trainer.fit(module, datamodule=data)
    moved = [name for name, parameter in module.named_parameters() if not torch.equal(parameter, before[name])]
    assert "head.weight" in moved
    assert all(parameter.isfinite().all() for parameter in module.parameters())
    trainer.test(module, datamodule=data, verbose=False)
    assert math.isfinite(trainer.callback_metrics[f"test/{TASKS[task].metric}"])


@pytest.mark.parametrize(
    ("task", "encoding", "size"), [("vit-digits", "add", 64), ("text-order", "learned", 64), ("lm-grammar", "add", 4)]
)
def test_a_task_overfits_one_batch(task, encoding, size):
    config = configure(task, encoding, settings={"train.batch_size": size})
    data = datamodule_of(config)
    module = build(config, data)
    batch = data.on_after_batch_transfer(next(iter(data.train_dataloader())), 0)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    losses = []
    while len(losses) < 60 and (not losses or losses[-1] >= losses[0] / 4):
        loss = module.loss(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


@every_embedded
def test_validation_does_not_depend_on_the_batch_size(task):
    measured = []
    for size in (8, 32):
        config = configure(task, "add", tier="smoke", settings={"train.batch_size": size})
        data = datamodule_of(config)
        module = awake(build(config, data))
        measured.append(quiet().validate(module, datamodule=data, verbose=False)[0])
    assert measured[0] == pytest.approx(measured[1], abs=1e-5, rel=1e-5)
    assert f"val/{TASKS[task].metric}" in measured[0]


@every_embedded
def test_validation_measures_the_whole_split(task):
    config = configure(task, "add", tier="smoke")
    data = datamodule_of(config)
    module = awake(build(config, data)).eval()
    rows, _ = data.split("val")
    batch = data.on_after_batch_transfer(rows[torch.arange(len(rows))], 0)
    with torch.no_grad():
        whole = module.loss(batch).item()
    measured = quiet().validate(module, datamodule=data, verbose=False)[0]
    assert measured["val/loss"] == pytest.approx(whole, abs=1e-5)


@every_embedded
def test_the_first_loss_is_that_of_a_guess(task):
    classes = {"vit-digits": 10, "text-order": 3, "lm-grammar": 35, "seq-copy": 12}[task]
    config = configure(task, "add", tier="smoke")
    data = datamodule_of(config)
    metrics = quiet().validate(build(config, data), datamodule=data, verbose=False)[0]
    assert metrics["val/loss"] == pytest.approx(math.log(classes), abs=1e-5)


def test_bits_per_byte_are_the_loss_over_the_bytes():
    config = configure("lm-grammar", "add", tier="smoke")
    data = datamodule_of(config)
    measured = quiet().validate(awake(build(config, data)), datamodule=data, verbose=False)[0]
    tokens = data.prepared.tensors["val"][1:].long()  # all but the first are asked for
    size = torch.tensor(data.describe()["token_bytes"])[tokens].sum().item()
    expected = measured["val/loss"] * len(tokens) / size / math.log(2)
    assert measured["val/bits_per_byte"] == pytest.approx(expected, rel=1e-5)
    assert measured["val/perplexity"] == pytest.approx(math.exp(measured["val/loss"]), rel=1e-5)
