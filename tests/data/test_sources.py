"""Sources: found locally, in a cache or by the network; errors that say what to do."""

import os
import threading
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import pytest

from pebench.data import datamodule
from pebench.data.hub import load_hub
from pebench.data.tables import Columns
from pebench.errors import UserError
from pebench.tasks import TASKS, sources
from tests.data.copies import SOURCED, WRITERS, every_hub_source, every_source, load, write_cifar10, write_shakespeare


def test_every_source_has_a_small_copy_here():
    assert set(WRITERS) == set(SOURCED)


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
    with pytest.raises(UserError, match="its split train is missing"):
        load_hub(TASKS["text-sst2"].source, None, {"train"}, Columns("sentence"))
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
    with pytest.raises(UserError, match="the network cannot be reached"):
        sources.check_available(TASKS[task].source, None)  # which never came to an end if it waited for the answer
    assert not test_is_over.is_set()
    test_is_over.set()


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
    with pytest.raises(UserError, match=f"{path} cannot be read as a table"):
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
        load_hub(source, None, set(), Columns())
    assert asked == [(source.hub, source.config, {"revision": source.pin})]
