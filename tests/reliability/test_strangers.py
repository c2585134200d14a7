"""What comes from elsewhere: files with pickles that would run code, and clocks that are set back."""

import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench.config import Options
from pebench.data import datamodule_of
from pebench.errors import UserError
from pebench.models import ViT
from pebench.runs.leases import claim
from pebench.runs.records import WEIGHTS, Record, read_records, write_record
from pebench.runs.status import status
from pebench.tasks import configure
from pebench.training.resume import resumable_step
from pebench.training.runner import train
from pebench.training.weights import load_weights

CONFIG = configure("vit-digits", "add", 0, "smoke")


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.canary,)


def refused(load: Callable[[Path], Any]) -> Callable[[Path], None]:
    def check(path: Path) -> None:
        with pytest.raises((UserError, pickle.UnpicklingError)):
            load(path)

    return check


def begins_again(path: Path) -> None:
    with pytest.warns(UserWarning, match="is damaged"):
        assert resumable_step(path) == 0


def prepared_anew(path: Path) -> None:
    data = datamodule_of(CONFIG, None)
    shutil.copyfile(path, data.file)
    with pytest.warns(UserWarning, match="is damaged"):
        data.prepare_data()
    data.setup()


def weights_of_a_run(path: Path) -> Any:
    folder = write_record(Record(CONFIG), path.parent).parent
    return load_weights(path.rename(folder / WEIGHTS).parent)


READERS: dict[str, Callable[[Path], None]] = {
    "checkpoint of a run": begins_again,
    "checkpoint of a module": refused(lambda path: ViT.load_from_checkpoint(path)),
    "prepared data": prepared_anew,
    "kept weights": refused(weights_of_a_run),
    "record": refused(lambda path: read_records(path.rename(path.with_name("record.json")))),
}


@pytest.mark.parametrize("way", ["in a file of torch", "alone"])
@pytest.mark.parametrize("name", READERS)
def test_a_pickle_that_runs_code_runs_none(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    if name == "prepared data":
        datamodule_of(CONFIG, None).prepare_data()  # whose place the file takes
    path, canary = tmp_path / "last.ckpt", tmp_path / "canary"
    values = {"global_step": 3, "state_dict": Bomb(canary), "callbacks": {}}
    if way == "alone":
        path.write_bytes(pickle.dumps(values, protocol=2))
    else:
        torch.save(values, path)
    READERS[name](path)
    assert not canary.exists()


def test_the_pickle_would_run_code(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / "canary")))
    assert (tmp_path / "canary").exists()


def test_a_clock_that_is_set_back_changes_nothing_but_the_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(tmp_path / "a", device="cpu", threads=1)
    undisturbed = train(CONFIG, options)
    now = time.time()
    running = tmp_path / "b" / configure("vit-digits", "rope", 0, "smoke").directory
    with claim(running) as lease:
        assert lease is not None
        monkeypatch.setattr(time, "time", lambda: now - 3600.0)
        record = train(CONFIG, Options(tmp_path / "b", device="cpu", threads=1))
        assert "1 running" in (text := status(tmp_path / "b"))
        assert "for 0 s" in text
    assert (record.metrics, record.curve) == (undisturbed.metrics, undisturbed.curve)
    assert record.duration_s is not None
    assert record.duration_s > 0
    assert record.throughput is not None
    assert record.throughput > 0
