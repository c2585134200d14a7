"""Running text of a user: in bytes, characters and byte pairs, cut by the rule, and refused by name where it is bad."""

import pytest

from pebench.data import datamodule
from pebench.errors import UserError
from pebench.tasks import find_task
from pebench.tasks.own import take_remarks
from tests.data.own_data import book

TEXT = book()


def named(path, **options: str) -> str:
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    return find_task(f"corpus(path={str(path)!r}, name=mine{words})").name


def tensors(name: str):
    data = datamodule(name)
    data.prepare_data()
    data.setup()
    return data, data.prepared.tensors


def refusal(path) -> str:
    with pytest.raises(UserError) as caught:
        named(path)
    return str(caught.value)


@pytest.mark.parametrize("tokens", ["bytes", "chars", "bpe"])
def test_tokens_stand_for_all_bytes_of_the_text(tmp_path, tokens):
    (tmp_path / "a.txt").write_text(TEXT + "Ünïcode 漢\n", encoding="utf-8")
    data, found = tensors(named(tmp_path / "a.txt", tokens=tokens))
    sizes = data.describe()["token_bytes"]
    whole = sum(sizes[token] for part in found.values() for token in part.tolist())
    assert whole == len((TEXT + "Ünïcode 漢\n").encode())
    assert data.describe()["vocab_size"] == len(sizes)
    assert len(next(iter(data.val_dataloader()))[0][0]) == data.max_len


def test_the_cut_takes_the_end_and_equal_files_count_once(tmp_path):
    lines = TEXT.splitlines(keepends=True)
    (tmp_path / "book").mkdir()
    for index, start in enumerate((0, 200)):
        (tmp_path / "book" / f"{index}.txt").write_text("".join(lines[start : start + 200]), newline="\r\n")
    (tmp_path / "book" / "copy of 0.md").write_text("".join(lines[:200]))
    name = named(tmp_path / "book")
    _, found = tensors(name)
    text = bytes(byte for part in ("train", "val", "test") for byte in found[part].tolist()).decode()
    assert text == "".join(lines[:200]) + "\n" + "".join(lines[200:])
    assert [round(len(found[part]) / len(text), 2) for part in ("train", "val", "test")] == [0.9, 0.05, 0.05]
    assert any("copy of 0.md (1 in all)" in text for text in take_remarks(find_task(name).data_args["own"]))
    (tmp_path / "b.txt").write_text(text)
    assert named(tmp_path / "b.txt") == name


def test_given_splits_are_taken(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(f"{split} {TEXT}")
    _, found = tensors(named(tmp_path))
    assert {part: bytes(tokens[:6].tolist()).decode() for part, tokens in found.items()} == {
        "train": "train ", "val": "valid ", "test": "test w",
    }  # fmt: skip


def test_bad_texts_are_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"plain\nand \xff odd")
    assert "can't decode byte 0xff in position 10: invalid start byte (line 2)" in refusal(path)
    path.write_text(" \n")
    assert refusal(path) == f"{path} has no text."
    path.write_text("short")
    assert "is too short: the split val has 0 characters" in refusal(path)
    (tmp_path / "train.txt").write_text(TEXT)
    assert "of the files in" in refusal(tmp_path)
    assert "there is no file or folder" in refusal(tmp_path / "nowhere")
    with pytest.raises(UserError, match="unknown tokens of task 'corpus': 'words'"):
        named(path, tokens="words")
