"""One run: what its record says, that it repeats bit by bit, and that nothing leaks from test to training."""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import Tensor, nn
from torch.nn import functional as F

from pebench import __version__
from pebench.config import Options, RunConfig
from pebench.data import datamodule_of
from pebench.data.images import Images
from pebench.errors import UserError
from pebench.models import TextClassifier, ViT
from pebench.models.base import SequenceModule
from pebench.models.counting import count_parameters
from pebench.models.transformer import Transformer
from pebench.runs.costs import cost
from pebench.runs.records import Record, find_record, read_records
from pebench.runs.suite import serves
from pebench.tasks import configure
from pebench.training import environment
from pebench.training.callbacks import Curve, DivergedError, FiniteLoss, Stopwatch
from pebench.training.resume import check_best
from pebench.training.runner import build, probe, train

EMBEDDED = ("vit-digits", "text-order", "lm-grammar")
UNLIKE = ("add", "concat", "learned", "none", "rope", "cpe", "concat-qk", "cope", "lie-re", "randomized", "swin-bias")
"""Encodings that differ in hooks, parameters and draws; concat-wide would have more channels to drop."""
LOGGED = {"train.max_steps": 12, "train.evaluations": 3}


def smoke(task: str = "vit-digits", encoding: str = "add", seed: int = 0, **settings: Any) -> RunConfig:
    """A run of seconds; ``max_steps=3`` stands for ``train.max_steps=3``."""
    return configure(task, encoding, seed, "smoke", {f"train.{name}": value for name, value in settings.items()})


def options(out: Path) -> Options:
    return Options(out, device="cpu", threads=1)


def outcome(config: RunConfig, out: Path) -> tuple[Any, ...]:
    """What must repeat."""
    record = train(config, options(out))
    return record.metrics, record.curve, record.parameters, record.flops_per_sample, record.dataset


def event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module", params=EMBEDDED)
def record(request: pytest.FixtureRequest, out: Path) -> Record:
    return train(configure(request.param, "learned", 1, "smoke", LOGGED), options(out))


@pytest.fixture(scope="module")
def folder(record: Record, out: Path) -> Path:
    return out / record.config.directory


