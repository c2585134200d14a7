"""Odd data are refused before training: by file, column and row, in one message."""

import itertools
from dataclasses import replace
from pathlib import Path

import pyarrow
import pytest
import torch

from pebench.config import Options
from pebench.data import datamodule
from pebench.data.base import Prepared
from pebench.data.images import Digits
from pebench.data.language import Grammar
from pebench.data.puzzles import Copy
from pebench.data.text import Order
from pebench.engine.executors.server import _prepare
from pebench.errors import UserError
from pebench.tasks import TASKS, configure
from tests.data.copies import WRITERS, load, write_table

COLUMN = {"text-imdb": "text", "text-sst2": "sentence", "text-agnews": "text"}
TEXTS = {
    "missing": (None, "expected a text, got None"),
    "empty": ("", "expected a text with a word in it, got ''"),
    "blank": (" \n\t", r"expected a text with a word in it, got ' \n\t'"),
    "NUL": ("a\0b", r"expected a text without NUL characters, got 'a\x00b'"),
    "mark alone": ("\ufeff", "expected a text with a word in it, got ''"),
}
LABELS = {
    "below": (-1, "got -1"), "above": (99, "got 99"), "missing": (None, "got None"),
}  # fmt: skip
COLUMNS = {
    "words": (["pos"], "got 'pos'"), "fractions": ([0.5], "got 0.5"), "whole fractions": ([1.0], "got 1.0"),
    "truths": ([True], "got True"), "lists": ([[1]], "got [1]"), "dates": (pyarrow.array([1], "date32"), "date"),
}  # fmt: skip


def refusal(task: str, folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        datamodule(task, folder).prepare_data()
    assert len(str(caught.value)) < 600
    return str(caught.value)


@pytest.mark.parametrize("task", COLUMN)
@pytest.mark.parametrize(("text", "words"), TEXTS.values(), ids=list(TEXTS))
def test_an_odd_text_is_named_with_its_row(task, text, words, tmp_path):
    WRITERS[task](tmp_path)
    folder = tmp_path / task.removeprefix("text-").replace("agnews", "ag_news")
    write_table(folder, "train", **{COLUMN[task]: ["a", "b", "c", text], "label": [0, 1, 0, 1]})
    found = refusal(task, tmp_path)
    assert found.startswith(f"{folder}/train-00000-of-00001.parquet, column '{COLUMN[task]}', row 3: ")
    assert words in found


@pytest.mark.parametrize(("label", "words"), LABELS.values(), ids=list(LABELS))
@pytest.mark.parametrize(("task", "most"), [("text-imdb", 1), ("text-agnews", 3), ("text-20newsgroups", 19)])
def test_an_odd_label_is_named_with_its_row(task, most, label, words, tmp_path):
    WRITERS[task](tmp_path)
    (folder,) = tmp_path.iterdir()
    write_table(folder, "test", text=["a", "b"], label=[0, label])
    found = refusal(task, tmp_path)
    assert found.startswith(f"{folder}/test-00000-of-00001.parquet, column 'label', row 1: ")
    assert f"expected a whole number from 0 to {most}, {words}" in found


@pytest.mark.parametrize(("labels", "words"), COLUMNS.values(), ids=list(COLUMNS))
def test_labels_of_another_kind_are_refused(labels, words, tmp_path):
    WRITERS["text-imdb"](tmp_path)
    write_table(tmp_path / "imdb", "train", text=["a"], label=labels)
    found = refusal("text-imdb", tmp_path)
    assert "column 'label', row 0: expected a whole number from 0 to 1, got " in found
    assert words in found


@pytest.mark.parametrize(
    "column",
    [[1], [b"bytes"], [["a"]], [{"a": "b"}], [1.5]],
    ids=["numbers", "bytes", "lists", "structs", "fractions"],
)
@pytest.mark.parametrize("task", ["text-imdb", "lm-imdb", "lm-wikitext2", "text-pairs"])
def test_texts_of_another_kind_are_refused(task, column, tmp_path):
    WRITERS[task](tmp_path)
    (folder,) = tmp_path.iterdir()
    labels = {"label": [0]} if task.endswith("imdb") else {}
    write_table(folder, "train", text=column, **labels)
    assert "train-00000-of-00001.parquet, column 'text', row 0: expected a text, got " in refusal(task, tmp_path)


def test_a_message_repeats_a_line_of_what_was_given_at_most(tmp_path):
    WRITERS["text-imdb"](tmp_path)
    write_table(tmp_path / "imdb", "train", text=["a\0" * 10_000], label=[0])
    assert len(refusal("text-imdb", tmp_path)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize("columns", [{"text": ["a"]}, {"label": [0]}, {"words": ["a"], "label": [0]}])
def test_a_table_without_a_column_is_named(columns, tmp_path):
    WRITERS["text-imdb"](tmp_path)
    write_table(tmp_path / "imdb", "train", **columns)
    assert "train-00000-of-00001.parquet lacks a column: expected text, label, but " in refusal("text-imdb", tmp_path)


@pytest.mark.parametrize("task", [task for task in WRITERS if task.startswith(("text", "lm-wiki"))])
def test_a_table_without_rows_is_named(task, tmp_path):
    WRITERS[task](tmp_path)
    (folder,) = tmp_path.iterdir()
    text = {"sentence" if task == "text-sst2" else "text": pyarrow.array([], "string")}
    label = {} if "wiki" in str(folder) else {"label": pyarrow.array([], "int64")}
    write_table(folder, "train", **text, **label)
    assert "train-00000-of-00001.parquet has no rows." in refusal(task, tmp_path)


def test_too_few_rows_to_validate_are_refused(tmp_path):
    WRITERS["text-imdb"](tmp_path, 9)
    assert refusal("text-imdb", tmp_path) == "imdb: the split val has no examples, expected one at least."


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    for mark in ("", "\ufeff"):
        write_table(tmp_path / mark / "data" / "ag_news", "train", text=[f"{mark}news"] * 20, label=[0, 1] * 10)
        write_table(tmp_path / mark / "data" / "ag_news", "test", text=["news"], label=[0])
    assert load("text-agnews", tmp_path).fingerprint == load("text-agnews", tmp_path / "\ufeff").fingerprint


# Running text


def write_text(folder: Path, content: bytes) -> Path:
    (folder / "tiny_shakespeare").mkdir(parents=True)
    (folder / "tiny_shakespeare" / "input.txt").write_bytes(content)
    return folder


LETTERS = "".join(chr(65 + i % 32) for i in range(3200))


def test_a_mark_before_a_text_is_not_a_character_of_it(tmp_path):
    plain = load_text(tmp_path / "a", LETTERS.encode())
    marked = load_text(tmp_path / "b", LETTERS.encode("utf-8-sig"))
    assert len(marked.prepared.meta["token_bytes"]) == 1 + 32
    assert marked.fingerprint == plain.fingerprint


def load_text(folder: Path, content: bytes) -> Grammar:
    data = datamodule("lm-shakespeare", write_text(folder, content))
    data.model_arguments()
    return data


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LETTERS.encode("utf-16"), "is not text in UTF-8, but in UTF-16: convert it"),
        ("\ufeff".encode("utf-16-be") + LETTERS.encode("utf-16-be"), "is not text in UTF-8, but in UTF-16"),
        (LETTERS.encode("utf-16-le"), "has a NUL character at character 1"),
        (LETTERS.encode() + b"\xff", "is not text in UTF-8: "),
        (b"", "the split train has 0 tokens, expected two at least"),
        (b"ab", "tokens, expected two at least"),
    ],
    ids=["UTF-16", "UTF-16, big end first", "UTF-16 without a mark", "Latin", "empty", "short"],
)
def test_an_odd_text_is_refused(content, words, tmp_path):
    assert words in refusal("lm-shakespeare", write_text(tmp_path, content))


