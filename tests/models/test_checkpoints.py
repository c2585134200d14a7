"""A module is built again from its checkpoint alone, and copies and pickles are the module."""

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import lightning
import pytest
import torch
from torch import Tensor, nn

from pebench.encodings import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.base import SequenceModule

SMALL = {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 24, "dropout": 0.1, "learning_rate": 0.5, "seed": 3}
SHAPES = {
    ViT: {"image_size": 8, "patch_size": 2, "channels": 1, "num_classes": 5},
    TextClassifier: {"vocab_size": 11, "max_len": 8, "num_classes": 5},
    LanguageModel: {"vocab_size": 11, "max_len": 8, "token_bytes": list(range(11))},
}
BATCHES = {
    ViT: (torch.ones(2, 1, 8, 8), torch.tensor([0, 4])),
    TextClassifier: (torch.arange(16).view(2, 8) % 11, torch.tensor([8, 3]), torch.tensor([0, 4])),
    LanguageModel: (torch.arange(16).view(2, 8) % 11, torch.arange(1, 17).view(2, 8) % 11),
}
every_module = pytest.mark.parametrize("cls", SHAPES, ids=lambda cls: cls.__name__)


class Shifting(PositionalEncoding):
    """An encoding of the user's, in a module and registered by no name."""

    def __init__(self, spec: EncodingSpec, *, shift: float = 1.0) -> None:
        super().__init__(spec)
        self.shift = shift

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        return x + self.shift * state[:, :1]


def build(cls: type[SequenceModule], encoding: object, encoding_args: dict | None = None) -> SequenceModule:
    module = cls(encoding, encoding_args, **SHAPES[cls], **SMALL).eval()
    nn.init.normal_(module.head.weight, generator=torch.Generator().manual_seed(0))  # or every loss is the same
    return module


def save(module: SequenceModule, path: Path) -> Path:
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.strategy.connect(module)
    trainer.save_checkpoint(path)
    return path


@every_module
@pytest.mark.parametrize(
    ("encoding", "encoding_args", "kept"),
    [
        ("learned", None, "learned"),
        ("rope", {"theta": 50.0}, "rope"),
        ("rope(theta=500.0)", None, "rope(theta=500.0)"),
        (load_encoding("add"), {"ratio": 0.5}, "add"),
        (Shifting, {"shift": 2.0}, f"{__name__}:Shifting"),
    ],
    ids=["name", "options", "name with options", "registered class", "class"],
)
def test_a_checkpoint_is_enough_to_load_a_module(cls, encoding, encoding_args, kept, tmp_path):
    module = build(cls, encoding, encoding_args)
    path = save(module, tmp_path / "module.ckpt")
    held = torch.load(path, weights_only=True)["hyper_parameters"]  # weights_only: plain values, no classes
    assert held["encoding"] == kept
    loaded = cls.load_from_checkpoint(path).eval()
    assert torch.equal(loaded.loss(BATCHES[cls]), module.loss(BATCHES[cls]))
    assert (loaded.learning_rate, loaded.seed, type(loaded.trunk.encoding)) == (0.5, 3, type(module.trunk.encoding))
    assert loaded.hparams == module.hparams
    assert set(loaded.metrics) == set(module.metrics)


@every_module
def test_an_argument_beside_a_checkpoint_comes_before_its_own(cls, tmp_path):
    path = save(build(cls, "rope"), tmp_path / "module.ckpt")
    assert cls.load_from_checkpoint(path, learning_rate=0.25).learning_rate == 0.25


def test_an_oblong_image_has_a_grid_of_its_own_shape(tmp_path):
    model = ViT("learned", image_size=(32, 64), patch_size=8, d_model=16, num_layers=1, num_heads=2)
    images = torch.randn(2, 3, 32, 64, generator=torch.Generator().manual_seed(0))
    assert model.trunk.encoding.spec.extent == (4, 8)
    loaded = ViT.load_from_checkpoint(save(model, tmp_path / "module.ckpt"))
    assert torch.equal(loaded(images), model(images))
    with pytest.raises(ValueError, match="knows the integer positions below"):
        model(images.mT)  # as many patches, but in other places


@pytest.mark.parametrize("size", [30, (32, 30), (30, 32)])
def test_patches_must_tile_both_sides_of_an_image(size):
    with pytest.raises(ValueError, match="patch_size must be positive and divide the image's side"):
        ViT("add", image_size=size, patch_size=8)


class Larger(ViT):
    """A user's module, with an argument of its own."""

    def __init__(self, times: int, **options) -> None:
        super().__init__(**{**options, "d_model": 8 * times, "num_heads": 2, "num_layers": 1, "image_size": 8})


def test_a_subclass_is_loaded_with_its_own_arguments(tmp_path):
    path = save(Larger(times=3), tmp_path / "module.ckpt")
    assert Larger.load_from_checkpoint(path).trunk.d_model == 24


def saved_whole(module: SequenceModule) -> SequenceModule:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES: dict[str, Callable[[SequenceModule], SequenceModule]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "torch.save": saved_whole,
}


def serving(name: str) -> list[type[SequenceModule]]:
    encoding = load_encoding(name)
    image, text = [ViT] * (2 in encoding.axes), [TextClassifier] * (not encoding.causal_only)
    return image + ([*text, LanguageModel] if 1 in encoding.axes else [])


@pytest.mark.parametrize("name", encoding_cards())
def test_every_encoding_lets_its_module_be_copied(name):
    for cls in serving(name):
        module, batch = build(cls, name), BATCHES[cls]
        module.loss(batch).backward()  # a module that has been used: its cache is full, and it has gradients
        expected = module.loss(batch)
        for way, copied in COPIES.items():
            assert torch.equal(copied(module).loss(batch), expected), (cls.__name__, way)


def test_a_copy_begins_with_an_empty_cache():
    module = build(ViT, "t5-bias")
    module.loss(BATCHES[ViT])
    assert module.trunk.cache.checked_lengths == {16}
    assert copy.deepcopy(module).trunk.cache.checked_lengths == set()
