"""The three modules and their data in a Lightning Trainer of one's own: what docs/guides/lightning.md says works."""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging, StochasticWeightAveraging
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.tuner import Tuner
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.utils.data import Dataset, TensorDataset

from pebench.conformance.bench import perturbed
from pebench.data.base import TensorDataModule
from pebench.data.batches import Texts, Windows
from pebench.encodings import PositionalEncoding
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.base import SequenceModule
from pebench.models.transformer import Block

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*smaller than the logging interval"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec"),
    pytest.mark.filterwarnings("ignore:.*Checkpoint directory"),
    pytest.mark.filterwarnings("ignore:.*The `batch_size` argument|.*lr_find"),
    pytest.mark.filterwarnings("ignore:.*sync_dist=True"),  # the metrics are of all processes already
    pytest.mark.filterwarnings("ignore:SWA is currently only supported every epoch"),
]
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "lightning.md"
SIZES: dict[str, Any] = {"d_model": 16, "num_layers": 2, "num_heads": 2}
LABELS = torch.arange(40) % 5


def tokens(count: int) -> Tensor:
    return torch.randint(11, (count,), generator=torch.Generator().manual_seed(0))


class Held(TensorDataModule):
    """Data that need no file."""

    title = "held"

    def prepare_data(self) -> None:
        pass

    def setup(self, stage: str | None = None) -> None:
        pass


class Images(Held):
    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        return TensorDataset(torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(0)), LABELS), None

    def describe(self) -> dict[str, Any]:
        return {"image_size": 8, "patch_size": 2, "num_classes": 5}


class ShortTexts(Held):
    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        lengths = 1 + torch.arange(40) % 8
        return Texts(tokens(int(lengths.sum())), lengths, LABELS), lengths

    def describe(self) -> dict[str, Any]:
        return {"vocab_size": 11, "max_len": 8, "num_classes": 5}


class RunningText(Held):
    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        return Windows(tokens(200), 8, 1 if name == "train" else 8), None

    def describe(self) -> dict[str, Any]:
        return {"vocab_size": 11, "max_len": 8}


MODULES: dict[type[SequenceModule], type[Held]] = {ViT: Images, TextClassifier: ShortTexts, LanguageModel: RunningText}
every_module = pytest.mark.parametrize("cls", MODULES)


def made(cls: type[SequenceModule], encoding: Any = "learned", **options: Any) -> tuple[SequenceModule, Held]:
    data = MODULES[cls](4, 0, None)
    return cls(encoding, **data.describe(), **SIZES, **options), data


def batch_of(data: Held) -> tuple[Tensor, ...]:
    return tuple(next(iter(data.val_dataloader())))


def trainer_in(folder: Path | str, **options: Any) -> lightning.Trainer:
    silent = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    usual = {"accelerator": "cpu", "logger": False, "default_root_dir": folder, "max_steps": 4}
    return lightning.Trainer(**{**silent, **usual, **options})


@pytest.fixture
def trainer(tmp_path: Path) -> Any:
    return functools.partial(trainer_in, tmp_path)


class Seen(lightning.Callback):
    """Keeps the batches of training."""

    def __init__(self) -> None:
        self.batches: list[tuple[Tensor, ...]] = []

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.batches.append(tuple(batch))


@every_module
def test_overfit_batches(cls, trainer):
    (module, data), seen = made(cls), Seen()
    fit = trainer(overfit_batches=1, callbacks=[seen])
    fit.fit(module, data)
    assert (fit.num_training_batches, fit.num_val_batches) == (1, [1])
    assert len(seen.batches) == 4
    assert all(
        torch.equal(one, other) for batch in seen.batches for one, other in zip(batch, seen.batches[0], strict=True)
    )


@every_module
def test_every_epoch_has_an_order_of_its_own(cls, trainer):
    (module, data), seen = made(cls), Seen()
    trainer(max_steps=2, limit_train_batches=1, callbacks=[seen]).fit(module, data)
    assert not torch.equal(seen.batches[0][0], seen.batches[1][0])


