"""Data are prepared once, and made anew where source, setting or file have changed."""

import errno
import os
from pathlib import Path

import pytest
import torch

from pebench.data import datamodule
from pebench.data.base import Prepared
from pebench.errors import UserError
from pebench.tasks import TASKS, sources
from tests.data.copies import EMBEDDED, WRITERS, every_source, load, write_imdb

# Prepared once

GOLDEN = {
    "vit-digits": "68dc3747760b598793aec043e2710fffeefda1780ccf8cd495994feca3587abb",
    "vit-three-cells": "2aecd6cf9f523ed1f1fe3b4e893984220217bd06bcbc6142559b676beaa3f06b",
    "vit-relative-cell": "f772bfa96af321c53ec3e471994b5b89798e40e4d313730ac769cc749a68ea3f",
    "text-order": "b4c821223d7640f286c021892fa2aeb108b2b32bd76a863d85be0585ab0b1347",
    "lm-grammar": "95b8e4d4dae1c30ba8abc2c68e4957c7d9472c365ab00197d3d984e34c0eedce",
    "seq-copy": "2f7b206a85449da9f0adffc57872f546dd9162163a60fe4530d1b7f98d68a941",
    "seq-reverse": "e06bcfa031d0c13868c4d1a60eb4166bc4c513b22e02b0fd91d13706ff19c065",
    "seq-lookup-index": "e4a78763193e8301e570a090810975961ef735e69aaf789aa14a516f68fc712a",
    "seq-lookup-offset": "cea150c497b12a1359d71bf2eab574ecc7de678d0ef57e46948a2edcf96dc98b",
    "seq-what-where": "fb7368c45ebe8ac5885ca882b0fee35333dfa5b1e7edccf8d0a2c9e5ceadf854",
    "seq-recall": "0e3c5f8e2d2b71b268465ee436f33b265ecf4ff11439199f6899533002c89648",
    "seq-flip-flop": "94b8f666edb10d5c5874417d2fcd652b1cf3baba334c0bd84eaab7a9a4f1f392",
    "seq-parity": "c6947619ace66f6418d8ba46e627a0fb20c4a782ed3390536e7ecb35d2b0b70a",
    "seq-a5": "ff29bcd97733114cafec25d34b5b25e41f2d661eea97926962968e455971889d",
}


@pytest.mark.parametrize("task", EMBEDDED)
def test_the_embedded_data_never_change(task, tmp_path):
    """A change here makes old results incomparable: raise PROTOCOL_VERSION and PREPARATION."""
    data = load(task, tmp_path)
    meta = {} if task.startswith("vit-") else data.prepared.meta  # mean and deviation may round differently elsewhere
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
    with pytest.warns(UserWarning, match="is damaged"):
        assert load("vit-digits", tmp_path).fingerprint == fingerprint
    assert len(first.file.read_bytes()) == len(content)


@pytest.mark.parametrize("content", [b"not a file of torch", b"\x80\x02}q\x00.", bytes(1000)], ids=["text", "old", "0"])
def test_a_file_that_is_something_else_is_made_anew(content, tmp_path):
    file = datamodule("vit-digits").file
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="is damaged"):
        assert load("vit-digits", tmp_path).sizes()["train"] == 1079


def test_a_preparation_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(values, file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(
        UserError, match=r"/cache' cannot be written \(No space left on device .* set PEBENCH_CACHE_DIR"
    ):
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
