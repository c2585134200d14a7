"""A hub on this machine, asked over HTTP by the hub's own libraries: its answers, and a table of its data."""

import os
import subprocess
import sys

import huggingface_hub
import pytest

from pebench.errors import UserError
from pebench.runs.records import read_records
from pebench.tasks import find_task
from tests.data.hub_server import COMMIT, GATED, serve_hub
from tests.data.own_data import texts, write_csv


def served(tmp_path):
    """A hub with one data set, which the hub's own libraries reach over HTTP."""
    folder = tmp_path / "served"
    folder.mkdir()
    write_csv(folder / "train.csv", texts())
    write_csv(folder / "test.csv", texts()[:20])
    return serve_hub(folder)


def test_answers_of_the_hub_are_told_with_what_to_do(tmp_path, monkeypatch):
    with served(tmp_path) as (address, _):
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        for name, answer in {
            "someone/other": "the hub has no data set 'someone/other', or it is private",
            GATED: f"the hub's data set '{GATED}' asks for your consent",
            "someone/reviews, revision=v2": "the hub's data set 'someone/reviews' has no revision 'v2'.",
        }.items():
            with pytest.raises(UserError) as told:
                find_task(f"texts(hub={name})")
            assert str(told.value).startswith(answer)
        huggingface_hub.close_session()  # whose socket would stay open


@pytest.mark.slow
def test_a_name_of_the_hub_becomes_a_table_by_one_command(tmp_path):
    command = [sys.executable, "-m", "pebench", "run", "--task", "texts(hub=someone/reviews)", "--pe", "add"]
    small = ["--tier", "smoke", "--device", "cpu", "--seeds", "1", "--out", "runs"]
    places = {"HF_HOME": str(tmp_path / "hf"), "PEBENCH_CACHE_DIR": str(tmp_path / "cache")}
    with served(tmp_path) as (address, asked):
        environment = {**os.environ, **places, "HF_ENDPOINT": address}
        ended = subprocess.run([*command, *small], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        number = len(asked)
    assert f"GET /datasets/someone/reviews/resolve/{COMMIT}/train.csv" in asked
    (record,) = read_records(tmp_path / "runs")
    assert record.ok
    assert f"someone/reviews@{COMMIT}" in record.config.task
    assert record.config.task in " ".join(ended.stdout.split())  # the table's title
    # A commit that has been fetched needs no hub.
    pinned = [*command, *small, "--offline"]
    pinned[pinned.index("texts(hub=someone/reviews)")] = f"texts(hub=someone/reviews@{COMMIT})"
    again = subprocess.run(pinned, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "1 run: 0 to do, 1 done" in again.stdout, again.stdout + again.stderr
    assert len(asked) == number