@every_module
def test_predict(cls, trainer):
    module, data = made(cls)
    found = trainer().predict(perturbed(module), data)
    examples, _ = data.split("test")
    assert sum(map(len, found)) == len(examples)  # every example, in the order of the data
    row, *_ = batch = examples[torch.tensor([11])]
    inputs = batch[:-1]
    torch.testing.assert_close(torch.cat([*found])[11] if cls is not LanguageModel else found[1][3],
                               module.eval()(*inputs)[0], atol=1e-5, rtol=1e-4)  # fmt: skip
    alone = row if module.inputs == 1 else inputs  # a loader may have no labels
    assert torch.equal(module.predict_step(alone, 0), module(*inputs))


@pytest.mark.parametrize(
    "cls", [ViT, *(pytest.param(cls, marks=pytest.mark.slow) for cls in (TextClassifier, LanguageModel))]
)
def test_scale_batch_size(cls, trainer):
    module, data = made(cls)
    found = Tuner(trainer()).scale_batch_size(module, datamodule=data, max_trials=2, steps_per_trial=1, init_val=2)
    assert found == data.batch_size >= 4
    assert len(batch_of(data)[0]) > 0


@every_module
def test_lr_find(cls, trainer, tmp_path):
    module, data = made(cls)
    fit = trainer(max_steps=20)
    found = Tuner(fit).lr_find(module, datamodule=data, num_training=20, early_stop_threshold=None)
    assert len(found.results["lr"]) == 20
    assert found.suggestion() == module.learning_rate == module.hparams["learning_rate"]
    fit.fit(module, data)
    fit.save_checkpoint(tmp_path / "tuned.ckpt")
    assert cls.load_from_checkpoint(tmp_path / "tuned.ckpt").learning_rate == module.learning_rate


@every_module
def test_fast_dev_run(cls, trainer):
    module, data = made(cls)
    fit = trainer(fast_dev_run=True)
    fit.fit(module, data)
    fit.test(module, data, verbose=False)
    assert fit.global_step == 1


@every_module
def test_limit_batches(cls, trainer):
    (module, data), seen = made(cls), Seen()
    fit = trainer(
        max_steps=-1, max_epochs=2, limit_train_batches=2, limit_val_batches=1, limit_test_batches=0.5,
        limit_predict_batches=1, callbacks=[seen],
    )  # fmt: skip
    fit.fit(module, data)
    fit.test(module, data, verbose=False)
    assert len(seen.batches) == fit.global_step == 4
    assert len(fit.predict(module, data)) == 1


@every_module
def test_load_from_checkpoint(cls, trainer, tmp_path):
    module, data = made(cls)
    fit = trainer()
    fit.fit(module, data)
    fit.save_checkpoint(tmp_path / "whole.ckpt")
    loaded = cls.load_from_checkpoint(tmp_path / "whole.ckpt").eval()
    assert torch.equal(loaded.loss(batch_of(data)), module.eval().loss(batch_of(data)))


@every_module
@pytest.mark.parametrize("average", [
    lambda: EMAWeightAveraging(decay=0.5), lambda: StochasticWeightAveraging(swa_lrs=1e-3, swa_epoch_start=1),
], ids=["EMAWeightAveraging", "StochasticWeightAveraging"])  # fmt: skip
def test_weight_averaging(cls, average, trainer):
    (plain, data), (module, _) = made(cls), made(cls)
    steps = {"max_steps": -1, "max_epochs": 4, "limit_train_batches": 2}
    trainer(**steps).fit(plain, data)
    trainer(**steps, callbacks=[average()]).fit(module, data)
    # The end is another one than without, and the module can be used.
    assert any(not torch.equal(one, other) for one, other in zip(plain.parameters(), module.parameters(), strict=True))
    assert module.loss(batch_of(data)).isfinite()


