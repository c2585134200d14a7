"""Splits: their sizes and the rules that they follow."""

import itertools
import pickle
import random

import numpy as np
import pytest
import torch

from pebench.data.base import commonest_share
from pebench.data.batches import Texts
from pebench.data.text import SST2
from tests.data.copies import SPLITS, load, sequences

# Splits

SIZES = {
    "vit-digits": (1079, 359, 359), "vit-cifar10": (90, 10, 20), "text-order": (8000, 1000, 2000),
    "vit-three-cells": (20_000, 1000, 2000), "vit-relative-cell": (20_000, 1000, 2000),
    "text-sst2": (54, 6, 1), "text-imdb": (54, 6, 2), "text-agnews": (54, 6, 1),
    "text-20newsgroups": (54, 6, 2), "text-pairs": (60, 18, 18),
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
    monkeypatch.setattr("pebench.data.words.CHUNK", 7)  # so that there are several
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


def test_chance_is_that_of_the_class_that_training_has_most_of():
    labels = {"train_labels": torch.tensor([1, 1, 0]), "test_labels": torch.tensor([0, 0, 1, 0])}
    assert commonest_share(labels) == {"accuracy": 0.25}


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
