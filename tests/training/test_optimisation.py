"""Optimisation of a run: gradients, divergence, and the stopwatch."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from torch import Tensor, nn

from pebench.data import datamodule_of
from pebench.errors import UserError
from pebench.models import ViT
from pebench.runs.records import find_record
from pebench.training.callbacks import Curve, DivergedError, FiniteLoss
from pebench.training.runner import build, train
from pebench.training.stopwatch import Stopwatch
from tests.training.helpers import options, smoke


def test_a_huge_loss_has_a_perplexity_that_json_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    config = smoke("lm-grammar")
    module, logged = build(config, datamodule_of(config)), {}
    monkeypatch.setattr(module, "log", lambda name, value: logged.__setitem__(name, float(value)))
    for name in module.metrics:
        module.metric(name).update(torch.tensor(100.0))
    module._log_metrics("val")
    assert 1e38 < logged["val/perplexity"] < math.inf


def test_a_validation_that_is_no_number_is_a_divergence() -> None:
    trainer = SimpleNamespace(callback_metrics={"val/loss": torch.tensor(math.inf)}, global_step=3)
    with pytest.raises(DivergedError, match="at step 3"):
        Curve(lambda *_: None).on_validation_end(trainer, None)


@pytest.mark.parametrize(("scaler", "fused"), [(None, True), (object(), False)])
def test_gradients_that_are_scaled_are_unscaled_before_they_are_clipped(scaler: object, fused: bool) -> None:
    module = build(smoke(), datamodule_of(smoke()))
    plugin = SimpleNamespace(scaler=scaler)
    module._trainer = SimpleNamespace(precision_plugin=plugin, estimated_stepping_batches=3)
    assert module.configure_optimizers()["optimizer"].defaults["fused"] is fused


def test_a_trainer_that_goes_on_for_ever_has_no_schedule(tmp_path: Path) -> None:
    trainer = lightning.Trainer(default_root_dir=tmp_path, max_time={"seconds": 1}, accelerator="cpu", logger=False)
    with pytest.raises(ValueError, match="give the Trainer max_steps or max_epochs"):
        trainer.fit(build(smoke(), datamodule_of(smoke())), datamodule=datamodule_of(smoke()))


def test_a_model_is_told_the_settings_of_its_training() -> None:
    told = {"learning_rate": 0.03, "weight_decay": 0.7, "warmup": 0.6}
    module = build(smoke(**told), datamodule_of(smoke()))
    assert {name: getattr(module, name) for name in told} == told
    module._trainer = SimpleNamespace(precision_plugin=None, estimated_stepping_batches=3)
    decayed, kept = module.configure_optimizers()["optimizer"].param_groups
    assert (decayed["weight_decay"], kept["weight_decay"], decayed["initial_lr"]) == (0.7, 0.0, 0.03)


def test_a_run_clips_at_what_its_settings_say(tmp_path: Path) -> None:
    usual, still = (train(smoke(clip=clip), options(tmp_path / str(clip))) for clip in (1.0, 1e-12))
    assert abs(still.curve[0]["val/loss"] - usual.curve[0]["val/loss"]) > 1e-4  # such gradients move AdamW by nothing


@pytest.mark.parametrize(("algorithm", "clipped"), [("value", [0.5, -0.5, 0.1]), ("norm", [0.30, -0.40, 0.01])])
def test_gradients_are_clipped_by_what_a_trainer_of_ones_own_says(algorithm: str, clipped: list[float]) -> None:
    module, weight = build(smoke(), datamodule_of(smoke())), nn.Parameter(torch.zeros(3))
    weight.grad = torch.tensor([3.0, -4.0, 0.1])
    module.configure_gradient_clipping(torch.optim.SGD([weight], 1.0), 0.5, algorithm)
    assert weight.grad.tolist() == pytest.approx(clipped, abs=1e-3)


@pytest.mark.filterwarnings("ignore:.*fp16 is not supported on CPU")
def test_a_precision_that_lightning_would_replace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="16-mixed needs a GPU"):
        train(smoke(precision="16-mixed"), options(tmp_path))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_the_run_soon(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, loss = [], ViT.loss

    def broken(self: ViT, batch: Any) -> Tensor:
        steps.append(self.global_step)
        return loss(self, batch) * (value if self.global_step >= 30 else 1)

    monkeypatch.setattr(ViT, "loss", broken)
    config = smoke(max_steps=1000, evaluations=1)
    with pytest.raises(DivergedError, match=r"the loss is (nan|inf) at step \d+"):
        train(config, options(tmp_path))
    assert max(steps) < 30 + 50
    assert find_record(config, tmp_path) is None


def test_nan_in_validation_is_told_with_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = ViT.forward
    monkeypatch.setattr(
        ViT, "forward", lambda self, *given: forward(self, *given) * (math.nan if not self.training else 1)
    )
    with pytest.raises(DivergedError, match="validation gives NaN at step 2; try a smaller"):
        train(smoke(max_steps=4, evaluations=2), options(tmp_path))


def test_a_model_that_diverged_before_the_first_look_leaves_no_record(tmp_path: Path) -> None:
    config = smoke(learning_rate=1e30, max_steps=6, evaluations=1)
    with pytest.raises((DivergedError, RuntimeError, ValueError)):
        train(config, options(tmp_path))
    assert find_record(config, tmp_path) is None


def test_the_loss_is_looked_at_every_so_many_steps() -> None:
    watch, nan = FiniteLoss(), torch.tensor(math.nan)
    alone = SimpleNamespace(reduce_boolean_decision=lambda decision, all=True: decision)
    watch.on_train_batch_end(SimpleNamespace(global_step=24), None, {"loss": nan}, None, 23)
    watch.on_train_batch_end(SimpleNamespace(global_step=25, strategy=alone), None, {"loss": torch.ones(())}, None, 24)
    with pytest.raises(DivergedError):
        watch.on_train_batch_end(SimpleNamespace(global_step=50, strategy=alone), None, {"loss": nan}, None, 49)


def test_the_stopwatch_counts_neither_warm_up_nor_validation_nor_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, watch = [0.0], Stopwatch()
    monkeypatch.setattr("pebench.training.stopwatch.time.perf_counter", lambda: clock[0])
    trainer = SimpleNamespace(global_step=0, max_steps=10, state=SimpleNamespace(fn="fit"), world_size=1)
    trainer.strategy = SimpleNamespace(root_device=torch.device("cpu"))
    watch.setup(trainer, None, "fit")
    for step in range(1, 11):
        watch.on_train_batch_start(trainer, None, None, step - 1)
        clock[0] += 100 if step <= 3 else 1
        trainer.global_step = step
        watch.on_train_batch_end(trainer, None, None, None, step - 1)
        if step == 7:
            watch.state_dict()
            clock[0] += 1000  # the checkpoint of a minute
        if step % 5 == 0:
            watch.on_validation_start(trainer, None)
            clock[0] += 1000
            watch.on_validation_end(trainer, None)
            clock[0] += 1000  # the checkpoint
    watch.on_train_end(trainer, None)
    assert (watch.seconds, watch.steps) == (7, 7)
    resumed = Stopwatch()
    resumed.setup(trainer, None, "fit")
    resumed.load_state_dict(watch.state_dict())
    trainer.max_steps = 20
    for step in range(11, 21):
        resumed.on_train_batch_start(trainer, None, None, step - 1)
        clock[0] += 100 if step <= 13 else 1
        trainer.global_step = step
        resumed.on_train_batch_end(trainer, None, None, None, step - 1)
    resumed.on_train_end(trainer, None)
    assert (resumed.seconds, resumed.steps) == (14, 14)
    assert resumed.devices == watch.devices


def test_the_stopwatch_measures_one_device_and_names_all() -> None:
    trainer: Any = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("cpu")), world_size=1)
    watch = Stopwatch()
    watch.setup(trainer, None, "fit")
    (here,) = watch.devices
    earlier = {"seconds": 5.0, "steps": 10, "wall": 6.0, "started": "2026-01-01T00:00:00+00:00"}
    other = ["cuda: B", torch.get_num_threads(), 1]
    watch.load_state_dict({**earlier, "devices": [here, "cuda: B"], "place": other})
    assert (watch.seconds, watch.steps, watch.devices) == (0, 0, ["cuda: B", here])
    assert (watch.earlier, watch.started) == (6, "2026-01-01T00:00:00+00:00")
    for place in (None, [here, torch.get_num_threads() + 1, 1], [here, torch.get_num_threads(), 2]):
        watch.load_state_dict({**earlier, "devices": [here], "place": place})
        assert (watch.seconds, watch.steps, watch.devices) == (0, 0, [here])  # as fast as another
    watch.load_state_dict({**earlier, "devices": ["cuda: B", here], "place": [here, torch.get_num_threads(), 1]})
    assert (watch.seconds, watch.steps) == (5, 10)
