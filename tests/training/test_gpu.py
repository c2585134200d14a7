"""On a GPU: every encoding says there what it says on a processor, and runs train, resume and tell where they were."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pebench import run_suite
from pebench.config import Options
from pebench.conformance import SETTINGS, Bench, Setting, Subject
from pebench.data import datamodule_of
from pebench.data.batches import on_device
from pebench.encodings.registry import encoding_cards
from pebench.models.transformer import Transformer
from pebench.tasks import configure
from pebench.training.callbacks import InterruptedRunError
from pebench.training.captured import CapturedStep, CudaRecorder, make_capturable
from pebench.training.runner import train

pytestmark = pytest.mark.gpu
SHORT = {"train.max_steps": 40, "train.evaluations": 4}
CASES = [
    pytest.param(name, setting, id=f"{name}-{setting.name}".replace(" ", "_"))
    for name in encoding_cards()
    for setting in SETTINGS
    if Subject(name).serves(setting)
]


@pytest.fixture(autouse=True)
def _card() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU that this PyTorch can use")


def outcome(model: Transformer, content: Tensor, valid: Tensor | None) -> tuple[Tensor, list[Tensor]]:
    """What a model says of a text or image, and the gradient of that in every parameter."""
    model.zero_grad()
    output = model(content, valid=valid)
    weights = torch.linspace(-1, 1, output.numel(), device=output.device).view_as(output)
    (output.float() * weights).sum().backward()
    return output.detach().float().cpu(), [p.grad.cpu() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_it_says_the_same_as_on_a_processor(name: str, setting: Setting) -> None:
    bench = Bench(Subject(name), setting)
    valid = torch.ones(3, bench.length, dtype=torch.bool)
    if len(setting.extent) == 1:
        valid[1, -3:] = False
    output, gradients = outcome(bench.trunk(), bench.content, valid)
    on_card, their_gradients = outcome(bench.trunk().cuda(), bench.content.cuda(), valid.cuda())
    torch.testing.assert_close(on_card[valid], output[valid], rtol=1e-4, atol=1e-4)
    assert len(gradients) == len(their_gradients)
    for ours, theirs in zip(gradients, their_gradients, strict=True):
        scale = float(ours.abs().max())
        torch.testing.assert_close(theirs, ours, rtol=1e-3, atol=1e-3 * max(1.0, scale))


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_in_half_precision_it_says_nearly_the_same(name: str, setting: Setting) -> None:
    """At positions that 16 bits do not tell apart, too, in which angles must not be worked out."""
    extent = (600,) if len(setting.extent) == 1 else (5, 60)
    bench = Bench(Subject(name), setting)
    model = bench.trunk(extent=extent).cuda()
    content = bench.noise(2, math.prod(extent)).cuda()
    whole, _ = outcome(model, content, None)
    with torch.autocast("cuda", torch.bfloat16):
        half, gradients = outcome(model, content, None)
    assert float((half - whole).square().mean().sqrt()) < 0.05  # outputs are of scale 1
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("task", ["vit-digits", "text-order", "lm-grammar"])
def test_a_run_trains_there_as_on_a_processor_and_says_so(task: str, precision: str, tmp_path: Path) -> None:
    record, plain = (
        train(
            configure(task, "rope", tier="smoke", settings=SHORT | {"train.precision": kind}),
            Options(tmp_path / device, device=device),
        )
        for device, kind in (("auto", precision), ("cpu", "32-true"))
    )
    assert record.environment["device"] == f"cuda: {torch.cuda.get_device_name()}"
    assert record.environment["precision"] == precision
    assert record.peak_memory_gib
    assert record.throughput
    losses, expected = ([point["val/loss"] for point in one.curve] for one in (record, plain))
    assert losses == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        (SHORT | {"train.precision": "32-true"}, 24), (SHORT | {"train.precision": "bf16-mixed"}, 24),
        (SHORT | {"train.precision": "16-mixed"}, 24),
        ({"train.max_steps": 100, "train.evaluations": 4, "train.capture": True}, 60),
    ],
)  # fmt: skip
def test_an_interrupted_run_ends_there_as_the_undisturbed_one(
    settings: dict[str, Any], steps: int, tmp_path: Path
) -> None:
    config = configure("lm-grammar", "learned", tier="smoke", settings=settings | {"model.dropout": 0.1})
    undisturbed = train(config, Options(tmp_path / "whole", device="cuda"))
    asked = iter(range(steps))
    with pytest.raises(InterruptedRunError):
        train(config, Options(tmp_path / "cut", device="cuda"), stop=lambda: next(asked, None) is None)
    record = train(config, Options(tmp_path / "cut", device="cuda"))
    assert record.metrics == pytest.approx(undisturbed.metrics, rel=1e-4)


def test_a_compiled_run_learns_the_same_there(tmp_path: Path) -> None:
    plain, compiled = (
        train(configure("lm-grammar", "rope", tier="smoke", settings=SHORT | {"train.compile": value}),
            Options(tmp_path / str(value), device="cuda"))
        for value in (False, True)
    )  # fmt: skip
    assert compiled.environment["compiled"]
    assert compiled.metrics["test/loss"] == pytest.approx(plain.metrics["test/loss"], rel=1e-3)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("task", ["vit-digits", "text-order", "lm-grammar"])
def test_a_captured_run_learns_the_same_there(task: str, precision: str, tmp_path: Path) -> None:
    """With dropout: what a replay drops follows from the step's seed, as in a step that is not captured."""
    settings = {"train.max_steps": 100, "train.evaluations": 4, "model.dropout": 0.1, "train.precision": precision}
    usual, captured = (
        train(configure(task, "learned", tier="smoke", settings=settings | {"train.capture": value}),
            Options(tmp_path / str(value), device="cuda"))
        for value in (False, True)
    )  # fmt: skip
    assert captured.environment["captured"] is True
    losses, expected = ([point["val/loss"] for point in one.curve] for one in (captured, usual))
    assert losses == pytest.approx(expected, rel=1e-3 if precision == "32-true" else 0.02)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_step_of_every_encoding_is_captured_or_says_why_not(name: str, setting: Setting) -> None:
    """And what follows a capture that failed is computed as before."""
    bench = Bench(Subject(name), setting)
    plain, ours = bench.trunk().cuda(), bench.trunk().cuda()
    content = [bench.noise(3, bench.length).cuda() for _ in range(6)]

    def step_of(model: Transformer) -> Callable[[tuple[Tensor, ...]], None]:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        make_capturable(optimizer)

        def step(batch: tuple[Tensor, ...]) -> None:
            loss = model(batch[0]).float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    usual, captured = step_of(plain), CapturedStep(step_of(ours), CudaRecorder())
    for one in content:
        usual((one,))
        captured((one,))
    assert captured.replayed or captured.reason.startswith("the step cannot be captured")
    for expected, found in zip(plain.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("task", ["vit-digits", "lm-grammar"])
def test_batches_of_training_are_gathered_on_the_card(task: str, tmp_path: Path) -> None:
    config = configure(task, "none", tier="smoke", settings=SHORT)
    train(config, Options(out=tmp_path, device="cuda"))
    data = datamodule_of(config, None)
    data.model_arguments()
    examples, _ = data.split("train")
    index = torch.tensor([3, 0, 5])
    near = on_device(examples, torch.device("cuda"))[index]
    assert all(part.device.type == "cuda" for part in near)
    assert all(map(torch.equal, [part.cpu() for part in near], examples[index]))


@pytest.mark.parametrize("capture", [False, True])
def test_runs_that_share_a_process_end_there_as_each_does_alone(capture: bool, tmp_path: Path) -> None:
    settings = {"train.max_steps": 200, "train.evaluations": 4, "train.capture": capture}
    plan = [
        configure(task, encoding, seed, "smoke", settings)
        for task in ("vit-digits", "lm-grammar")
        for encoding in ("learned", "rope")
        for seed in (0, 1)
    ]
    together = run_suite(plan, tmp_path / "together", executor="together", jobs=4, device="cuda")
    assert [record.ok for record in together.records] == 8 * [True]
    for record in together.records:
        alone = train(record.config, Options(tmp_path / "alone", device="cuda"))
        assert record.environment.get("captured") == alone.environment.get("captured") == (True if capture else None)
        ours, theirs = ([point["val/loss"] for point in one.curve] for one in (record, alone))
        assert ours == pytest.approx(theirs, rel=1e-3)
