"""Data: every example counted once, splits by the published rule, prepared once, errors that say what to do."""

import itertools
import os
import pickle
import random
import threading
import time
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from torch import Tensor

from pebench.data import datamodule
from pebench.data.base import Prepared, TensorDataModule
from pebench.data.batches import IGNORE, Batches, Texts, Windows
from pebench.data.hub import load_hub
from pebench.data.images import crop_and_flip
from pebench.data.language import Grammar
from pebench.data.text import SST2, Order
from pebench.errors import UserError
from pebench.tasks import TASKS, sources

import lightning  # isort: skip

EMBEDDED = [name for name, task in TASKS.items() if task.embedded]
SOURCED = [name for name, task in TASKS.items() if not task.embedded]
HUB = [name for name in SOURCED if TASKS[name].source.hub]
SPLITS = ("train", "val", "test")
ENVIRONMENT = ("PEBENCH_DATA_DIR", "PEBENCH_OFFLINE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "HF_HUB_CACHE")

every_source = pytest.mark.parametrize("task", SOURCED)
every_hub_source = pytest.mark.parametrize("task", HUB)


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Neither network nor what this machine has cached or set."""

    def refuse(*_):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5=None: os.path.isfile(path))
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hub" / "datasets")
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


# Small copies of the sources. The text of row i has i + 1 words, so that its length tells which row it was.


def write_table(folder: Path, split: str, **columns: list) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{split}-00000-of-00001.parquet")


def texts(count: int, word: str) -> list[str]:
    return [" ".join([word] * (i + 1)) for i in range(count)]


def write_imdb(data: Path, train: int = 60) -> None:
    write_table(data / "imdb", "train", text=texts(train, "Good"), label=[i % 2 for i in range(train)])
    write_table(data / "imdb", "test", text=["good unseen", "good<br />good"], label=[1, 0])


def write_ag_news(data: Path, train: int = 60) -> None:
    write_table(data / "ag_news", "train", text=texts(train, "news"), label=[i % 4 for i in range(train)])
    write_table(data / "ag_news", "test", text=["News unseen"], label=[3])


def write_newsgroups(data: Path, train: int = 60) -> None:
    write_table(data / "20_newsgroups", "train", text=texts(train, "post"), label=[i % 20 for i in range(train)])
    write_table(data / "20_newsgroups", "test", text=["Post unseen", ""], label=[3, 19])


def write_sst2(data: Path, train: int = 60) -> None:
    sentences = [f"the{i} {text}" for i, text in enumerate(texts(train, "fine"))]  # none of which is in another
    write_table(data / "sst2", "train", sentence=sentences, label=[i % 2 for i in range(train)])
    write_table(data / "sst2", "validation", sentence=["fine unseen"], label=[1])
    write_table(data / "sst2", "test", sentence=["never read"], label=[-1])


WIKITEXT = {
    "train": ["", " = Naïve art = \n", " The cat sat on the mat . \n", " The cat <unk> the mat @-@ maker . \n"] * 9,
    "validation": ["", " A dog — as ever — sat . \n"],
    "test": [" 猫 sat on the mat . \n", ""],
}


def write_wikitext2(data: Path, train: int = 36) -> None:
    for split, lines in WIKITEXT.items():
        write_table(data / "wikitext-2-v1", split, text=lines[:train])


def write_shakespeare(data: Path, train: int = 90) -> None:
    (data / "tiny_shakespeare").mkdir(parents=True, exist_ok=True)
    (data / "tiny_shakespeare" / "input.txt").write_text("abé" * (train // 3) + "aaXbb" + "YaaéZ", encoding="utf-8")


def write_cifar10(data: Path, train: int = 100) -> None:
    folder = data / "cifar-10-batches-py"
    folder.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(0)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        count = train // 5
        images = noise.integers(0, 256, (count, 3072), dtype=np.uint8)
        pickled = pickle.dumps({"data": images, "labels": [i % 10 for i in range(count)]}, protocol=2)
        (folder / name).write_bytes(pickled)
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["x"] * 10}, protocol=2))


WRITERS = {
    "vit-cifar10": write_cifar10, "text-sst2": write_sst2, "text-imdb": write_imdb, "text-agnews": write_ag_news,
    "text-20newsgroups": write_newsgroups, "lm-shakespeare": write_shakespeare, "lm-wikitext2": write_wikitext2,
}  # fmt: skip


def load(task: str, tmp_path: Path, **options) -> TensorDataModule:
    """A set-up data module, from a small copy of its source where it is not embedded."""
    if task in WRITERS:
        if not (tmp_path / "data").is_dir():
            WRITERS[task](tmp_path / "data")
        options["data_dir"] = tmp_path / "data"
    data = datamodule(task, **options)
    data.model_arguments()
    return data


def test_every_source_has_a_small_copy_here():
    assert set(WRITERS) == set(SOURCED)


# Batches

LENGTHS = torch.randint(1, 100, (1003,), generator=torch.Generator().manual_seed(0))
with_and_without_lengths = pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["plain", "by length"])


def epoch(batches: Batches, number: int) -> list[list[int]]:
    batches.set_epoch(number)
    return [batch.tolist() for batch in batches]


@with_and_without_lengths
@pytest.mark.parametrize("size", [1, 8, 64, 1003])
def test_an_epoch_takes_every_example_at_most_once_in_full_batches(lengths, size):
    batches = Batches(1003, size, 0, lengths)
    taken = epoch(batches, 0)
    flat = list(itertools.chain(*taken))
    assert len(taken) == len(batches) == 1003 // size
    assert {len(batch) for batch in taken} == {size}
    assert len(set(flat)) == len(flat)
    assert set(flat) <= set(range(1003))


@with_and_without_lengths
@pytest.mark.parametrize("size", [1, 8, 64, 1003, 5000])
def test_evaluation_takes_every_example_once(lengths, size):
    batches = Batches(1003, size, None, lengths)
    taken = epoch(batches, 0)
    assert len(taken) == len(batches) == -(-1003 // size)
    assert sorted(itertools.chain(*taken)) == list(range(1003))


@with_and_without_lengths
def test_evaluation_is_the_same_in_every_epoch(lengths):
    batches = Batches(1003, 64, None, lengths)
    assert epoch(batches, 0) == epoch(batches, 1)


@with_and_without_lengths
def test_the_order_is_a_function_of_seed_and_epoch_alone(lengths):
    torch.manual_seed(0)
    one, used = Batches(1003, 8, 5, lengths), Batches(1003, 8, 5, lengths)
    for number in (4, 0, 1):
        epoch(used, number)
    next(iter(used))  # an epoch that was broken off
    torch.manual_seed(1)
    assert epoch(one, 3) == epoch(used, 3) == epoch(one, 3)


@with_and_without_lengths
def test_the_order_differs_between_epochs_and_seeds(lengths):
    orders = [epoch(Batches(1003, 8, seed, lengths), number) for seed in (0, 1) for number in (0, 1)]
    assert all(a != b for a, b in itertools.combinations(orders, 2))


@with_and_without_lengths
def test_who_shares_a_batch_differs_between_epochs(lengths):
    batches = Batches(1003, 8, 0, lengths)
    first, second = ({frozenset(batch) for batch in epoch(batches, number)} for number in (0, 1))
    assert len(first & second) < 0.1 * len(first)


@with_and_without_lengths
def test_the_order_leaves_the_global_generator_alone(lengths):
    before = torch.get_rng_state()
    epoch(Batches(1003, 8, 0, lengths), 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_by_length_come_in_no_order_of_length():
    means = [LENGTHS[batch].float().mean().item() for batch in epoch(Batches(1003, 8, 0, LENGTHS), 0)]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.2


@pytest.mark.parametrize("seed", [0, None])
def test_batches_by_length_have_little_padding(seed):
    data = Texts(torch.ones(int(LENGTHS.sum())), LENGTHS, torch.zeros(1003))
    assert data.padding(Batches(1003, 8, seed, LENGTHS)) < 0.02
    assert data.padding(Batches(1003, 8, seed)) > 0.3


def test_padding_is_the_share_of_padded_tokens():
    data = Texts(torch.ones(10), torch.tensor([1, 2, 3, 4]), torch.zeros(4))
    assert data.padding(Batches(4, 2)) == pytest.approx(1 - 10 / (2 * 2 + 2 * 4))


def test_in_the_long_run_every_text_is_trained_on():
    lengths = torch.arange(1, 101)
    batches = Batches(100, 8, 0, lengths)
    taken = {index for number in range(50) for batch in epoch(batches, number) for index in batch}
    assert taken == set(range(100))


@with_and_without_lengths
@pytest.mark.parametrize("start", [0, 1, 124, 125, 126, 300])
def test_a_stream_without_end_is_the_epochs_one_after_the_other(lengths, start):
    batches = Batches(1003, 8, 0, lengths)
    expected = [batch for number in range(4) for batch in epoch(batches, number)]
    endless = Batches(1003, 8, 0, lengths, start)
    for _ in range(2):  # whatever was iterated before
        taken = [batch.tolist() for batch in itertools.islice(endless, 200)]
        assert taken == expected[start : start + 200]
    with pytest.raises(TypeError, match="no length"):
        len(endless)


@pytest.mark.parametrize(("count", "size"), [(0, 1), (7, 8)])
def test_fewer_examples_than_a_batch_are_refused(count, size):
    with pytest.raises(ValueError, match=f"at least batch_size = {size} training examples, got {count}"):
        Batches(count, size, seed=0)


@pytest.mark.parametrize("size", [0, -4])
def test_a_batch_of_nothing_is_refused(size):
    with pytest.raises(ValueError, match=f"batch_size must be 1 or more, got {size}"):
        datamodule("vit-digits", batch_size=size)


class Watcher(lightning.LightningModule):
    """Learns nothing and notes the batches that it is given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen = {"train": [], "val": []}

    def training_step(self, batch, batch_idx):
        self.seen["train"].append(batch)
        return self.weight.sum()

    def validation_step(self, batch, batch_idx):
        self.seen["val"].append(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def watch(data: TensorDataModule, **options) -> dict[str, list]:
    module = Watcher()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet |= {"enable_model_summary": False, "num_sanity_val_steps": 0, "accelerator": "cpu"}
    lightning.Trainer(**quiet, **options).fit(module, datamodule=data)
    return module.seen


def test_a_trainer_gets_each_epochs_own_order(tmp_path):
    data = load("text-order", tmp_path, batch_size=1000)
    seen = watch(data, max_epochs=2, limit_val_batches=0)["train"]
    rows, lengths = data.split("train")
    batches = Batches(8000, 1000, 0, lengths)
    expected = [rows[torch.tensor(index)] for number in (0, 1) for index in epoch(batches, number)]
    assert len(seen) == len(expected) == 16
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[2], b[2]) for a, b in zip(seen, expected, strict=True))


