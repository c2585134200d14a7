"""Whatever has changed since it was written is noticed: prepared tensors, local copies, and caches out of reach."""

import errno
import hashlib
import os
import pathlib
import pwd
import random
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet
import pytest
import torch

from pebench.config import Options
from pebench.data import datamodule
from pebench.engine.executors.server import _prepare
from pebench.errors import UserError
from pebench.tasks import TASKS, configure, sources
from tests.data.copies import HUB, WRITERS, load, write_cifar10, write_shakespeare, write_table

CHECK_CONTENTS = sources.check_contents  # as it is outside these tests


@pytest.fixture
def published(monkeypatch, tmp_path):
    """Checksums of the small copies, in the place of those of the data sets."""
    monkeypatch.setattr(sources, "check_contents", CHECK_CONTENTS)

    def pin(task: str) -> Path:
        found: dict[str, str] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sources, "check_contents", lambda source, part, sha256, place: found.update({part: sha256}))
            WRITERS[task](tmp_path / "data")
            datamodule(task, tmp_path / "data").prepare_data()
        source = TASKS[task].source
        object.__setattr__(source, "contents", found)
        return tmp_path / "data"

    kept = {task: TASKS[task].source.contents for task in WRITERS}
    yield pin
    for task, contents in kept.items():
        object.__setattr__(TASKS[task].source, "contents", contents)


# Prepared tensors


def flipped(path: Path, place: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.unlink()  # not in place: other data modules have it mapped
    path.write_bytes(content)


def test_a_flipped_bit_of_prepared_tensors_is_noticed_wherever_it_is(tmp_path):
    first = load("vit-digits", tmp_path)
    content, noise = first.file.read_bytes(), random.Random(0)
    for _ in range(60):
        place = noise.randrange(len(content))
        flipped(first.file, place, noise.randrange(8))
        data = datamodule("vit-digits")
        if data._open():  # what lies between the records of the file is read by nobody
            assert all(torch.equal(data.prepared.tensors[name], t) for name, t in first.prepared.tensors.items()), place
            assert data.prepared.meta == first.prepared.meta, place
        first.file.write_bytes(content)


@pytest.mark.parametrize("damage", ["bit", "page"])
def test_damaged_tensors_are_named_and_prepared_anew(damage, tmp_path):
    first = load("vit-digits", tmp_path)
    content = first.file.read_bytes()
    images = first.prepared.tensors["train_images"]
    start = content.index(images.numpy().tobytes())
    first.file.unlink()
    first.file.write_bytes(
        content[:start] + bytes([content[start] ^ 1]) + content[start + 1 :]
        if damage == "bit"
        else content[:start] + bytes(4096) + content[start + 4096 :]
    )
    with pytest.raises(RuntimeError, match="is not prepared"):
        datamodule("vit-digits").setup()
    with pytest.warns(UserWarning, match=f"{first.file} is damaged"):
        again = load("vit-digits", tmp_path)
    assert again.fingerprint == first.fingerprint
    assert torch.equal(again.prepared.tensors["train_images"], images)


def test_tensors_in_the_place_of_others_are_not_taken_for_them(tmp_path):
    short, long = load("text-order", tmp_path, max_len=16), datamodule("text-order", max_len=20)
    long.file.write_bytes(short.file.read_bytes())
    with pytest.warns(UserWarning, match="is damaged"):
        long.prepare_data()
    assert long.fingerprint != short.fingerprint


def test_what_does_not_come_back_from_the_disk_is_told(tmp_path, monkeypatch):
    save = torch.save
    monkeypatch.setattr(torch, "save", lambda values, file: save({**values, "sha256": "0"}, file))
    with pytest.raises(UserError, match="is not what was just written there"):
        datamodule("vit-digits").prepare_data()


# Sources


@pytest.mark.parametrize("task", [*HUB, "text-20newsgroups"])
def test_a_copy_that_is_not_what_was_published_is_refused_by_name(task, published):
    folder = published(task) / TASKS[task].source.folder
    path = next(folder.glob("train*"))
    table = pyarrow.parquet.read_table(path).to_pydict()
    column = next(name for name, values in table.items() if isinstance(values[0], str))
    place = next(i for i, text in enumerate(table[column]) if text.strip())
    table[column][place] += "!"
    write_table(folder, "train", **table)
    with pytest.raises(UserError, match=f"{path} is not what was published as {TASKS[task].source.title}"):
        datamodule(task, folder.parent).prepare_data()


def test_a_flipped_bit_in_a_local_text_is_noticed(published):
    folder = published("lm-shakespeare")
    path = folder / "tiny_shakespeare" / "input.txt"
    flipped(path, 3)
    with pytest.raises(UserError, match=f"{path} is not what was published as tiny_shakespeare"):
        datamodule("lm-shakespeare", folder).prepare_data()


@pytest.mark.parametrize("change", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b.replace(b"\n", b"\r\n")])
def test_how_a_system_stores_a_text_is_not_what_it_says(change, published, tmp_path):
    folder = published("lm-shakespeare")
    path = folder / "tiny_shakespeare" / "input.txt"
    path.write_bytes(path.read_bytes().replace(b"X", b"\n"))
    sources.SHAKESPEARE.contents["input.txt"] = hashlib.sha256(path.read_bytes()).hexdigest()
    expected = load("lm-shakespeare", tmp_path).fingerprint
    path.write_bytes(change(path.read_bytes()))
    assert load("lm-shakespeare", tmp_path).fingerprint == expected