@every_module
@pytest.mark.parametrize("encoding", ["alibi", "swin-bias", "cpe"])
def test_gradient_checkpointing(cls, encoding):
    module, data = made(cls, encoding, dropout=0.1)
    batch, names = batch_of(data), list(perturbed(module).state_dict())
    torch.manual_seed(1)
    module.loss(batch).backward()
    expected = [weight.grad.clone() for weight in module.parameters()]
    module.zero_grad()
    apply_activation_checkpointing(module.trunk, check_fn=lambda part: isinstance(part, Block))
    torch.manual_seed(1)
    module.loss(batch).backward()
    assert all(torch.equal(weight.grad, other) for weight, other in zip(module.parameters(), expected, strict=True))
    assert list(module.state_dict()) == names


@every_module
@pytest.mark.parametrize(
    "encoding", ["learned", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rope", "swin-bias", "t5-bias"))]
)
def test_export(cls, encoding):
    if encoding == "t5-bias" and cls is ViT:
        encoding = "log-cpb"
    module, data = made(cls, encoding)
    perturbed(module).eval()
    inputs = batch_of(data)[: module.inputs]
    expected = module(*inputs)
    free = tuple({0: torch.export.Dim.AUTO} for _ in inputs)
    exported = torch.export.export(module, inputs, dynamic_shapes=free).module()
    torch.testing.assert_close(exported(*inputs), expected, atol=1e-5, rtol=1e-4)
    half = tuple(part[:3] for part in inputs)
    torch.testing.assert_close(exported(*half), module(*half), atol=1e-5, rtol=1e-4)  # and the module is as before


def test_export_needs_an_example_first():
    module, data = made(ViT)
    with pytest.raises(RuntimeError, match="call the model with an example of 16 tokens before"):
        torch.export.export(module, batch_of(data)[:1])


class Spare(PositionalEncoding):
    """Owns a number that no loss reaches."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.used, self.unused = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))

    def reset_parameters(self) -> None:
        nn.init.ones_(self.used)
        nn.init.ones_(self.unused)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        return x + self.used * state.sum(-1, keepdim=True).to(x.dtype)


def losses_on_one_and_two_devices(module: str, encoding: str, folder: str) -> list[float]:
    """The validation losses of one epoch, by names as a command line has them."""
    (cls,) = [cls for cls in MODULES if cls.__name__ == module]
    spare, found = encoding == Spare.__name__, []
    ours = DDPStrategy(process_group_backend="gloo", start_method="fork", find_unused_parameters=spare)
    for options in ({"devices": 1}, {"devices": 2, "strategy": ours}):
        model, data = made(cls, Spare if spare else encoding)
        fit = trainer_in(folder, max_steps=-1, max_epochs=1, limit_train_batches=3, **options)
        fit.fit(model, data)
        found.append(float(fit.callback_metrics["val/loss"]))
    return found


@pytest.mark.slow
@every_module
@pytest.mark.parametrize("encoding", ["learned", Spare.__name__])
def test_ddp(cls, encoding, tmp_path):
    # in a process of its own, as PyTorch forks none that has computed gradients on several threads
    words = [sys.executable, "-m", __name__, cls.__name__, encoding, str(tmp_path)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    one, two = json.loads(ended.stdout.splitlines()[-1])
    assert two == pytest.approx(one, rel=1e-4)  # the batches are dealt out, and no example is lost


def test_the_guide_names_a_test_for_each_row():
    rows = re.findall(r"^\| .* \| `(test_\w+)` \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    tests = {name for name, value in globals().items() if name.startswith("test_") and callable(value)}
    assert len(rows) >= 10
    assert set(rows) <= tests


@pytest.mark.slow
def test_the_python_of_the_guide_runs():
    for snippet in re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        exec(compile(snippet, GUIDE.name, "exec"), {})


if __name__ == "__main__":  # of `test_ddp`
    sys.stdout.write(json.dumps(losses_on_one_and_two_devices(*sys.argv[1:])))