@pytest.fixture(scope="module")
def events(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()


def numbers(value: Any) -> Iterator[float]:
    """Every number in nested plain values."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float):
        yield value


def test_a_record_has_every_field(record: Record, out: Path) -> None:
    absent = {f.name for f in fields(Record) if getattr(record, f.name) in (None, {}, [], "")}
    assert absent == {"error", "matched_flops"}
    assert record.ok
    assert all(math.isfinite(number) for number in numbers(record.to_dict()))
    assert find_record(record.config, out) == record


def test_a_record_has_validation_and_test_metrics(record: Record) -> None:
    names = {"loss", "perplexity", "bits_per_byte"} if "lm" in record.config.task else {"loss", "accuracy"}
    of_size = {name for name in record.metrics if "@" not in name}
    assert of_size == {"best_step", *(f"{split}/{name}" for split in ("val", "test") for name in names)}


def test_a_curve_has_a_point_for_each_evaluation(record: Record) -> None:
    assert [point["step"] for point in record.curve] == [4, 8, 12]
    assert all({"val/loss", "train/loss"} <= set(point) for point in record.curve)


def test_a_curve_has_a_point_at_the_last_step_where_evaluations_do_not_divide_the_steps(tmp_path: Path) -> None:
    ran = train(smoke(max_steps=11, evaluations=3), options(tmp_path))
    assert [point["step"] for point in ran.curve] == [3, 6, 9, 11]


def test_the_headline_metric_may_choose_the_weights(tmp_path: Path) -> None:
    config = smoke("vit-digits", "add", max_steps=60, evaluations=12, learning_rate=0.05, monitor="metric")
    record = train(config, options(tmp_path))
    accuracies = {point["step"]: point["val/accuracy"] for point in record.curve if "val/accuracy" in point}
    losses = {point["step"]: point["val/loss"] for point in record.curve if "val/loss" in point}
    assert record.metrics["best_step"] == max(accuracies, key=accuracies.__getitem__)
    assert record.metrics["val/accuracy"] == max(accuracies.values())
    assert max(accuracies, key=accuracies.__getitem__) != min(losses, key=losses.__getitem__)  # else it shows nothing


def test_the_validation_metrics_are_those_of_the_best_point(record: Record) -> None:
    best = min(record.curve, key=lambda point: point["val/loss"])
    assert record.metrics["best_step"] == best["step"]
    chosen = {name: value for name, value in record.metrics.items() if name.startswith("val/")}
    assert chosen == {name: value for name, value in best.items() if name.startswith("val/")}


def test_costs_are_of_a_likely_size(record: Record) -> None:
    assert 0.05 < record.peak_memory_gib < 16
    assert 0.01 < record.duration_s < 600
    assert 10 < record.throughput < 1e6
    assert record.throughput * record.duration_s > record.config.train.batch_size


def test_what_flops_are_matched_by_is_recorded_where_they_are(record: Record, tmp_path: Path) -> None:
    assert record.matched_flops is None
    config = replace(record.config, regime="FLOPs")
    found = train(config, options(tmp_path))
    assert found.matched_flops == cost(config).flops
    assert found.flops_per_sample == record.flops_per_sample


def test_the_data_are_named_by_content_and_size(record: Record) -> None:
    assert re.fullmatch("[0-9a-f]{64}", record.dataset["fingerprint"])
    assert set(record.dataset["sizes"]) == {"train", "val", "test"}
    assert (record.dataset["padding"] is not None) == (record.config.task == "text-order")


def test_the_environment_is_described(record: Record) -> None:
    environment = record.environment
    versions = {"python", "pebench", "torch", "torchvision", "lightning", "torchmetrics", "datasets", "numpy"}
    assert versions <= set(environment["versions"])
    assert environment["versions"]["torch"] == torch.__version__
    assert environment["versions"]["pebench"] == __version__
    assert environment["device"].startswith("cpu: ")
    assert (environment["threads"], environment["precision"], environment["attention"]) == (1, "32-true", "sdpa")
    commit = environment["commit"]
    assert commit is None or re.fullmatch(r"[0-9a-f]{10,}(\+changes-[0-9a-f]{10})?", commit)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record.started)


def widths(config: RunConfig) -> tuple[int, int, int, int]:
    """Channels, layers, tokens in a sequence, and what the head gives out."""
    length, classes = {"vit-digits": (16, 10), "text-order": (16, 3), "lm-grammar": (64, 35)}[config.task]
    return config.model.d_model, config.model.num_layers, length, classes


def test_parameters_equal_a_count_by_hand(record: Record) -> None:
    d, layers, length, classes = widths(record.config)
    block = 2 * 2 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d)
    inputs = {"vit-digits": 4 * d + d, "text-order": 10 * d, "lm-grammar": classes * d}[record.config.task]
    assert record.parameters["encoding"] == length * d  # learned: a vector for every position
    head = classes * d + classes
    assert record.parameters["total"] == length * d + inputs + layers * block + 2 * d + head


@pytest.mark.parametrize("task", EMBEDDED)
def test_flops_equal_a_count_by_hand(task: str) -> None:
    settings = {"model.d_model": 32, "model.num_layers": 3, "train.batch_size": 4}
    config = configure(task, "none", 0, "smoke", settings)
    data = datamodule_of(config)
    module = build(config, data)
    d, layers, longest, classes = widths(config)
    expected = set()
    for length in (8, 12, 16) if task == "text-order" else (longest,):  # it says "one text", not which
        blocks = layers * length * (2 * 12 * d * d + 4 * length * d)
        patches = length * 2 * 4 * d if task == "vit-digits" else 0
        head = 2 * d * classes * (length if task == "lm-grammar" else 1)
        expected.add(3 * (blocks + head) + 2 * patches)  # no gradient of the pixels
    assert probe(module, data).flops in expected


def test_counting_flops_leaves_the_model_as_it_was() -> None:
    config = smoke("lm-grammar", "alibi")
    data = datamodule_of(config)
    module, untouched = build(config, data), build(config, data)
    probe(module, data)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), untouched.parameters(), strict=True))
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in module.parameters())


@pytest.mark.parametrize(("encoding", "precision", "kernel"), [
    ("alibi", "32-true", "sdpa"), ("t5-bias", "32-true", "matmul"), ("alibi", "bf16-mixed", "matmul"),
])  # fmt: skip
def test_a_record_names_the_kernel_that_its_encoding_took(
    encoding: str, precision: str, kernel: str, tmp_path: Path
) -> None:
    record = train(smoke("lm-grammar", encoding, precision=precision), options(tmp_path))
    assert record.environment["attention"] == kernel


@pytest.mark.filterwarnings("ignore:.*not a leaf Tensor.*")  # torch._dynamo looks, and suppresses it otherwise
def test_a_compiled_run_learns_the_same_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(  # without a C++ compiler
        Transformer, "compile", lambda trunk: (compiled.append(trunk), nn.Module.compile(trunk, backend="eager"))
    )
    ours, plain = (train(smoke("lm-grammar", "rope", compile=value), options(tmp_path)) for value in (True, False))
    assert (ours.environment["compiled"], plain.environment["compiled"], len(compiled)) == (True, False, 1)
    assert ours.metrics == pytest.approx(plain.metrics, rel=1e-5)


@pytest.mark.parametrize("task", EMBEDDED)
def test_flops_do_not_depend_on_the_seed(task: str) -> None:
    configs = [smoke(task, seed=seed) for seed in range(5)]
    assert len({probe(build(c, d), d) for c in configs for d in [datamodule_of(c)]}) == 1


def test_every_parameter_is_counted_once() -> None:
    linear = nn.Linear(3, 2)
    linear.bias.requires_grad_(False)
    assert count_parameters(nn.ModuleList([linear, linear])) == 6


@pytest.mark.parametrize("task", EMBEDDED)
def test_a_seed_repeats_bit_by_bit_and_another_differs(task: str, tmp_path: Path) -> None:
    config = replace(smoke(task, max_steps=6, evaluations=2), model=replace(smoke().model, dropout=0.2))
    first = outcome(config, tmp_path / "a")
    torch.rand(17)  # whatever else the process does
    assert outcome(config, tmp_path / "b") == first
    assert outcome(replace(config, seed=1), tmp_path / "c")[0]["test/loss"] != first[0]["test/loss"]


def test_the_weights_tested_are_those_that_validation_chose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[tuple[str, int], Tensor] = {}
    update = ViT.update

    def worse_and_worse(self: ViT, batch: Any, stage: str) -> None:
        update(self, batch, stage)
        seen[stage, self.global_step] = self.head.weight.clone()
        if stage == "val":
            self.metrics["val/loss"].update(torch.tensor(1e3 * self.global_step))

    monkeypatch.setattr(ViT, "update", worse_and_worse)
    record = train(smoke(max_steps=9, evaluations=3), options(tmp_path))
    tested = next(weight for (stage, _), weight in seen.items() if stage == "test")
    assert record.metrics["best_step"] == 3
    assert torch.equal(tested, seen["val", 3])
    assert not torch.equal(tested, seen["val", 9])


def test_test_data_are_not_touched_during_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = []

    def spy(cls: type, name: str) -> None:
        real = getattr(cls, name)

        def wrapped(self: Any, *arguments: Any) -> Any:
            if arguments in ((), ("test",)) and self.trainer is not None:
                touched.append((name, self.trainer.state.fn.value))
            return real(self, *arguments)

        monkeypatch.setattr(cls, name, wrapped)

    spy(Images, "split")
    spy(Images, "test_dataloader")
    train(smoke(), options(tmp_path))
    assert ("test_dataloader", "test") in touched
    assert {stage for _, stage in touched} == {"test"}


@pytest.mark.parametrize("cls", [ViT, TextClassifier])
def test_encodings_see_the_same_batches_and_drop_the_same_channels(
    cls: type[SequenceModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor] = []
    step = SequenceModule.training_step

    def forward(self: nn.Dropout, x: Tensor) -> Tensor:
        mask = F.dropout(torch.ones_like(x), self.p, self.training)
        if self.training:
            seen.append(mask)
        return x * mask

    def training_step(self: SequenceModule, batch: Any, batch_idx: int) -> Tensor:
        if self.global_step == 0:
            seen.clear()  # what counting FLOPs has dropped
        seen.extend(part.clone() for part in batch)
        return step(self, batch, batch_idx)

    monkeypatch.setattr(nn.Dropout, "forward", forward)
    monkeypatch.setattr(SequenceModule, "training_step", training_step)
    task, first = "vit-digits" if cls is ViT else "text-order", None
    for name in filter(functools.partial(serves, task), UNLIKE):
        config = smoke(task, name)
        train(replace(config, model=replace(config.model, dropout=0.5)), options(tmp_path))
        first = first or list(seen)
        assert len(seen) > 8
        assert all(torch.equal(a, b) for a, b in zip(seen, first, strict=True)), name


@pytest.mark.parametrize("encoding", ["add", "concat", "learned", "none", "rope"])
def test_a_bag_of_embeddings_trains(encoding: str, tmp_path: Path) -> None:
    config = configure("text-order", encoding, 0, "smoke", {"model.num_layers": 0})
    assert train(config, options(tmp_path)).parameters["total"] == cost(config).parameters


@pytest.mark.parametrize("precision", ["bf16-true", "64-true", "bf16-mixed"])
@pytest.mark.parametrize("task", EMBEDDED)
def test_a_run_of_any_precision_measures_the_same(task: str, precision: str, tmp_path: Path) -> None:
    usual, other = (train(smoke(task, precision=p), options(tmp_path)) for p in ("32-true", precision))
    assert other.metrics == pytest.approx(usual.metrics, rel=0.01, abs=0.02)
    for name, shares in usual.position_shares.items():
        assert other.position_shares[name] == pytest.approx(shares, rel=0.02, abs=1e-4)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_memory_is_that_of_this_run_alone(tmp_path: Path) -> None:
    torch.ones(2**28)  # a GiB, in an earlier run
    before = environment.peak_memory_gib(torch.device("cpu"))
    assert train(smoke(), options(tmp_path)).peak_memory_gib < before - 0.5


def test_memory_is_counted_anew_on_cuda_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    reset: list[None] = []
    monkeypatch.setattr("torch.cuda.reset_peak_memory_stats", lambda: reset.append(None))
    environment.reset_peak_memory()
    assert not reset  # which would start CUDA
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    environment.reset_peak_memory()
    assert reset


def test_memory_is_that_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peak = [1.0]
    monkeypatch.setattr("pebench.training.environment.peak_memory_gib", lambda device: peak[0])
    monkeypatch.setattr("pebench.training.runner.measure_extrapolation", lambda *_: peak.append(peak.pop() + 1) or {})
    assert train(smoke(), options(tmp_path)).peak_memory_gib == 1.0


@pytest.mark.skipif(environment.commit() is None, reason="needs a checkout")
def test_the_commit_is_that_of_the_code_that_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = ["before"]
    monkeypatch.setattr(
        "pebench.training.environment._git", lambda root, what, *_: head[0] if what == "rev-parse" else ""
    )
    environment.commit.cache_clear()
    record = train(smoke(), options(tmp_path), lambda step, metrics: head.__setitem__(0, "after"))
    environment.commit.cache_clear()
    assert record.environment["commit"] == "before"


@pytest.mark.skipif(environment.commit() is None, reason="needs a checkout")
def test_code_that_no_commit_has_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def git(root: Path, what: str, *words: str) -> str:
        asked.append((what, *words))
        return "abc" if what == "rev-parse" else "?? src/pebench/encodings/mine.py"

    monkeypatch.setattr("pebench.training.environment._git", git)
    environment.commit.cache_clear()
    assert environment.commit() == f"abc+changes-{environment.code()[:10]}"
    environment.commit.cache_clear()
    assert not any("--untracked-files=no" in words for words in asked)


def test_a_record_that_cannot_be_read_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / smoke().directory
    folder.mkdir(parents=True)
    (folder / "record.json").write_text('{"of": "a newer pebench"}')
    train(smoke(), options(tmp_path))
    assert [path.read_text() for path in folder.glob("unreadable-*")] == ['{"of": "a newer pebench"}']


def test_weights_of_another_attempt_are_not_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("pebench.training.runner.best_validation", lambda *_: {"best_step": 1})
        with pytest.raises(RuntimeError, match=r"best\.ckpt holds step 2, expected step 1: another process"):
            train(smoke(), options(tmp_path))
    assert train(smoke(), options(tmp_path)).metrics["best_step"] == 2  # tried again, it does not end so again


def test_weights_that_are_gone_are_told_and_nothing_is_gone_on_from(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    gone = SimpleNamespace(
        dirpath=tmp_path / "checkpoints", best_model_path=str(tmp_path / "checkpoints" / "best.ckpt")
    )
    with pytest.raises(
        RuntimeError, match=r"best\.ckpt holds nothing, expected step 3: .* Tried again, it begins anew"
    ):
        check_best(gone, 3.0)
    assert not (tmp_path / "checkpoints").exists()


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
    monkeypatch.setattr("pebench.training.callbacks.time.perf_counter", lambda: clock[0])
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


def test_progress_is_told_with_steps_and_metrics(tmp_path: Path) -> None:
    told = []
    train(smoke(max_steps=20, evaluations=2), options(tmp_path), lambda step, metrics: told.append((step, metrics)))
    steps = [step for step, _ in told]
    assert steps == sorted(steps)
    assert set(steps) == {*range(0, 21, 2)}
    assert "val/accuracy" in told[-1][1]


def test_success_leaves_no_checkpoints(folder: Path) -> None:
    assert not (folder / "checkpoints").exists()
    assert {path.name.split(".")[0] for path in folder.iterdir()} == {"record", "events"}


def test_a_run_over_an_unfinished_one_leaves_the_files_of_one_run(tmp_path: Path) -> None:
    config = smoke()
    folder = tmp_path / config.directory
    train(config, options(tmp_path))
    files = len(event_files(folder))
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "best.ckpt").write_bytes(b"half")
    (folder / ".record.json-half.part").write_bytes(b"{")
    (folder / "checkpoints" / ".last.ckpt-half.part").write_bytes(b"half")
    train(config, options(tmp_path))
    assert len(event_files(folder)) == files == 1
    assert not [*folder.glob(".*"), *folder.glob("checkpoints")]
    points = Counter((tag, point.step) for tag, point in scalars(folder))
    assert set(points.values()) == {1}


def scalars(folder: Path) -> list[tuple[str, Any]]:
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return [(tag, point) for tag in found.Tags()["scalars"] for point in found.Scalars(tag)]


def test_tensorboard_shows_the_curve_of_the_record(record: Record, events: EventAccumulator) -> None:
    for name in (name for name in record.metrics if name.startswith("val/")):
        points = events.Scalars(name)
        assert [point.step for point in points] == [point["step"] for point in record.curve]
        assert [point.value for point in points] == pytest.approx([point[name] for point in record.curve], rel=1e-6)


def test_tensorboard_shows_the_outcome_of_the_record_once(record: Record, events: EventAccumulator) -> None:
    for name, value in record.metrics.items():
        if name != "best_step":
            tag = re.sub("^test/(.*)@", r"beyond/\1_", name.replace("val/", "best/"))
            (point,) = events.Scalars(tag)
            assert point.value == pytest.approx(value, rel=1e-6)
            assert point.step == (record.curve[-1]["step"] if tag.startswith("test/") else record.metrics["best_step"])


def test_a_run_leaves_one_event_file_with_a_picture_of_what_it_has_learnt(
    folder: Path, events: EventAccumulator
) -> None:
    assert len(event_files(folder)) == 1
    (picture,) = events.Images("encoding")
    assert (picture.width, picture.height) == (720, 360)


def test_a_picture_that_cannot_be_drawn_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr("pebench.training.tensorboard.effects", fail)
    config = configure("vit-digits", "learned", 0, "smoke")
    assert train(config, options(tmp_path)).ok
    assert "no ink" in caplog.text


def test_a_tensorboard_that_cannot_be_written_costs_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("pebench.training.runner.log_outcome", fail)
    with pytest.warns(UserWarning, match="TensorBoard lacks the outcome of this run: no space left"):
        assert train(smoke(), options(tmp_path)).ok
    assert find_record(smoke(), tmp_path)


def test_tensorboard_has_one_row_of_hyperparameters(record: Record, folder: Path) -> None:
    values = [value for path in event_files(folder) for event in EventFileLoader(str(path)).Load()
              for value in event.summary.value]  # fmt: skip
    tags = Counter(value.tag for value in values)
    assert tags["_hparams_/session_start_info"] == 1
    assert "hp_metric" not in tags
    start = next(value for value in values if value.tag == "_hparams_/session_start_info")
    content = start.metadata.plugin_data.content
    assert all(text.encode() in content for text in ("encoding", record.config.encoding, record.config.task, "smoke"))


def test_a_folder_of_runs_is_read_as_records(record: Record, out: Path) -> None:
    assert record in read_records(out)


@pytest.mark.parametrize("every", [0, 1, 50])
def test_a_model_of_a_run_serves_a_trainer_of_ones_own(every: int, tmp_path: Path) -> None:
    config = smoke("text-order", "rope")
    data = datamodule_of(config)
    trainer = lightning.Trainer(
        default_root_dir=tmp_path, max_steps=2, accelerator="cpu", limit_val_batches=1, logger=False,
        log_every_n_steps=every,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(build(config, data), datamodule=data)
    assert trainer.global_step == 2
