"""Data of a user by the command line: from a file to records, tables and pages, in which no path stands."""

import json
import shutil

import pytest

from pebench.cli import main
from pebench.runs.records import read_records
from pebench.tasks import find_task
from tests.cli.asking import ask
from tests.data.own_data import book, task_of_kind, texts, write_csv, write_images, write_kind

SMALL = ["--tier", "smoke", "--device", "cpu", "--threads", "1", "--executor", "sequential", "--seeds", "1"]


def write(kind: str, folder):
    folder.mkdir(parents=True)
    if kind == "texts":
        return write_csv(folder / "mine.csv", texts())
    if kind == "images":
        return write_images(folder / "mine")
    (folder / "mine.txt").write_text(book())
    return folder / "mine.txt"


@pytest.fixture
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["texts", "images", "corpus"])
def test_data_become_a_table_without_their_path(kind, tmp_path, monkeypatch):
    path = write(kind, tmp_path / "secret place")
    answer = ask("run", "--data", str(path), "--pe", "add", *SMALL, "--offline", out=tmp_path / "runs")
    assert answer.code == 0, answer.text
    assert "from the data: " in answer.text
    (record,) = read_records(tmp_path / "runs")
    assert record.ok
    assert record.config.task.startswith(f"{kind}(")
    assert "data='mine-" in record.config.task
    for file in (tmp_path / "runs").rglob("*"):
        if file.is_file():
            assert b"secret place" not in file.read_bytes(), file
    # Elsewhere, without the data and what this machine knows of them: the page is the same.
    page = ask("report", str(tmp_path / "runs")).text
    shutil.rmtree(tmp_path / "secret place")
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")
    assert ask("report", str(tmp_path / "runs")).text == page
    # The same data at another place are the same runs.
    again = ask("run", "--data", str(write(kind, tmp_path / "new")), "--pe", "add", *SMALL, out=tmp_path / "runs")
    assert "1 run: 0 to do, 1 done" in again.text


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["number", "tags", "pairs", "masked"])
def test_every_kind_of_task_ends_in_a_page_with_its_chance_level(kind, tmp_path, monkeypatch):
    guessed = kind in ("tags", "pairs")  # from the data alone
    what = ["--data", str(write_kind(kind, tmp_path))] if guessed else ["--task", task_of_kind(kind, tmp_path)]
    answer = ask("run", *what, "--pe", "add", *SMALL, "--offline", out=tmp_path / "runs")
    assert answer.code == 0, answer.text
    (record,) = read_records(tmp_path / "runs")
    assert record.ok
    chance = record.dataset["chance"]
    metric = find_task(record.config.task).metric
    assert f"test/{metric}" in record.metrics
    labels = {name.partition("@")[2] for name in record.metrics if "@" in name}
    assert labels == ({"2x", "4x"} if kind == "masked" else {"shuffled"})
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "other"))  # elsewhere, without the data
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")
    page = ask("report", str(tmp_path / "runs")).text
    level = f"{chance:.4f}" if metric in ("squared_error", "bits_per_token") else f"{100 * chance:.2f} %"
    assert f"{level}, by the best constant prediction" in page
    again = ask("run", "--task", record.config.task, "--pe", "add", *SMALL, out=tmp_path / "runs")
    assert "1 run: 0 to do, 1 done" in again.text


@pytest.mark.usefixtures("alone")
def test_a_file_of_a_run_finds_data_that_a_command_has_named(tmp_path, monkeypatch):
    path = write("texts", tmp_path / "a")
    arguments = ["run", "--data", str(path), "--pe", "add", *SMALL]
    assert ask(*arguments, "--dry-run", out=tmp_path / "runs").code == 0
    lines = ask(*arguments, "--executor", "commands", out=tmp_path / "runs").text
    config = json.loads(next((tmp_path / "runs").rglob("config.json")).read_text())
    assert str(tmp_path / "a") not in lines + json.dumps(config)
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")  # another process
    file = next(word for word in lines.split() if word.endswith("config.json"))
    assert ask("run", "--config", file, *SMALL[2:-2], out=tmp_path / "runs").code == 0


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "mine.csv", "--set", "train.batch_size=500"], "lower train.batch_size"),
        (["--data", "nowhere.csv"], "--data expects a file or folder, but there is no 'nowhere.csv'."),
        (["--task", "texts(path=mine.csv, label=stars)"], "mine.csv has no column 'stars' (option label)."),
        (["--data", "pairs/mine.csv", "--beyond", "2"], "no other lengths can be tested"),
    ],
    ids=["batch", "nowhere", "column", "pairs"],
)
def test_mistakes_are_told_before_anything_trains(options, words, tmp_path, monkeypatch, capsys):
    write_csv(tmp_path / "mine.csv", texts())
    (tmp_path / "pairs").mkdir()
    write_kind("pairs", tmp_path / "pairs")
    monkeypatch.chdir(tmp_path)
    assert main(["run", *options, "--pe", "add", *SMALL]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert not [*tmp_path.glob("runs/**/record.json")]