# What a batch holds


@pytest.mark.parametrize("chosen", [[0], [3, 1], [4, 0, 2, 3, 1], [2, 2]])
def test_texts_are_padded_to_the_longest_of_their_batch(chosen):
    lists = [[5, 6, 7], [8], [1, 2, 3, 4, 9], [7, 7], [6, 5, 4, 3]]
    tokens = torch.tensor(list(itertools.chain(*lists)), dtype=torch.int32)
    data = Texts(tokens, torch.tensor([len(x) for x in lists], dtype=torch.int32), torch.tensor([0, 1, 2, 1, 0]))
    padded, lengths, labels = data[torch.tensor(chosen)]
    longest = max(len(lists[i]) for i in chosen)
    assert padded.tolist() == [lists[i] + [0] * (longest - len(lists[i])) for i in chosen]
    assert lengths.tolist() == [len(lists[i]) for i in chosen]
    assert labels.tolist() == [[0, 1, 2, 1, 0][i] for i in chosen]
    assert padded.dtype == lengths.dtype == labels.dtype == torch.long


@pytest.mark.parametrize(("total", "length"), [(20, 4), (21, 4), (22, 4), (10, 1), (5, 4)])
def test_training_windows_start_everywhere(total, length):
    data = Windows(torch.arange(total, dtype=torch.int32), length, stride=1)
    tokens, targets = data[torch.arange(len(data))]
    starts = range(total - length)
    assert tokens.tolist() == [list(range(s, s + length)) for s in starts]
    assert targets.tolist() == [list(range(s + 1, s + length + 1)) for s in starts]
    assert tokens.dtype == targets.dtype == torch.long