def test_characters_that_training_lacks_count_their_bytes(tmp_path):
    text = LETTERS[:900] + "猫" * 25 + "Aé😀" + "B" * 72
    data = load_text(tmp_path, text.encode())
    sizes = torch.tensor(data.describe()["token_bytes"])
    for name, part in zip(("train", "val", "test"), (text[:900], text[900:950], text[950:]), strict=True):
        assert sizes[data.prepared.tensors[name].long()].sum() == len(part.encode())
    assert data.prepared.tensors["val"][: 25 * 3].tolist() == [0] * 75


# Data of plug-ins


def spoiled(kind: type, change) -> type:
    """A data class whose tensors are changed after they are read."""

    class Spoiled(kind):
        title = "spoiled"

        def read(self) -> Prepared:
            prepared = super().read()
            tensors = {name: tensor.clone() for name, tensor in prepared.tensors.items()}
            change(tensors)
            return Prepared(tensors, prepared.meta)

    return Spoiled


class OneClass(Order):
    """Has three labels, and describes one."""

    num_classes = 1


def without_test(tensors: dict[str, torch.Tensor]) -> None:
    for name in [name for name in tensors if name.startswith("test")]:
        del tensors[name]


def without_a_token(tensors: dict[str, torch.Tensor]) -> None:
    lengths = tensors["train_lengths"]
    lengths[1] += lengths[0]
    lengths[0] = 0


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (Order, lambda t: t["val_labels"].__setitem__(2, 3), "labels of the split val: .* from 0 to 2, got 3 at"),
        (Order, lambda t: t["test_labels"].__setitem__(0, -1), "labels of the split test: .* got -1 at"),
        (Order, lambda t: t.update(val_labels=t["val_labels"] + 0.5), "labels of the split val: .* torch.float32"),
        (Order, lambda t: t["train_tokens"].__setitem__(5, 10), "tokens of the split train: .* from 0 to 9, got 10"),
        (Order, without_a_token, "a text without tokens"),
        (Digits, lambda t: t["train_labels"].__setitem__(0, 10), "labels of the split train: .* from 0 to 9, got 10"),
        (Digits, lambda t: t.update(val_images=t["val_images"].float()), "images of the split val: .* torch.uint8"),
        (Digits, lambda t: t.update({f"val_{k}": t[f"val_{k}"][:0] for k in ("images", "labels")}), "val has no exam"),
        (Grammar, lambda t: t["test"].__setitem__(0, 35), "tokens of the split test: .* from 0 to 34, got 35"),
        (Grammar, lambda t: t.update(val=t["val"][:1]), "the split val has 1 tokens"),
        (OneClass, lambda t: None, "labels of the split train: .* from 0 to 0, got [12] at .* that the data describe"),
        (Order, without_test, r"read\(\) must return .* lacks test_tokens, test_lengths, test_labels\. It gave: tra"),
        (Digits, lambda t: t.pop("val_images"), "It lacks val_images"),
        (Grammar, without_test, "It lacks test"),
        (Copy, without_test, "It lacks test_rows"),
        (Order, lambda t: t.update(val_labels=[0]), "of tensors, but its 'val_labels' is a list"),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_tensors_that_no_model_can_take_are_refused(kind, change, words, tmp_path):
    sizes = {"max_len": 16, "vocab_size": 10} if issubclass(kind, Order) else {}
    data = spoiled(kind, change)(**sizes)
    with pytest.raises(UserError, match=f"spoiled: .*{words}"):
        data.prepare_data()
    assert not data.file.exists()
    with pytest.raises(RuntimeError, match="call prepare_data"):
        data.setup()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, r"read\(\) must return a pebench\.data\.base\.Prepared\(tensors, meta\), got nothing"),
        ({}, "Prepared.*, got a dict"),
        (Prepared([], {}), "whose tensors are a dict, got a list"),  # type: ignore[arg-type]
        (Prepared({}, None), "whose meta are a dict, got a NoneType"),  # type: ignore[arg-type]
        (Prepared({}, {"size": torch.ones(1)}), "whose meta are plain JSON values, got .*not JSON serializable"),
        (Prepared({}, {}), "It lacks train_images"),
    ],
)
def test_what_is_no_prepared_data_is_refused(found, words):
    class Odd(Digits):
        title = "odd"

        def read(self) -> Prepared:
            return found

    with pytest.raises(UserError, match=f"odd: .*{words}"):
        Odd().prepare_data()


