"""Texts: vocabularies of the training split alone, and rhymes whose label is their order."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from pebench.data import datamodule
from pebench.data.batches import Batches
from pebench.data.text import Order
from pebench.errors import UserError
from pebench.tasks import sources
from tests.data.copies import load, seeded, sequences, texts, write_table

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
    folder = tmp_path / "data" / "20_newsgroups"
    write_table(folder, "train", text=["a b", "b a", "a"] + ["a"] * 7, label=[0] * 10)
    write_table(folder, "test", text=["b a a a", "", " \n", "a"], label=[1, 0, 0, 1])
    data = load("text-20newsgroups", tmp_path, max_len=2, batch_size=2)
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


def test_padding_is_told_of_training_texts(tmp_path):
    data = load("text-imdb", tmp_path, batch_size=7)
    texts, lengths = data.split("train")
    assert data.padding() == texts.padding(Batches(54, 7, data.seed, lengths)) > 0