@pytest.mark.parametrize("total", [2, 4, 5, 6, 20, 21, 22, 23])
def test_evaluation_windows_ask_for_each_token_once(total):
    data = Windows(torch.arange(total), 4, stride=4)
    tokens, targets = data[torch.arange(len(data))]
    counted = targets != IGNORE
    assert targets[counted].tolist() == list(range(1, total))
    assert torch.equal(tokens[counted] + 1, targets[counted])  # each from the token before it
    assert counted.any(dim=1).all()
    assert tokens.shape == targets.shape == (-(-(total - 1) // 4), 4)


def test_what_the_last_window_lacks_is_ignored():
    assert Windows(torch.arange(7), 4, stride=4)[torch.tensor([1])][1].tolist() == [[5, 6, IGNORE, IGNORE]]


def test_a_text_shorter_than_a_window_is_refused():
    with pytest.raises((UserError, ValueError), match=r"window|max_len"):
        len(Windows(torch.arange(3), 8, stride=1))


# Images


def noisy(count: int = 64, side: int = 8) -> Tensor:
    return torch.randint(0, 256, (count, 3, side, side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def one_by_one(images: Tensor, padding: int, noise: torch.Generator) -> Tensor:
    """`crop_and_flip`, an image at a time; draws in the same order."""
    count, _, side, _ = images.shape
    downs, rights = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=noise).squeeze(2).tolist()
    mirrors = torch.randint(0, 2, (count, 1), generator=noise, dtype=torch.bool).flatten().tolist()
    made = []
    for image, down, right, mirror in zip(images, downs, rights, mirrors, strict=True):
        canvas = torch.zeros(3, side + 2 * padding, side + 2 * padding, dtype=image.dtype)
        canvas[:, padding : padding + side, padding : padding + side] = image
        crop = canvas[:, down : down + side, right : right + side]
        made.append(crop.flip(2) if mirror else crop)
    return torch.stack(made)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("padding", [1, 2, 4])
def test_crops_and_flips_are_those_of_each_image_alone(padding):
    made = crop_and_flip(noisy(), padding, seeded(1))
    assert made.dtype == torch.uint8
    assert made.is_contiguous()
    assert torch.equal(made, one_by_one(noisy(), padding, seeded(1)))


def test_crops_and_flips_are_a_function_of_the_noise():
    one, same, other = (crop_and_flip(noisy(), 2, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_every_shift_and_both_mirrors_occur():
    made, canvas = crop_and_flip(noisy(1).expand(600, -1, -1, -1), 1, seeded(0)), torch.zeros(3, 10, 10)
    canvas[:, 1:9, 1:9] = noisy(1)[0]
    crops = [canvas[:, down : down + 8, right : right + 8] for down in range(3) for right in range(3)]
    possible = torch.stack([version for crop in crops for version in (crop, crop.flip(2))])
    counts = (made[:, None] == possible).all(dim=(2, 3, 4)).sum(0)
    assert counts.sum() == 600
    assert counts.min() > 10


def test_a_crop_leaves_its_argument_alone():
    images = noisy()
    crop_and_flip(images, 2, seeded(0))
    assert torch.equal(images, noisy())


def transferred(data: TensorDataModule, training: bool = True, step: int = 0) -> Tensor:
    data.trainer = SimpleNamespace(training=training, global_step=step, global_rank=0, world_size=1)
    rows, _ = data.split("train")
    return data.on_after_batch_transfer(rows[torch.arange(8)], 0)[0]


def test_augmentation_is_a_function_of_seed_and_step(tmp_path):
    one, other = load("vit-cifar10", tmp_path), load("vit-cifar10", tmp_path, seed=1)
    images = transferred(one, step=3)
    transferred(one, step=5)
    assert torch.equal(images, transferred(one, step=3))
    assert not torch.equal(images, transferred(one, step=4))
    assert not torch.equal(images, transferred(other, step=3))


def test_images_outside_training_are_only_normalised(tmp_path):
    data = load("vit-cifar10", tmp_path)
    mean, std = (torch.tensor(data.prepared.meta[key])[:, None, None] for key in ("mean", "std"))
    expected = (data.prepared.tensors["train_images"][:8] / 255 - mean) / std
    torch.testing.assert_close(transferred(data, training=False), expected)
    assert not torch.allclose(transferred(data, training=True), expected)


def test_a_trainer_augments_training_images_and_no_others(tmp_path):
    data = load("vit-cifar10", tmp_path, batch_size=30)
    seen = watch(data, max_epochs=2)
    plain = {name: data.prepared.tensors[f"{name}_images"] for name in ("train", "val")}
    data.trainer = None
    plain = {name: data.on_after_batch_transfer((images, None), 0)[0] for name, images in plain.items()}
    assert len(seen["train"]) == 6
    assert [batch[0].shape[0] for batch in seen["val"]] == [10, 10]
    assert all(torch.equal(batch[0], plain["val"]) for batch in seen["val"])
    unchanged = [(image == plain["train"]).all(dim=(1, 2, 3)).any() for batch in seen["train"] for image in batch[0]]
    assert sum(unchanged) < 0.1 * len(unchanged)


@pytest.mark.parametrize("task", ["vit-cifar10", "vit-digits"])
def test_training_images_have_zero_mean_and_unit_variance(task, tmp_path):
    data = load(task, tmp_path)
    images, _ = data.on_after_batch_transfer((data.prepared.tensors["train_images"], torch.zeros(1)), 0)
    channels = images.double().transpose(0, 1).flatten(1)
    assert images.dtype == torch.float32
    torch.testing.assert_close(channels.mean(1), torch.zeros(len(channels)).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(channels.std(1, correction=0), torch.ones(len(channels)).double(), atol=1e-5, rtol=0)


# Splits

SIZES = {
    "vit-digits": (1079, 359, 359), "vit-cifar10": (90, 10, 20), "text-order": (8000, 1000, 2000),
    "text-sst2": (54, 6, 1), "text-imdb": (54, 6, 2), "text-agnews": (54, 6, 1),
    "text-20newsgroups": (54, 6, 2),
}  # fmt: skip
CHARACTERS = {"lm-grammar": (200_000, 10_000, 20_000), "lm-shakespeare": (90, 5, 5)}


@pytest.mark.parametrize("task", SIZES)
def test_splits_have_their_sizes(task, tmp_path):
    sizes = load(task, tmp_path).sizes()
    assert tuple(sizes[name] for name in SPLITS) == SIZES[task]


@pytest.mark.parametrize("task", CHARACTERS)
def test_running_texts_have_their_lengths(task, tmp_path):
    data = load(task, tmp_path, max_len=4)
    lengths = CHARACTERS[task]
    assert tuple(len(data.prepared.tensors[name]) for name in SPLITS) == lengths
    assert tuple(data.sizes().values()) == (lengths[0] - 4, -(-(lengths[1] - 1) // 4), -(-(lengths[2] - 1) // 4))


def test_phrases_stay_with_their_sentence():
    made = [f"{a} {b} {c} end{c}" for a in "abc" for b in "defg" for c in "hijkl"]
    phrases = [text.split(" ", 1)[1] for text in made] + [text[:5] for text in made] + ["", "a", "h"]
    every = [*made, *phrases]
    random.Random(0).shuffle(every)
    train, val = SST2.split_train(SST2.__new__(SST2), every)
    assert sorted([*train.tolist(), *val.tolist()]) == [*range(len(every))]
    assert sum(every[i] in made for i in val) == 6
    first = {}  # the sentences are of one length: the first of them that has a phrase has it for good
    for index, text in enumerate(every):
        for part in (text.split(" ", 1)[1], text[:5]) if text in made else ():
            first.setdefault(part, index)
    held = set(val.tolist())
    assert all((index in held) == (first[text] in held) for index, text in enumerate(every) if text in first)


@pytest.mark.parametrize("task", ["text-imdb", "text-agnews", "text-20newsgroups"])
def test_every_tenth_text_is_for_validation(task, tmp_path, monkeypatch):
    monkeypatch.setattr("pebench.data.text.CHUNK", 7)  # so that there are several
    tensors = load(task, tmp_path).prepared.tensors
    classes = {"text-agnews": 4, "text-20newsgroups": 20}.get(task, 2)
    rows = {name: [length - 1 for length in tensors[f"{name}_lengths"].tolist()] for name in ("train", "val")}
    assert rows["val"] == [9, 19, 29, 39, 49, 59]
    assert rows["train"] == [i for i in range(60) if i % 10 != 9]
    for name, kept in rows.items():
        assert tensors[f"{name}_labels"].tolist() == [i % classes for i in kept]


def test_every_tenth_image_is_for_validation(tmp_path):
    tensors = load("vit-cifar10", tmp_path).prepared.tensors
    folder = tmp_path / "data" / "cifar-10-batches-py"
    read = {path.name: pickle.loads(path.read_bytes()) for path in sorted(folder.glob("*_batch*"))}
    images = np.concatenate([read[f"data_batch_{i}"]["data"] for i in range(1, 6)]).reshape(-1, 3, 32, 32)
    kept = [i for i in range(100) if i % 10 != 9]
    assert np.array_equal(tensors["train_images"].numpy(), images[kept])
    assert np.array_equal(tensors["val_images"].numpy(), images[9::10])
    assert np.array_equal(tensors["test_images"].numpy(), read["test_batch"]["data"].reshape(-1, 3, 32, 32))
    assert tensors["train_labels"].tolist() == [i % 20 % 10 for i in kept]
    assert tensors["val_labels"].tolist() == [i % 20 % 10 for i in range(9, 100, 10)]
    assert tensors["test_labels"].tolist() == [i % 10 for i in range(20)]


def test_digits_are_split_by_index_modulo_five(tmp_path):
    from sklearn.datasets import load_digits

    tensors, digits = load("vit-digits", tmp_path).prepared.tensors, load_digits()
    for name, turns in (("train", (0, 1, 2)), ("val", (3,)), ("test", (4,))):
        chosen = [i for i in range(1797) if i % 5 in turns]
        assert tensors[f"{name}_labels"].tolist() == digits.target[chosen].tolist()
        grey = torch.from_numpy(digits.images[chosen] * 255 / 16)
        torch.testing.assert_close(tensors[f"{name}_images"][:, 0].double(), grey, atol=0.5, rtol=0)


def sequences(data: TensorDataModule, name: str) -> list[tuple[int, ...]]:
    rows, lengths = data.split(name)
    return [tuple(text) for text in (part.tolist() for part in rows.tokens.split(lengths.tolist()))]


def test_what_sst2_publishes_for_validation_is_its_test(tmp_path):
    data = load("text-sst2", tmp_path)
    assert [len(text) for text in sequences(data, "test")] == [2]
    assert data.prepared.tensors["test_labels"].tolist() == [1]


@pytest.mark.parametrize(("lengths", "labels"), [([2, 2], [0, 1]), ([2, 3], [0]), ([2, 1, 2], [0, 1])])
def test_texts_that_do_not_fit_together_are_refused(lengths, labels):
    with pytest.raises(ValueError, match="as many lengths as labels, that add up to all tokens"):
        Texts(torch.arange(5), torch.tensor(lengths), torch.tensor(labels))


def test_no_rhyme_is_in_two_splits(tmp_path):
    data = load("text-order", tmp_path)
    parts = [set(sequences(data, name)) for name in SPLITS]
    assert all(a.isdisjoint(b) for a, b in itertools.combinations(parts, 2))


# Texts


def test_a_word_that_training_lacks_is_unknown(tmp_path):
    data = load("text-imdb", tmp_path)
    assert data.prepared.meta["vocab_size"] == 3  # [pad], [unk] and one word, whatever its case
    assert [list(text) for text in sequences(data, "test")] == [[2, 1], [2, 2]]
    assert set(itertools.chain(*sequences(data, "train"))) == {2}


def test_newsgroups_are_downloaded_by_scikit_learn(tmp_path, monkeypatch):
    """Once; then they are read from what was kept, as from a local folder."""
    asked = []

    def fetch(*, data_home, subset, remove, shuffle):
        asked.append((subset, remove, shuffle))
        return SimpleNamespace(
            data=texts(20, "post") if subset == "train" else ["Post unseen", ""], target=np.arange(20) % 20
        )

    def fetch_test(**options):
        posts = fetch(**options)
        posts.target = posts.target[: len(posts.data)]
        return posts

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch_test)
    monkeypatch.setattr(sources, "reachable", lambda url: url == "https://figshare.com")
    data = datamodule("text-20newsgroups", max_len=8)
    data.model_arguments()
    assert tuple(data.sizes().values()) == (18, 2, 2)
    assert sequences(data, "test") == [(2, 1), (1,)]
    assert data.prepared.tensors["test_labels"].tolist() == [0, 1]
    datamodule("text-20newsgroups", max_len=4).model_arguments()
    assert asked == [(split, ("headers", "footers", "quotes"), False) for split in ("test", "train")]


def test_a_word_of_validation_alone_is_unknown(tmp_path):
    rows = ["plain words"] * 9 + ["plain rare"]
    write_table(tmp_path / "data" / "imdb", "train", text=rows, label=[0] * 10)
    write_table(tmp_path / "data" / "imdb", "test", text=["rare words"], label=[0])
    data = load("text-imdb", tmp_path, batch_size=2)
    assert data.prepared.meta["vocab_size"] == 4
    assert sequences(data, "val")[0][1] == sequences(data, "test")[0][0] == 1


def test_the_vocabulary_keeps_the_most_frequent_words(tmp_path):
    write_table(tmp_path / "data" / "imdb", "train", text=["a, b b c c c"] * 10, label=[0] * 10)
    write_table(tmp_path / "data" / "imdb", "test", text=["c b a"], label=[0])
    data = load("text-imdb", tmp_path, vocab_size=4, batch_size=2)
    assert sequences(data, "test") == [(2, 3, 1)]
    assert data.prepared.meta["vocab_size"] == 4


def test_long_texts_keep_their_beginning_and_empty_ones_are_unknown(tmp_path):
    write_table(tmp_path / "data" / "imdb", "train", text=["a b", "b a", "a"] + ["a"] * 7, label=[0] * 10)
    write_table(tmp_path / "data" / "imdb", "test", text=["b a a a", "", " \n", "a"], label=[1, 0, 0, 1])
    data = load("text-imdb", tmp_path, max_len=2, batch_size=2)
    assert sequences(data, "test") == [(3, 2), (1,), (1,), (2,)]
    assert data.prepared.tensors["test_labels"].tolist() == [1, 0, 0, 1]


# Rhyme schemes


@pytest.fixture
def rhymes() -> tuple[list[list[int]], list[int]]:
    data = Order(max_len=16, vocab_size=10)
    rows = data.generate(6000, seeded(7)).tolist()
    return [[token for token in row[1:] if token] for row in rows], [row[0] for row in rows]


def scheme(stanza: list[int]) -> int:
    a, b, c, d = stanza
    assert len(set(stanza)) == 2
    return [a == b and c == d, a == c and b == d, a == d and b == c].index(True)


def test_the_order_of_every_stanza_is_the_label(rhymes):
    for text, label in zip(*rhymes, strict=True):
        assert {scheme(text[i : i + 4]) for i in range(0, len(text), 4)} == {label}


def test_a_rhyme_fills_half_of_the_length_or_more(rhymes):
    lengths = [len(text) for text in rhymes[0]]
    assert set(lengths) == {8, 12, 16}
    assert set(itertools.chain(*rhymes[0])) == set(range(2, 10))


def test_read_backwards_a_rhyme_keeps_its_label(rhymes):
    for text, label in zip(*rhymes, strict=True):
        backwards = text[::-1]
        assert all(scheme(backwards[i : i + 4]) == label for i in range(0, len(text), 4))


def test_every_bag_of_tokens_occurs_with_every_label():
    """The same tokens in another scheme are another text of the data set: of a small one all are there."""
    rows = Order(max_len=8, vocab_size=5).generate(6000, seeded(7)).tolist()
    bags = [{tuple(sorted(row[1:])) for row in rows if row[0] == label} for label in range(3)]
    assert bags[0] == bags[1] == bags[2]
    assert len(rows) == 3 * (6 + 6 * 6)  # a stanza or two, of two of three words, the first one and the other


def test_labels_are_a_third_each_whatever_the_tokens(rhymes):
    pairs = list(zip(*rhymes, strict=True))
    subsets = [pairs, [p for p in pairs if len(p[0]) == 8], *([p for p in pairs if t in p[0]] for t in range(2, 10))]
    for subset in subsets:
        for label in range(3):
            share = sum(chosen == label for _, chosen in subset) / len(subset)
            assert share == pytest.approx(1 / 3, abs=4 * (2 / 9 / len(subset)) ** 0.5)


def test_the_first_token_says_nothing_of_the_label(rhymes):
    table = np.zeros((3, 8))
    for text, label in zip(*rhymes, strict=True):
        table[label, text[0] - 2] += 1
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    assert ((table - expected) ** 2 / expected).sum() < 40  # chi-square, 14 degrees of freedom: one in 4,000


@pytest.mark.parametrize("options", [{"max_len": 3}, {"vocab_size": 3}])
def test_too_little_room_for_a_rhyme_is_said(options):
    with pytest.raises(UserError, match=next(iter(options))):
        datamodule("text-order", **options).prepare_data()


# Sentences of the grammar

NUMBER = {
    word: plural
    for pair in (*Grammar.NOUNS, *Grammar.TRANSITIVE, *Grammar.INTRANSITIVE)
    for plural, word in enumerate(pair)
}
NOUNS, TRANSITIVE, INTRANSITIVE = (
    {word for pair in pairs for word in pair} for pairs in (Grammar.NOUNS, Grammar.TRANSITIVE, Grammar.INTRANSITIVE)
)


class Parser:
    """Reads a sentence from left to right and insists that every verb agrees with its subject."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.at = words, 0

    def peek(self) -> str:
        return self.words[self.at]

    def take(self, allowed) -> str:
        word = self.peek()
        assert word in allowed, f"{word} at {self.at} of {' '.join(self.words)}"
        self.at += 1
        return word

    def sentence(self) -> None:
        number = self.noun_phrase()
        self.verb_phrase(number)
        if self.peek() == "and":
            self.take(["and"])
            self.verb_phrase(number)
        self.take(["."])
        assert self.at == len(self.words)

    def noun_phrase(self) -> int:
        self.take(["the"])
        if self.peek() in Grammar.ADJECTIVES:
            self.take(Grammar.ADJECTIVES)
        number = NUMBER[self.take(NOUNS)]
        if self.peek() == "near":
            self.take(["near"])
            self.noun_phrase()
        elif self.peek() == "that":
            self.take(["that"])
            if self.peek() == "the":
                self.verb(self.noun_phrase(), TRANSITIVE)
            else:
                self.verb_phrase(number)
        return number

    def verb(self, number: int, allowed: set[str]) -> str:
        word = self.take(allowed)
        assert NUMBER[word] == number, f"{word} at {self.at} of {' '.join(self.words)}"
        return word

    def verb_phrase(self, number: int) -> None:
        if self.verb(number, TRANSITIVE | INTRANSITIVE) in TRANSITIVE:
            self.noun_phrase()


@pytest.mark.parametrize("seed", range(3))
def test_every_verb_agrees_with_its_subject(seed):
    noise = random.Random(seed)
    for _ in range(2000):
        Parser(Grammar().sentence(noise)).sentence()


@pytest.mark.parametrize("sentence", ["the cats sleeps .", "the cats that the dog see sleep .", "the cat that see ."])
def test_the_parser_here_sees_disagreement(sentence):
    with pytest.raises((AssertionError, KeyError)):
        Parser(sentence.split()).sentence()


def test_some_verbs_follow_a_noun_of_the_other_number():
    noise, misled = random.Random(0), 0
    for _ in range(1000):
        words = Grammar().sentence(noise)
        pairs = itertools.pairwise(words)
        misled += any(a in NOUNS and b in NUMBER and b not in NOUNS and NUMBER[a] != NUMBER[b] for a, b in pairs)
    assert misled > 100


def test_the_words_of_the_grammar_fit_their_bytes(tmp_path):
    data = load("lm-grammar", tmp_path)
    assert len(data.describe()["token_bytes"]) == 35
    assert set(data.prepared.tensors["train"].unique().tolist()) == set(range(35))
    tokens = data.prepared.tensors["test"]
    forms = [form for pair in (*Grammar.NOUNS, *Grammar.TRANSITIVE, *Grammar.INTRANSITIVE) for form in pair]
    words = [*Grammar.FUNCTION_WORDS, *Grammar.ADJECTIVES, *forms]
    text = " ".join(words[token] for token in tokens.tolist()) + " "
    assert torch.tensor(data.describe()["token_bytes"])[tokens.long()].sum() == len(text.encode())


@pytest.mark.parametrize("task", ["lm-grammar", "lm-shakespeare"])
def test_too_small_a_vocabulary_is_said(task, tmp_path):
    with pytest.raises(UserError, match=r"data\.vocab_size must be at least \d+ here, got 3"):
        load(task, tmp_path, vocab_size=3)


def test_a_vocabulary_has_room_for_what_is_no_word(tmp_path):
    write_imdb(tmp_path / "data")
    with pytest.raises(UserError, match=r"data\.vocab_size must be at least 2 here, got 1"):
        load("text-imdb", tmp_path, vocab_size=1)


# Running text


def test_the_bytes_of_byte_pair_tokens_are_those_of_the_text(tmp_path):
    data = load("lm-wikitext2", tmp_path, vocab_size=280)
    sizes = torch.tensor(data.describe()["token_bytes"])
    assert data.describe()["vocab_size"] == len(sizes) == 280
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        text = "".join(WIKITEXT[split])
        assert sizes[data.prepared.tensors[name].long()].sum() == len(text.encode())
    assert len(data.prepared.tensors["train"]) < len("".join(WIKITEXT["train"])) / 2  # it has learned to merge


def test_the_byte_pairs_are_those_of_the_training_text(tmp_path):
    data = load("lm-wikitext2", tmp_path, vocab_size=280)
    sizes, tokens = torch.tensor(data.describe()["token_bytes"]), data.prepared.tensors
    assert sizes[tokens["train"].long()].float().mean() > 2
    assert (sizes[tokens["test"].long()][:4] == 1).all()  # " 猫": no merge in training makes it


def test_characters_that_training_lacks_share_token_zero(tmp_path):
    data = load("lm-shakespeare", tmp_path)
    tensors = data.prepared.tensors
    assert tensors["train"].tolist() == [1, 2, 3] * 30
    assert tensors["val"].tolist() == [1, 1, 0, 2, 2]
    assert tensors["test"].tolist() == [0, 1, 1, 3, 0]
    assert data.describe()["token_bytes"] == [1, 1, 1, 2] + [0] * 62  # of 66, as declared
    assert data.describe()["vocab_size"] == 66


def test_a_text_is_cut_in_90_5_and_5_percent(tmp_path):
    path = tmp_path / "data" / "tiny_shakespeare" / "input.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(chr(48 + i % 64) for i in range(1000)), encoding="utf-8")
    data = load("lm-shakespeare", tmp_path)
    parts = [data.prepared.tensors[name].tolist() for name in SPLITS]
    assert [len(part) for part in parts] == [900, 50, 50]
    assert [token for part in parts for token in part] == [i % 64 + 1 for i in range(1000)]


# Prepared once

GOLDEN = {
    "vit-digits": "68dc3747760b598793aec043e2710fffeefda1780ccf8cd495994feca3587abb",
    "text-order": "b4c821223d7640f286c021892fa2aeb108b2b32bd76a863d85be0585ab0b1347",
    "lm-grammar": "95b8e4d4dae1c30ba8abc2c68e4957c7d9472c365ab00197d3d984e34c0eedce",
}


@pytest.mark.parametrize("task", EMBEDDED)
def test_the_embedded_data_never_change(task, tmp_path):
    """A change here makes old results incomparable: raise PROTOCOL_VERSION and PREPARATION."""
    data = load(task, tmp_path)
    meta = {} if task == "vit-digits" else data.prepared.meta  # mean and deviation may round differently elsewhere
    assert Prepared(data.prepared.tensors, meta).fingerprint == GOLDEN[task]


def test_equal_content_has_an_equal_fingerprint():
    one = Prepared({"a": torch.arange(6).view(2, 3), "b": torch.ones(1)}, {"x": 1, "y": [2]})
    same = Prepared({"b": torch.ones(1), "a": torch.arange(6).view(3, 2).T.contiguous().view(2, 3)}, {"y": [2], "x": 1})
    again = Prepared({"b": torch.ones(1), "a": torch.arange(6).view(3, 2).view(2, 3)}, {"y": [2], "x": 1})
    assert one.fingerprint == again.fingerprint != same.fingerprint
    assert len(one.fingerprint) == 64


@pytest.mark.parametrize(
    "other",
    [
        Prepared({"b": torch.arange(6)}, {"x": 1}),
        Prepared({"a": torch.arange(6).int()}, {"x": 1}),
        Prepared({"a": torch.arange(6).view(2, 3)}, {"x": 1}),
        Prepared({"a": torch.arange(6).flip(0)}, {"x": 1}),
        Prepared({"a": torch.arange(6)}, {"x": 2}),
        Prepared({"a": torch.arange(6), "b": torch.ones(1)}, {"x": 1}),
    ],
    ids=["name", "type", "shape", "value", "meta", "one more"],
)
def test_different_content_has_a_different_fingerprint(other):
    assert other.fingerprint != Prepared({"a": torch.arange(6)}, {"x": 1}).fingerprint


def must_not_read(self) -> None:
    raise AssertionError("the source was read again")


@pytest.mark.parametrize("task", TASKS)
def test_data_are_prepared_once(task, tmp_path, monkeypatch):
    first = load(task, tmp_path)
    monkeypatch.setattr(type(first), "read", must_not_read)
    second = load(task, tmp_path, seed=1, batch_size=3)  # what decides nothing about the tensors
    assert second.fingerprint == first.fingerprint == Prepared(**vars(first.prepared)).fingerprint
    assert all(torch.equal(first.prepared.tensors[n], t) for n, t in second.prepared.tensors.items())
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".pt"]


@every_source
def test_a_changed_source_is_prepared_anew(task, tmp_path):
    first = load(task, tmp_path)
    file = first.file
    WRITERS[task](tmp_path / "data", train=30)
    second = load(task, tmp_path)
    assert second.file != file
    assert second.fingerprint != first.fingerprint
    assert sum(t.numel() for t in second.prepared.tensors.values()) < sum(
        t.numel() for t in first.prepared.tensors.values()
    )


@pytest.mark.parametrize(("task", "setting"), [("text-order", "vocab_size"), ("text-imdb", "max_len")])
def test_a_changed_setting_is_prepared_anew(task, setting, tmp_path):
    assert load(task, tmp_path, **{setting: 8}).file != load(task, tmp_path, **{setting: 12}).file


def test_settings_that_change_no_tensor_share_a_file(tmp_path):
    assert load("lm-grammar", tmp_path, max_len=8).file == load("lm-grammar", tmp_path, max_len=16).file
    assert datamodule("vit-digits", patch_size=2).file == datamodule("vit-digits", patch_size=4).file


@pytest.mark.parametrize("damage", [0.0, 0.3, 0.9, 0.999], ids="cut to {:.1%}".format)
def test_a_file_that_was_cut_short_is_made_anew(damage, tmp_path):
    first = load("vit-digits", tmp_path)
    fingerprint, content = first.fingerprint, first.file.read_bytes()
    first.file.unlink()
    first.file.write_bytes(content[: int(damage * len(content))])
    with pytest.raises(RuntimeError, match="digits is not prepared"):
        datamodule("vit-digits").setup()
    assert load("vit-digits", tmp_path).fingerprint == fingerprint
    assert len(first.file.read_bytes()) == len(content)


@pytest.mark.parametrize("content", [b"not a file of torch", b"\x80\x02}q\x00.", bytes(1000)], ids=["text", "old", "0"])
def test_a_file_that_is_something_else_is_made_anew(content, tmp_path):
    file = datamodule("vit-digits").file
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert load("vit-digits", tmp_path).sizes()["train"] == 1079


def test_a_preparation_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(values, file):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="no space left"):
        datamodule("vit-digits").prepare_data()
    assert list((tmp_path / "cache").iterdir()) == []


def test_two_processes_of_one_number_prepare_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))
    replaced, written = os.replace, set()
    monkeypatch.setattr(os, "replace", lambda source, target: (written.add(source), replaced(source, target)))
    for _ in range(2):
        data = datamodule("vit-digits")
        data.prepare_data()
        data.file.unlink()
    assert len(written) == 2


@pytest.mark.parametrize("use", [lambda data: data.prepared, lambda data: data.split("train"), lambda d: d.setup()])
def test_data_that_are_not_prepared_say_so(use):
    with pytest.raises(RuntimeError, match=r"prepare_data\(\)"):
        use(datamodule("vit-digits"))


def test_the_data_folder_can_be_named_by_the_environment(tmp_path, monkeypatch):
    write_imdb(tmp_path / "data")
    monkeypatch.setenv("PEBENCH_DATA_DIR", str(tmp_path / "data"))
    data = datamodule("text-imdb")
    data.prepare_data()
    data.setup()
    assert data.prepared.meta["vocab_size"] == 3


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PEBENCH_CACHE_DIR": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/pebench"),
        ({"HOME": "/c"}, "/c/.cache/pebench"),
    ],
)
def test_the_cache_lies_where_the_environment_says(environment, expected, monkeypatch):
    for name in ("PEBENCH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert sources.cache_folder() == Path(expected)


# What cannot be had


@every_source
def test_a_local_folder_without_the_data_says_what_it_lacks(task, tmp_path):
    with pytest.raises(UserError, match="is not in the local data folder: expected") as caught:
        datamodule(task, tmp_path).prepare_data()
    assert str(tmp_path / TASKS[task].source.local) in str(caught.value)
    assert "leave out --data-dir" in str(caught.value)


@every_source
def test_without_network_both_ways_out_are_named(task, monkeypatch):
    monkeypatch.setattr(sources, "reachable", lambda url: False)
    with pytest.raises(UserError, match="the network cannot be reached") as caught:
        datamodule(task).prepare_data()
    assert "run once with network access" in str(caught.value)
    assert f"pass --data-dir DIR (or set PEBENCH_DATA_DIR) with a copy in DIR/{TASKS[task].source.local}" in str(
        caught.value
    )


@every_source
@pytest.mark.parametrize("flag", ["PEBENCH_OFFLINE", "HF_HUB_OFFLINE"])
def test_a_forbidden_network_is_not_asked(task, flag, monkeypatch):
    monkeypatch.setenv(flag, "1")
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("asked"))
    with pytest.raises(UserError, match=r"the network is forbidden \(--offline\)"):
        datamodule(task).prepare_data()


@pytest.mark.parametrize("told", [None, "0", "1"])
def test_what_the_user_says_of_the_hub_is_left_as_it_is(told, monkeypatch):
    if told is not None:
        monkeypatch.setenv("HF_HUB_OFFLINE", told)
    monkeypatch.setattr(sources, "check_available", lambda *_: None)
    monkeypatch.setattr(sources, "downloaded", lambda source: True)
    monkeypatch.setattr(sources, "reachable", lambda url: False)
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: {})
    with pytest.raises(UserError, match="train is missing"):
        load_hub(TASKS["text-sst2"].source, None, {"train"}, {"sentence"})
    assert os.environ.get("HF_HUB_OFFLINE") == told


@pytest.mark.parametrize(
    ("value", "forbidden"), [("1", True), ("TRUE", True), ("yes", True), ("on", True), ("0", False), ("", False)]
)
def test_offline_is_said_in_the_usual_words(value, forbidden, monkeypatch):
    monkeypatch.setenv("PEBENCH_OFFLINE", value)
    assert sources.offline() is forbidden


@every_source
def test_data_that_are_there_need_no_network(task, tmp_path, monkeypatch):
    WRITERS[task](tmp_path / "data")
    monkeypatch.setenv("PEBENCH_OFFLINE", "1")
    monkeypatch.setattr(sources, "reachable", lambda url: pytest.fail("asked"))
    assert load(task, tmp_path).sizes()["train"] > 0


ANSWERS = {
    "a page": (None, True),
    "a refusal": (urllib.error.HTTPError("http://x", 403, "no", None, None), True),
    "no such name": (urllib.error.URLError("name"), False),
    "a reset": (ConnectionResetError(), False),
    "silence": (TimeoutError(), False),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=list(ANSWERS))
def test_a_server_is_there_if_it_answers_at_all(answer, expected, monkeypatch):
    def urlopen(request, timeout):
        if answer is not None:
            raise answer
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    assert sources.reachable("http://x") is expected


@every_source
def test_a_network_that_hangs_is_given_up_in_time(task, monkeypatch):
    monkeypatch.setattr(sources, "PROBE_S", 0.05)
    test_is_over = threading.Event()
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: SimpleNamespace(close=test_is_over.wait))
    started = time.perf_counter()
    with pytest.raises(UserError, match="the network cannot be reached"):
        sources.check_available(TASKS[task].source, None)
    test_is_over.set()
    assert time.perf_counter() - started < 2


def test_a_mirror_of_the_hub_is_asked_in_its_place(monkeypatch):
    asked = []
    monkeypatch.setattr(sources, "reachable", asked.append)
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    for source in (sources.IMDB, sources.SHAKESPEARE):
        with pytest.raises(UserError):
            sources.check_available(source, None)
    assert asked == ["https://mirror.example", sources.SHAKESPEARE.url]


@every_hub_source
def test_what_the_hubs_cache_holds_is_available(task, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "reachable", lambda url: False)
    source = TASKS[task].source
    folder = f"datasets--{source.hub.replace('/', '--')}/snapshots/{source.pin}"
    (tmp_path / "hub" / "hub" / folder).mkdir(parents=True)
    sources.check_available(source, None)


def test_the_hubs_cache_is_where_the_user_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "reachable", lambda url: False)
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = f"huggingface/hub/datasets--stanfordnlp--imdb/snapshots/{sources.IMDB.pin}"
    (tmp_path / folder).mkdir(parents=True)
    sources.check_available(sources.IMDB, None)


def test_what_was_downloaded_before_is_available(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "reachable", lambda url: False)
    write_shakespeare(tmp_path / "cache" / "downloads")
    assert datamodule("lm-shakespeare").model_arguments()["token_bytes"][:4] == [1, 1, 1, 2]


@every_hub_source
def test_a_damaged_table_is_said_to_be_damaged(task, tmp_path):
    WRITERS[task](tmp_path)
    path = next((tmp_path / TASKS[task].source.folder).glob("train*"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=f"cannot be read as the data set {TASKS[task].source.title}"):
        datamodule(task, tmp_path).prepare_data()


@every_hub_source
def test_a_table_without_a_split_is_said_to_lack_it(task, tmp_path):
    WRITERS[task](tmp_path)
    for path in (tmp_path / TASKS[task].source.folder).iterdir():
        if not path.name.startswith("train"):
            path.unlink()
    with pytest.raises(UserError, match="lacks what the data set"):
        datamodule(task, tmp_path).prepare_data()


@pytest.mark.parametrize("lost", ["data_batch_3", "test_batch"])
def test_images_that_lack_a_file_are_said_to_be_incomplete(lost, tmp_path):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / lost).unlink()
    with pytest.raises(UserError, match="is damaged or incomplete"):
        datamodule("vit-cifar10", tmp_path).prepare_data()


def test_images_of_another_checksum_are_refused(tmp_path, monkeypatch):
    from torchvision.datasets.utils import check_integrity

    write_cifar10(tmp_path)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", check_integrity)
    with pytest.raises(UserError, match="is damaged or incomplete"):
        datamodule("vit-cifar10", tmp_path).prepare_data()


@pytest.mark.parametrize("error", [urllib.error.URLError("gone"), RuntimeError("invalid hash value")])
def test_a_download_that_fails_is_said_to_have_failed(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(sources, "reachable", lambda url: True)
    monkeypatch.setattr("torch.hub.download_url_to_file", fail)
    with pytest.raises(UserError, match="could not be downloaded"):
        datamodule("lm-shakespeare").prepare_data()


def test_a_download_goes_to_the_cache_under_its_checksum(tmp_path, monkeypatch):
    def download(url, path, hash_prefix, progress):
        assert (url, hash_prefix) == (sources.SHAKESPEARE.url, sources.SHAKESPEARE.pin)
        write_shakespeare(Path(path).parents[1])

    monkeypatch.setattr(sources, "reachable", lambda url: True)
    monkeypatch.setattr("torch.hub.download_url_to_file", download)
    datamodule("lm-shakespeare").prepare_data()
    assert (tmp_path / "cache" / "downloads" / "tiny_shakespeare" / "input.txt").is_file()


@every_hub_source
def test_the_hub_is_asked_for_the_pinned_revision(task, monkeypatch):
    asked, source = [], TASKS[task].source

    def load_dataset(*where, **options):
        asked.append((*where, options))
        raise OSError("enough")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    monkeypatch.setattr(sources, "reachable", lambda url: True)
    with pytest.raises(UserError, match="enough"):
        load_hub(source, None, set(), set())
    assert asked == [(source.hub, source.config, {"revision": source.pin})]


def test_no_byte_pair_is_made_of_other_splits(tmp_path):
    write_wikitext2(tmp_path / "data")
    for split in ("validation", "test"):
        write_table(tmp_path / "data" / "wikitext-2-v1", split, text=["zqzqzq"] * 200)
    data = load("lm-wikitext2", tmp_path, vocab_size=280)
    assert data.prepared.tensors["val"].shape == data.prepared.tensors["test"].shape == (1200,)  # byte by byte


def test_images_of_cifar_move_by_up_to_four_pixels(tmp_path):
    data = load("vit-cifar10", tmp_path)
    data.trainer = SimpleNamespace(training=True, global_step=0, global_rank=0, world_size=1)
    white = torch.full((300, 3, 32, 32), 255, dtype=torch.uint8)
    moved = data.on_after_batch_transfer((white, torch.zeros(300)), 0)[0][:, 0] < 0  # what is black
    assert {int(rows.sum()) for rows in moved.all(dim=2)} == {int(columns.sum()) for columns in moved.all(dim=1)}
    assert max(int(rows.sum()) for rows in moved.all(dim=2)) == 4


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_batches_for_a_gpu_are_pinned_and_no_others(tmp_path, kind):
    data = load("lm-grammar", tmp_path)
    data.trainer = SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device(kind)), global_rank=0, world_size=1
    )
    loaders = [data.train_dataloader(), data.val_dataloader(), data.test_dataloader(), *dict(data.beyond([2])).values()]
    assert [loader.pin_memory for loader in loaders] == [kind == "cuda"] * 5
    data.trainer = None
    assert not data.train_dataloader().pin_memory


def test_padding_is_told_of_training_texts(tmp_path):
    data = load("text-imdb", tmp_path, batch_size=7)
    texts, lengths = data.split("train")
    assert data.padding() == texts.padding(Batches(54, 7, data.seed, lengths)) > 0
