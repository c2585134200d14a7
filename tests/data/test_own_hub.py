"""Texts of the hub by their name: the commit stands in the name of the task, and so in records."""

from types import SimpleNamespace

import pytest

from pebench.data import datamodule
from pebench.errors import UserError
from pebench.tasks import find_task
from tests.data.hub_server import COMMIT
from tests.data.own_data import texts, write_csv


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A folder in place of the hub, which the library reads by the same call."""
    folder = tmp_path / "someone" / "reviews"
    folder.mkdir(parents=True)
    write_csv(folder / "train.csv", texts())
    write_csv(folder / "test.csv", texts()[:20])
    monkeypatch.chdir(tmp_path)
    asked = []

    def dataset_info(_, name, revision, timeout):
        asked.append((name, revision))
        return SimpleNamespace(sha=COMMIT)

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", dataset_info)
    return asked


def test_the_commit_is_in_the_name_which_is_enough_anywhere(hub, tmp_path, monkeypatch):
    task = find_task("texts(hub=someone/reviews)")
    assert hub == [("someone/reviews", None)]
    assert f"hub='someone/reviews@{COMMIT}'" in task.name
    assert task.data_args["own"].startswith("reviews-")
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.delenv("PEBENCH_OWN_DATA")
    data = datamodule(task.name)
    data.prepare_data()
    data.setup()
    assert data.sizes() == {"train": 180, "val": 20, "test": 20}
    assert len(hub) == 1  # a commit is not asked for again


def test_offline_a_commit_is_needed(hub, monkeypatch):
    monkeypatch.setenv("PEBENCH_OFFLINE", "1")
    with pytest.raises(UserError, match="the network is forbidden"):
        find_task("texts(hub=someone/reviews)")
    assert not hub


@pytest.mark.parametrize(
    ("answers", "message"),
    [(False, r"someone/reviews: http://hub\.test cannot be reached"), (True, "cannot be found: h")],
)
def test_a_hub_that_cannot_be_reached_is_told_from_one_that_refuses(hub, monkeypatch, answers, message):
    def dataset_info(*_, **__):
        raise OSError("hm")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", dataset_info)
    monkeypatch.setattr("pebench.tasks.sources.reachable", lambda url: answers)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.test")
    with pytest.raises(UserError, match=message):
        find_task("texts(hub=someone/reviews)")


@pytest.mark.slow
def test_what_the_hub_does_not_have_is_told(hub):
    with pytest.raises(UserError, match=r"the hub's data set someone/other@\w+ cannot be read"):
        find_task("texts(hub=someone/other)")
    with pytest.raises(UserError, match=r"reviews@\w+, split train has no column 'stars'"):
        find_task("texts(hub=someone/reviews, label=stars)")