def test_every_source_but_one_is_held_to_what_was_published():
    free = {name for name, task in TASKS.items() if task.source and not task.source.contents}
    assert free == {"vit-cifar10", "text-agnews"}  # torchvision checks the one


@pytest.mark.parametrize("name", ["data_batch_2", "test_batch", "batches.meta"])
def test_a_damaged_file_of_images_is_named(name, tmp_path, monkeypatch):
    write_cifar10(tmp_path)
    bad = tmp_path / "cifar-10-batches-py" / name
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5=None: Path(path) != bad)
    with pytest.raises(UserError, match=f"is damaged or incomplete: {bad}\\."):
        datamodule("vit-cifar10", tmp_path).prepare_data()


@pytest.mark.parametrize("place", [0.01, 0.3, 0.6, 0.99])
def test_a_flipped_byte_of_a_table_is_noticed(place, published):
    folder = published("text-imdb")
    path = folder / "imdb" / "train-00000-of-00001.parquet"
    expected = datamodule("text-imdb", folder)
    expected.prepare_data()
    for bit in range(8):
        flipped(path, int(place * path.stat().st_size), bit)
        data = datamodule("text-imdb", folder)
        try:
            data.prepare_data()
        except UserError as error:
            assert str(path) in str(error)  # noqa: PT017 - not every bit of a table is read: of statistics, say
        else:
            assert data.fingerprint == expected.fingerprint
        flipped(path, int(place * path.stat().st_size), bit)


# Places

ODD = [
    "a[b]*?",
    "x::y",
    "file:",
    "a#b%20c",
    "new\nline",
    "q\"'\\",
    "~",
    "é漢😀",
    os.fsdecode(b"\xff\xfe"),
    "{a,b}",
    " ",
]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_folders_may_have_any_name(name, tmp_path, monkeypatch):
    write_shakespeare(tmp_path / "data")
    WRITERS["text-sst2"](tmp_path / "data")
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (tmp_path / "data").rename(folder / "data")
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(folder / "cache"))
    for task in ("text-sst2", "lm-shakespeare"):
        datamodule(task, folder / "data").prepare_data()
        again = datamodule(task, folder / "data")
        again.setup()
        assert len(again.fingerprint) == 64


def test_a_user_without_a_home_is_told_what_to_set(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "PEBENCH_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)

    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(RuntimeError):
        pathlib.Path.home()
    kinds = [configure("vit-digits", "none", tier="smoke")]
    (problem,) = _prepare(kinds, Options(tmp_path), print)
    assert "no home folder: set PEBENCH_CACHE_DIR" in problem
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    assert _prepare(kinds, Options(tmp_path), print) == []
    monkeypatch.delenv("HF_HOME")
    with pytest.raises(UserError, match="no home folder: set HF_HOME"):
        datamodule("text-imdb").prepare_data()


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EROFS, errno.ENOTDIR])
def test_a_cache_that_cannot_be_written_is_named(number, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(torch, "save", refuse)
    with pytest.raises(UserError, match=r"the cache '.*/cache' cannot be written .*set PEBENCH_CACHE_DIR"):
        datamodule("vit-digits").prepare_data()
    monkeypatch.setattr(sources, "reachable", lambda url: True)
    monkeypatch.setattr("datasets.load_dataset", refuse)
    with pytest.raises(UserError, match=r"the cache '.*/hub' cannot be written .*set HF_HOME"):
        datamodule("text-imdb").prepare_data()
    monkeypatch.setattr("torch.hub.download_url_to_file", refuse)
    with pytest.raises(UserError, match=r"the cache '.*/tiny_shakespeare' cannot be written .*set PEBENCH_CACHE_DIR"):
        datamodule("lm-shakespeare").prepare_data()
    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", refuse)
    with pytest.raises(UserError, match=r"the cache '.*/downloads' cannot be written .*set PEBENCH_CACHE_DIR"):
        datamodule("text-20newsgroups").prepare_data()


def test_a_failing_network_is_not_the_caches_fault():
    with pytest.raises(ConnectionResetError), sources.writing(Path("x")):
        raise ConnectionResetError(errno.ECONNRESET, "reset")


def test_whatever_data_raise_is_one_message(tmp_path, monkeypatch):
    def broken(self):
        return SimpleNamespace().nothing

    monkeypatch.setattr("pebench.data.images.Digits.read", broken)
    (problem,) = _prepare([configure("vit-digits", "none", tier="smoke")], Options(tmp_path), print)
    assert problem.startswith("vit-digits: its data raised AttributeError: ")
    assert f"test_damage.py:{broken.__code__.co_firstlineno + 1}" in problem
