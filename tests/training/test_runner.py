"""One run: it repeats bit by bit, nothing leaks from test to training, and it leaves what it should."""

import functools
import platform
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.data import datamodule_of
from pebench.data.images import Images
from pebench.models import TextClassifier, ViT
from pebench.models.base import SequenceModule
from pebench.runs.costs import cost
from pebench.runs.suite import serves
from pebench.tasks import configure
from pebench.training import environment
from pebench.training.extrapolation import Beyond
from pebench.training.resume import check_best
from pebench.training.runner import build, train
from tests.sampling import sampled
from tests.training.helpers import EMBEDDED, UNLIKE, event_files, options, outcome, scalars, smoke


@pytest.mark.parametrize(
    "task", ["text-order", *(pytest.param(name, marks=pytest.mark.slow) for name in EMBEDDED if name != "text-order")]
)
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


@pytest.mark.parametrize("cls", [ViT, pytest.param(TextClassifier, marks=pytest.mark.slow)])
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


PRECISIONS = [
    pytest.param(task, precision, id=f"{task}-{precision}")
    for task in EMBEDDED
    for precision in ("bf16-true", "64-true", "bf16-mixed")
]


@pytest.mark.parametrize(
    ("task", "precision"), sampled(PRECISIONS, 0.1, lambda task, _: task, lambda _, precision: precision)
)
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
    monkeypatch.setattr(
        "pebench.training.runner.measure_extrapolation", lambda *_: peak.append(peak.pop() + 1) or Beyond({}, {})
    )
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


KEPT = """
import resource, torch
from pebench.training import environment

def pages(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(2**24, dtype=torch.float32)  # 64 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

for keep in (False, True):
    environment.keep_freed_memory(keep)
    print(pages(1), pages(10))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")
def test_memory_is_kept_where_batches_are_alike() -> None:
    asked = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    (one, returned), (_, kept) = (map(int, line.split()) for line in asked.stdout.splitlines())
    assert returned > 5 * one  # each tensor is of new pages
    assert kept < one  # all are of the same ones


def test_memory_is_kept_for_images_and_windows_and_not_for_padded_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[bool] = []
    monkeypatch.setattr(environment, "keep_freed_memory", kept.append)
    for task in ("vit-digits", "text-order", "lm-grammar"):
        train(smoke(task, max_steps=1, evaluations=1), options(tmp_path))
    assert kept == [True, False, True]


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
        patched.setattr("pebench.training.callbacks.Curve.best", lambda *_: {"best_step": 1})
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


def test_progress_is_told_with_steps_and_metrics(tmp_path: Path) -> None:
    told = []
    train(smoke(max_steps=20, evaluations=2), options(tmp_path), lambda step, metrics: told.append((step, metrics)))
    steps = [step for step, _ in told]
    assert steps == sorted(steps)
    assert set(steps) == {1, *range(0, 21, 2)}  # the first steps are told at once
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
