"""Small copies of the sources, data modules made of them, and what several data tests use."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

from pebench.data import datamodule
from pebench.data.base import TensorDataModule
from pebench.data.batches import Batches
from pebench.tasks import TASKS

import lightning  # isort: skip

EMBEDDED = [name for name, task in TASKS.items() if task.embedded]
SOURCED = [name for name, task in TASKS.items() if not task.embedded]
HUB = [name for name in SOURCED if TASKS[name].source.hub]
SPLITS = ("train", "val", "test")

every_source = pytest.mark.parametrize("task", SOURCED)
every_hub_source = pytest.mark.parametrize("task", HUB)

# Small copies of the sources. The text of row i has i + 1 words, so that its length tells which row it was.


def write_table(folder: Path, split: str, **columns: list) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{split}-00000-of-00001.parquet")


def texts(count: int, word: str) -> list[str]:
    return [" ".join([word] * (i + 1)) for i in range(count)]


def write_imdb(data: Path, train: int = 60) -> None:
    write_table(data / "imdb", "train", text=texts(train, "Good"), label=[i % 2 for i in range(train)])
    write_table(data / "imdb", "test", text=["good unseen", "good<br />good"], label=[1, 0])


def reviews(split: str, count: int) -> list[str]:
    """Reviews that have no words in common."""
    return [" ".join(f"{split}{i}.{j}<br />" for j in range(i + 1)) for i in range(count)]


def write_reviews(data: Path, train: int = 60) -> None:
    for split, count in (("train", train), ("test", train // 3)):
        write_table(data / "imdb", split, text=reviews(split, count), label=[i % 2 for i in range(count)])


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


def article(name: str, lines: int, end: str = "") -> list[str]:
    """An article of WikiText with a section, a table's cell, and lines whose numbers tell which they are."""
    text = [f" {name} @-@ {i} is a <unk> of ten words or more {end}. \n" for i in range(lines)]
    return ["", f" = {name} = \n", "", *text[:2], "", f" = = {name} 's section = = \n", "", " a cell \n", *text[2:]]


def write_pairs(data: Path, train: int = 60) -> None:
    # Words that training lacks are unknown: the last one tells the splits apart.
    for split, articles, end in (
        ("train", train // 6, "early late "),
        ("validation", 3, "early "),
        ("test", 3, "late "),
    ):
        lines = [line for i in range(articles) for line in article(f"{split}{i}", 4, end)]
        write_table(data / "wikitext-2-v1", split, text=lines)


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
    "lm-imdb": write_reviews, "text-pairs": write_pairs,
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


def sequences(data: TensorDataModule, name: str) -> list[tuple[int, ...]]:
    rows, lengths = data.split(name)
    return [tuple(text) for text in (part.tolist() for part in rows.tokens.split(lengths.tolist()))]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def epoch(batches: Batches, number: int) -> list[list[int]]:
    batches.set_epoch(number)
    return [batch.tolist() for batch in batches]


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