def test_images_without_their_mean_are_refused():
    class Odd(Digits):
        title = "odd"

        def read(self) -> Prepared:
            return Prepared(super().read().tensors, {"mean": [0.5]})

    with pytest.raises(UserError, match=r"must return the meta values mean, std\. It lacks std\. It gave: mean\."):
        Odd().prepare_data()


# As a user sees it


@pytest.mark.parametrize(("code", "words"), [("torch.ones(2).view(3)", "RuntimeError"), ("float('x')", "could not")])
def test_a_fault_in_data_is_told_with_the_line_of_the_users_file(code, words, tmp_path, monkeypatch):
    class Odd(Digits):
        title = "odd"

        def read(self) -> Prepared:
            exec(compile(f"\n{code}", "mine.py", "exec"))
            return super().read()

    monkeypatch.setitem(TASKS, "vit-digits", replace(TASKS["vit-digits"], data=Odd))
    (found,) = _prepare([configure("vit-digits", "none", tier="smoke")], Options(tmp_path), print)
    assert words in found
    assert found.endswith(" (mine.py:2)")


def test_a_task_that_declares_other_classes_than_its_data_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "text-order", replace(TASKS["text-order"], num_classes=1))
    (found,) = _prepare([configure("text-order", "none", tier="smoke")], Options(tmp_path), print)
    assert "declares num_classes=1, but its data describe num_classes=3: set both" in found


def test_a_mistake_in_two_data_sets_is_told_of_both(tmp_path):
    for task, folder in (("text-imdb", "imdb"), ("text-agnews", "ag_news")):
        WRITERS[task](tmp_path / "data")
        write_table(tmp_path / "data" / folder, "train", text=[None], label=[0])
    kinds = [configure(task, "none", tier="smoke") for task in ("text-imdb", "text-agnews")]
    first, second = _prepare(kinds, Options(tmp_path, data_dir=tmp_path / "data"), print)
    assert first.startswith("text-imdb: ")
    assert second.startswith("text-agnews: ")
